/** The account at Modal as effects: its key, the app that holds all sandboxes, and what a failed call means. */
import { setMaxListeners } from "node:events"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { Data, Effect, Either, Option, Runtime, Schema, type Scope } from "effect"
import type { App, ModalClient, ModalClientParams } from "modal"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"

/** What Modal, or its SDK, answered instead of doing what it was asked. */
export class ModalError extends Data.TaggedError("ModalError")<{
  /** Status of gRPC; 0 when the SDK itself refused. */
  readonly status: number
  /** The SDK's name of the error. */
  readonly kind: string
  readonly message: string
}> {}

export interface Account {
  readonly client: ModalClient
  readonly app: App
  /** The last lines that the build of an image printed, by the image's id. */
  readonly log: (imageId: string) => string
}

/** Name of the app at Modal that holds all sandboxes of this program. */
const appName = "batch-runner"

const Refusal = Schema.Struct({
  name: Schema.String,
  message: Schema.String,
  code: Schema.optional(Schema.Number),
  details: Schema.optional(Schema.String)
})

const oneLine = (text: string) => text.trim().replaceAll(/\s+/g, " ").slice(0, 1000)

const failure = (cause: unknown): ModalError => {
  const known = Option.getOrUndefined(Schema.decodeUnknownOption(Refusal)(cause))
  if (known === undefined) return new ModalError({ status: 0, kind: "", message: oneLine(String(cause)) })
  const said = known.details !== undefined && known.details !== "" ? known.details : known.message
  return new ModalError({ status: known.code ?? 0, kind: known.name, message: oneLine(said) })
}

/** Calls Modal, however long it takes; `signal` is aborted when nobody waits any more. */
export const wait = <A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ModalError> =>
  Effect.tryPromise({ try: run, catch: failure })

/** Calls Modal; fails when that takes longer than `seconds`, a minute by default. */
export const call = <A>(run: () => Promise<A>, seconds = 60): Effect.Effect<A, ModalError> =>
  Effect.flatMap(
    Proc.atMost(Effect.either(wait(run)), seconds * 1000),
    (answer) =>
      answer ??
      new ModalError({ status: status.deadline, kind: "", message: `Modal did not answer within ${seconds} seconds` })
  )

const status = { deadline: 4, notFound: 5, denied: 7, exhausted: 8, unauthenticated: 16 }

/** Cancelled, unknown, time-out, quota, aborted, internal, unavailable: what another day's Modal may answer otherwise. */
const passing = [1, 2, status.deadline, status.exhausted, 10, 13, 14]

export const isMissing = (error: ModalError): boolean =>
  error.status === status.notFound || error.kind === "NotFoundError"

/** Whether the same call may succeed another time. */
export const isPassing = (error: ModalError): boolean =>
  passing.includes(error.status) || ["ResourceExhaustedError", "TimeoutError", "ConflictError"].includes(error.kind)

const keys = "set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET to a token of https://modal.com/settings/tokens"

export const unavailable = (detail: string) => new SandboxError({ reason: "Unavailable", detail })

/** A failed call as a sandbox's failure; `doing` is what was tried. */
export const toSandboxError =
  (doing: string) =>
  (error: ModalError): SandboxError => {
    if (error.status === status.unauthenticated || error.status === status.denied) {
      return unavailable(`Modal refuses the token here (${error.message}); ${keys}`)
    }
    return new SandboxError({
      reason: isPassing(error) ? "StartFailed" : "Unavailable",
      detail: `${doing}: ${error.message}`
    })
  }

/** Whether anything here says who the user is at Modal. */
export const named = (): boolean =>
  Boolean(process.env.MODAL_TOKEN_ID || process.env.MODAL_OAUTH_REFRESH_TOKEN) ||
  existsSync(process.env.MODAL_CONFIG_PATH || join(homedir(), ".modal.toml"))

/** Characters of an image's build log that are kept. */
const logLimit = 2000

/** Images whose build log is kept. */
const logs = 100

const Joining = Schema.Struct({ imageId: Schema.String })
const Joined = Schema.Struct({ taskLogs: Schema.Array(Schema.Struct({ data: Schema.String })) })
const joining = Schema.decodeUnknownEither(Joining)
const joined = Schema.decodeUnknownEither(Joined)

