/** One sandbox at Modal: made for a prompt, looked into, and terminated when its scope closes, whatever came between. */
import { Effect, type Scope } from "effect"
import type { Image, Sandbox, SandboxCreateParams } from "modal"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"
import * as Survey from "../Survey.ts"
import { type Account, call, isMissing, isPassing, toSandboxError, unavailable } from "./Account.ts"
import * as Execs from "./Execs.ts"

/** How a sandbox is made. */
export interface Plan {
  /** As the user knows it. */
  readonly name: string
  readonly image: Image
  readonly params: SandboxCreateParams
  /** `cwd` of the spec. */
  readonly cwd: string
}

/** A sandbox that runs. */
export interface Box {
  readonly found: Survey.Found
  readonly execs: Execs.Execs
}

/** Seconds for Modal to find a place for a sandbox, and for the first command to answer. */
const limits = { create: 600, look: 300 }

/** Milliseconds that a release waits at most. */
const releaseLimit = 20_000

/**
 * The first process: it takes in the dead that others left until the sandbox's time is over. Where it is the first by
 * number too, it survives a command that kills all it may.
 */
export const first = ["/bin/sh", "-c", `trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done`]

const told = (sandboxId: string, why: string) =>
  Effect.logWarning(`the Modal sandbox ${sandboxId} could not be terminated: ${why}; it ends with its lifetime`)

/** Terminates a sandbox; says so when that failed or takes too long. */
const release = (sandbox: Sandbox, leave: () => void): Effect.Effect<void> =>
  call(() => sandbox.terminate()).pipe(
    Effect.catchIf(isMissing, () => Effect.void),
    Effect.as(""),
    Effect.catchAll(({ message }) => Effect.succeed(message)),
    (terminated) => Proc.atMost(terminated, releaseLimit),
    Effect.map((why = "Modal does not answer") => why),
    Effect.tap((why) => (why === "" ? Effect.void : Effect.zipRight(Effect.sync(leave), told(sandbox.sandboxId, why)))),
    Effect.ensuring(Effect.sync(() => sandbox.detach()))
  )

/** Makes a sandbox. Interrupted meanwhile, it terminates the one that comes of it; `leave` tells of one that may be left. */
const create = (account: Account, plan: Plan, leave: () => void): Effect.Effect<Sandbox, SandboxError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const pending = account.client.sandboxes.create(account.app, plan.image, plan.params)
      const abandoned = Effect.suspend(() => {
        const ended = pending.then(
          (sandbox) => Effect.runPromise(release(sandbox, leave)),
          () => {}
        )
        return Effect.flatMap(
          Proc.atMost(
            Effect.as(
              Effect.promise(() => ended),
              true
            ),
            releaseLimit
          ),
          (done) =>
            Effect.sync(() => {
              if (done !== true) leave()
            })
        )
      })
      const sandbox = yield* restore(call(() => pending, limits.create)).pipe(
        Effect.onInterrupt(() => abandoned),
        Effect.tapError(({ status }) => Effect.when(Effect.forkDaemon(abandoned), () => status === 4)),
        Effect.mapError((error) => {
          const doing = `A Modal sandbox of ${plan.name} could not be made`
          // The account's limits are for all prompts, the rest is for this one.
          return isPassing(error)
            ? new SandboxError({ reason: "StartFailed", detail: `${doing}: ${error.message}` })
            : toSandboxError(doing)(error)
        })
      )
      yield* Effect.addFinalizer(() => release(sandbox, leave))
      return sandbox
    })
  )

const unfit = (name: string, why: string) =>
  new SandboxError({ reason: "ImageUnfit", detail: `No session can run in the image ${name} at Modal: ${why}` })

const shellless = /no such file|not found|executable/i

/** What the first command finds. */
const survey = (plan: Plan, execs: Execs.Execs): Effect.Effect<Survey.Found, SandboxError> =>
  Effect.gen(function* () {
    const said = yield* Effect.either(
      execs.run(["/bin/sh", "-c", Survey.script(""), "sh", plan.cwd], { millis: limits.look * 1000 })
    )
    const found = said._tag === "Right" ? Survey.read(said.right ?? "") : undefined
    if (found !== undefined) return found
    const code = execs.exitCode()
    // Only somebody else's kill, or the end of its time, ends the first process where it can run.
    if (code !== undefined && code !== 137 && code !== 124) {
      return yield* unfit(plan.name, `its /bin/sh, which commands and file tools need, ended with exit code ${code}`)
    }
    const why =
      said._tag === "Left"
        ? said.left.message
        : said.right === undefined
          ? `it did not answer within ${limits.look} seconds`
          : said.right.trim().slice(0, 500) || "it said nothing"
    if (execs.alive() && shellless.test(why)) return yield* unfit(plan.name, why)
    return yield* new SandboxError({
      reason: "StartFailed",
      detail: `A Modal sandbox of ${plan.name} was not ready for commands: ${why}`
    })
  })

/** Makes a sandbox and its working directory. */
export const open = (account: Account, plan: Plan, leave: () => void): Effect.Effect<Box, SandboxError, Scope.Scope> =>
  Effect.gen(function* () {
    const sandbox = yield* create(account, plan, leave)
    const execs = yield* Execs.make(sandbox)
    const found = yield* survey(plan, execs)
    if (found.directory === "none") return yield* unavailable(Survey.blocked(plan.cwd, found.why))
    return { found, execs }
  })
