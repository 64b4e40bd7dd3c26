/** A connection to one server: requests that are answered, refused, too late or lost with it. */
import { Data, Effect, type Scope } from "effect"
import type { FileError, SandboxError, SandboxService } from "../../sandbox/Sandbox.ts"
import { version } from "../../version.ts"
import { brief, type Remote, type Server } from "./ConfigFile.ts"
import * as Http from "./Http.ts"
import * as Pipe from "./Pipe.ts"
import type * as Script from "./Script.ts"
import type * as Sdk from "./Sdk.ts"

/** Seconds for a server to start and answer. */
export const startLimit = 30

/** Milliseconds for a session's end to be told to its server. */
const endLimit = 2000

/** A request without a result. `Refused` is the server's word; after `Over` the connection is good for nothing. */
export class LinkError extends Data.TaggedError("LinkError")<{
  readonly reason: "Refused" | "TimedOut" | "Over"
  /** A clause without secrets. */
  readonly message: string
}> {}

export interface Link {
  /** Asks for something; the answer is the server's, in any shape. */
  readonly request: (method: string, params: object, seconds: number) => Effect.Effect<unknown, LinkError>
  readonly over: () => boolean
}

const said = (parts: typeof Sdk, cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  if ((cause instanceof parts.StreamableHTTPError || cause instanceof parts.SseError) && (cause.code ?? 0) >= 400) {
    return `HTTP ${cause.code}: ${cause.message}`
  }
  return cause.cause instanceof Error && cause.message === "fetch failed"
    ? `it cannot be reached: ${cause.cause.message}`
    : cause.message
}

const timers = 2 ** 31 - 1

/** Says hello over a transport. `over` tells why it has ended by itself. */
const greet = (
  sdk: typeof Sdk,
  server: Server,
  {
    transport,
    end,
    over,
    refill
  }: {
    readonly transport: Sdk.Transport
    readonly end: () => Promise<void>
    readonly over: () => string | undefined
    readonly refill: () => void
  }
) =>
  Effect.gen(function* () {
    // It has no capabilities: what a server asks of it (samples, roots, questions) is declined.
    const client = new sdk.Client({ name: "batch-runner", version }, { capabilities: {} })
    let lost = false
    const told = (cause: unknown) => {
      const ended = over()
      const refused = cause instanceof sdk.McpError && ended === undefined
      lost ||= !refused
      return new LinkError({
        reason: refused ? "Refused" : "Over",
        message: brief(ended ?? said(sdk, cause).replace(/^MCP error -?\d+: /, ""), server)
      })
    }
    const within = <A>(seconds: number, run: (signal: AbortSignal) => Promise<A>) =>
      Effect.tryPromise({ try: run, catch: told }).pipe(
        Effect.timeoutFail({
          duration: seconds * 1000,
          onTimeout: () =>
            new LinkError({
              reason: "TimedOut",
              message: `no answer within ${seconds} second${seconds === 1 ? "" : "s"}`
            })
        })
      )
    client.onerror = () => {}
    yield* Effect.addFinalizer(() =>
      Effect.ignore(
        Effect.tryPromise(async () => {
          await Promise.race([
            lost ? undefined : end().catch(() => {}),
            new Promise((resolve) => setTimeout(resolve, endLimit).unref())
          ])
          await client.close()
        })
      )
    )
    yield* within(startLimit, (signal) => client.connect(transport, { signal, timeout: timers }))
    const link: Link = {
      over: () => lost || over() !== undefined,
      request: (method, params, seconds) =>
        Effect.suspend(() => {
          refill()
          return within(seconds, (signal) =>
            client.request({ method, params: { ...params } }, sdk.ResultSchema, { signal, timeout: timers })
          )
        })
    }
    return link
  })

/** Loads the SDK once. */
const sdk = Effect.promise(() => import("./Sdk.ts"))

/** A server as a program in a place that can be connected to. */
export const toProgram = (
  server: Server,
  connect: NonNullable<SandboxService["connect"]>,
  launch: Script.Launch,
  cwd: string
): Effect.Effect<Link, LinkError | SandboxError | FileError, Scope.Scope> =>
  Effect.gen(function* () {
    const parts = yield* sdk
    const pipe = yield* Pipe.open(parts, connect, launch, cwd)
    return yield* greet(parts, server, { ...pipe, end: () => Promise.resolve() }).pipe(
      // One that prints something else, or nothing, says by its last line why.
      Effect.mapError((error) =>
        error.reason === "TimedOut" && pipe.said() !== ""
          ? new LinkError({ ...error, message: `${error.message}; its last words: ${brief(pipe.said(), server)}` })
          : error
      )
    )
  })

/** A server that is there already: a session of its own. */
export const toRemote = (server: Server, at: Remote): Effect.Effect<Link, LinkError, Scope.Scope> =>
  Effect.gen(function* () {
    const parts = yield* sdk
    const by = (speak: typeof Http.streamable | typeof Http.events) =>
      greet(parts, server, { ...speak(parts, at), over: () => undefined, refill: () => {} })
    if (at.speaks === "sse") return yield* by(Http.events)
    const streamable = by(Http.streamable)
    if (at.speaks === "http") return yield* streamable
    // Servers of the first version refuse what the second begins with; if they speak neither, the first refusal counts.
    return yield* Effect.catchIf(
      streamable,
      ({ reason }) => reason === "Over",
      (error) => Effect.orElseFail(by(Http.events), () => error)
    )
  })