/** Keeps what the builds of images print: the SDK passes on nothing of it, and Modal's own reason only points there. */
const listener = () => {
  const kept = new Map<string, string>()
  return {
    read: (imageId: string) => kept.get(imageId) ?? "",
    note: (request: unknown, response: unknown) => {
      const [asked, answered] = [joining(request), joined(response)]
      if (Either.isLeft(asked) || Either.isLeft(answered)) return
      const { imageId } = asked.right
      const said = answered.right.taskLogs.map(({ data }) => data).join("")
      const text = `${kept.get(imageId) ?? ""}${said}`.slice(-logLimit)
      kept.delete(imageId)
      kept.set(imageId, text)
      for (const oldest of kept.keys()) {
        if (kept.size > logs) kept.delete(oldest)
      }
    }
  }
}

/** The SDK's client; when its scope closes, every call of it that is still waiting ends. */
const clientOf = (note: (request: unknown, response: unknown) => void) =>
  Effect.gen(function* () {
    const { ModalClient } = yield* Effect.promise(() => import("modal"))
    const run = Runtime.runFork(yield* Effect.runtime())
    const log = (message: string) => void run(Effect.logDebug(`modal: ${message}`))
    const closing = new AbortController()
    // Each call that waits listens to it.
    setMaxListeners(0, closing.signal)
    const params: ModalClientParams = {
      // The SDK would print to the streams that are ours.
      logger: { debug: () => {}, info: () => {}, warn: log, error: log },
      grpcMiddleware: [
        async function* (call, options) {
          const { signal: given } = options
          const signal = given === undefined ? closing.signal : AbortSignal.any([given, closing.signal])
          if (!call.responseStream) return yield* call.next(call.request, { ...options, signal })
          for await (const response of call.next(call.request, { ...options, signal })) {
            note(call.request, response)
            yield response
          }
          return undefined
        }
      ]
    }
    return yield* Effect.acquireRelease(
      Effect.mapError(Effect.try({ try: () => new ModalClient(params), catch: failure }), ({ message }) =>
        unavailable(`Modal cannot be used with the settings here: ${message}`)
      ),
      (client) =>
        Effect.sync(() => {
          closing.abort()
          client.close()
        })
    )
  })

/** Seconds for Modal's first answer. */
const helloLimit = 30

/**
 * Signs in. With `make`, the app is made where there is none; without, the account is undefined then. Fails with
 * `Unavailable` when there is no token, when it is not good, or when Modal does not answer.
 */
const signIn = (make: boolean): Effect.Effect<Account | undefined, SandboxError, Scope.Scope> =>
  Effect.gen(function* () {
    const log = listener()
    const client = yield* clientOf(log.note)
    const { tokenId, tokenSecret, oauthRefreshToken } = client.profile
    if (!(tokenId && tokenSecret) && !oauthRefreshToken) {
      const half = tokenId
        ? "MODAL_TOKEN_SECRET is missing"
        : tokenSecret
          ? "MODAL_TOKEN_ID is missing"
          : "there is none"
      return yield* unavailable(`Modal needs a token, and ${half}; ${keys}, or run \`modal token new\``)
    }
    const app = yield* call(() => client.apps.fromName(appName, { createIfMissing: make }), helloLimit).pipe(
      Effect.catchIf(isMissing, (error) => (make ? error : Effect.succeed(undefined))),
      Effect.mapError((error) => {
        const { message } = toSandboxError(`Modal does not answer as it should at ${client.profile.serverUrl}`)(error)
        return unavailable(message)
      })
    )
    return app === undefined ? undefined : { client, app, log: log.read }
  })

/** The account, with the app made where there was none. */
export const open: Effect.Effect<Account, SandboxError, Scope.Scope> = Effect.flatMap(signIn(true), (account) =>
  account === undefined ? unavailable(`Modal has no app ${appName}, and did not make one`) : Effect.succeed(account)
)

/** Whether the account has the app already; nothing is made. Fails as `open` does. */
export const look: Effect.Effect<boolean, SandboxError> = Effect.scoped(
  Effect.map(signIn(false), (account) => account !== undefined)
)

/** The account as it is; undefined when it never held a sandbox of this program, or when there is no token here. */
export const find: Effect.Effect<Account | undefined, SandboxError, Scope.Scope> = Effect.suspend(() =>
  named() ? signIn(false) : Effect.succeed(undefined)
)
