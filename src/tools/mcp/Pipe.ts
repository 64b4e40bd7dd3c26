/** A server that is a program: the SDK's transport over its standard input and output, wherever it runs. */
import { Effect, Either, ExecutionStrategy, Exit, Scope } from "effect"
import * as Proc from "../../sandbox/Proc.ts"
import type { FileError, SandboxError, SandboxService } from "../../sandbox/Sandbox.ts"
import * as Lines from "./Lines.ts"
import * as Script from "./Script.ts"
import type * as Sdk from "./Sdk.ts"

export interface Pipe {
  readonly transport: Sdk.Transport
  /** Why it is over; undefined while it is not. */
  readonly over: () => string | undefined
  /** The last line that it printed and that was no message. */
  readonly said: () => string
  /** A request of ours begins. */
  readonly refill: () => void
}

/** Milliseconds for what a server said last, once it has ended. */
const lastWords = 500

const parsed = (text: string): unknown => Either.getOrUndefined(Either.try((): unknown => JSON.parse(text)))

/** Starts the server in a place that can be connected to; it ends with the scope. */
export const open = Effect.fn("Pipe.open")(function* (
  sdk: typeof Sdk,
  connect: NonNullable<SandboxService["connect"]>,
  launch: Script.Launch,
  cwd: string
): Effect.fn.Return<Pipe, SandboxError | FileError, Scope.Scope> {
  const scope = yield* Effect.scope
  const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
  let why: string | undefined
  const transport: Sdk.Transport = {
    start: () => Promise.resolve(),
    send: (message) =>
      Effect.runPromise(connection.write(Buffer.from(`${JSON.stringify(message)}\n`))).then((taken) =>
        taken && why === undefined ? undefined : Promise.reject(new Error(why ?? "it takes no more input"))
      ),
    close: () => Promise.resolve(finish("it was closed"))
  }
  const finish = (reason: string) => {
    if (why !== undefined) return
    why = reason
    Effect.runFork(Scope.close(own, Exit.void))
    transport.onclose?.()
  }
  let code = ""
  const lines = Lines.intake({
    message: (text) => {
      const message = sdk.JSONRPCMessageSchema.safeParse(parsed(text))
      if (message.success && why === undefined) transport.onmessage?.(message.data)
    },
    own: (text) => {
      code ||= text
      Effect.runFork(Effect.zipRight(Proc.atMost(connection.ended, lastWords), Effect.sync(ended)))
    },
    flood: finish
  })
  const ended = () => {
    const said = lines.last()
    const how = code === Script.noProgram ? `there is no program ${launch.command}` : `it ended with exit code ${code}`
    finish(`${code === "" ? "it ended" : how}${said === "" ? "" : `: ${said}`}`)
  }
  const connection = yield* Scope.extend(
    connect(Script.command, { cwd: cwd === "" ? undefined : cwd, take: lines.take }),
    own
  )
  yield* connection.write(Buffer.from(Script.text(launch)))
  yield* Effect.forkIn(Effect.zipRight(connection.ended, Effect.sync(ended)), scope)
  return { transport, over: () => why, said: lines.last, refill: lines.refill }
})
