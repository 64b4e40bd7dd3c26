/** One sandbox at Modal: made for a prompt, looked into, and terminated when its scope closes, whatever came between. */
import { Effect, type Scope } from "effect"
import type { Image, Sandbox, SandboxCreateParams } from "modal"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"
import * as Survey from "../Survey.ts"
import { type Account, call, isMissing, type ModalError, toSandboxError, unavailable, wait } from "./Account.ts"
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

/** Counts the sandboxes that may exist: what a layer looks for when it closes. */
export interface Books {
  readonly begun: () => void
  readonly gone: () => void
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
const release = (sandbox: Sandbox, books: Books): Effect.Effect<void> =>
  call(() => sandbox.terminate()).pipe(
    Effect.catchIf(isMissing, () => Effect.void),
    Effect.match({ onFailure: ({ message }) => message, onSuccess: () => "" }),
    (terminated) => Proc.atMost(terminated, releaseLimit),
    Effect.flatMap((why = "Modal does not answer") =>
      why === "" ? Effect.sync(books.gone) : told(sandbox.sandboxId, why)
    ),
    Effect.ensuring(Effect.sync(() => sandbox.detach()))
  )

/** What a failed call may have made all the same. */
const isOpen = ({ status }: ModalError) => [1, 2, deadline, 13, 14].includes(status)

const deadline = 4

/** Makes a sandbox. Interrupted meanwhile, it terminates the one that comes of it. */
const create = (account: Account, plan: Plan, books: Books): Effect.Effect<Sandbox, SandboxError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      books.begun()
      const pending = account.client.sandboxes.create(account.app, plan.image, plan.params)
      const abandoned = wait(() => pending.then((sandbox) => Effect.runPromise(release(sandbox, books))))
      const sandbox = yield* restore(call(() => pending, limits.create)).pipe(
        Effect.onInterrupt(() => Proc.atMost(Effect.ignore(abandoned), releaseLimit)),
        Effect.tapError((error) =>
          isOpen(error) ? Effect.forkDaemon(Effect.ignore(abandoned)) : Effect.sync(books.gone)
        ),
        Effect.mapError(toSandboxError(`A Modal sandbox of ${plan.name} could not be made`))
      )
      yield* Effect.addFinalizer(() => release(sandbox, books))
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
export const open = (account: Account, plan: Plan, books: Books): Effect.Effect<Box, SandboxError, Scope.Scope> =>
  Effect.gen(function* () {
    const sandbox = yield* create(account, plan, books)
    const execs = yield* Execs.make(sandbox)
    const found = yield* survey(plan, execs)
    if (found.directory === "none") return yield* unavailable(Survey.blocked(plan.cwd, found.why))
    return { found, execs }
  })
