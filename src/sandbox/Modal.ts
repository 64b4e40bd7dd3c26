/** Sandboxes at Modal, a service that runs containers: one for each prompt, billed to the user's account there. */
import { Effect, Either, Layer } from "effect"
import type { Sandbox, SandboxCreateParams } from "modal"
import type { Inspection } from "./Inspection.ts"
import * as Account from "./modal/Account.ts"
import * as Box from "./modal/Box.ts"
import * as Images from "./modal/Images.ts"
import * as Owner from "./Owner.ts"
import * as Proc from "./Proc.ts"
import * as Remote from "./Remote.ts"
import {
  type Cleaned,
  type ContainerOptions,
  cleaned,
  type SandboxError,
  Sandboxes,
  type SandboxService
} from "./Sandbox.ts"
import * as Session from "./Session.ts"
import * as Startup from "./Startup.ts"
import * as Survey from "./Survey.ts"
import * as Trace from "./Trace.ts"

/** Seconds that Modal lets a sandbox live at most. */
const longestLife = 86_400

/** Sandboxes terminated at the same time. */
const terminations = 8

/** Milliseconds for a layer that closes to look for what it may have left. */
const lastLook = 10_000

/** Characters of a tag at Modal. */
const tagLimit = 63

const tagged = (tags: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(tags).flatMap(([name, value]) => (value === "" ? [] : [[name, value.slice(0, tagLimit)]]))
  )

const all = async <A>(list: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const found: Array<A> = []
  for await (const one of list) found.push(one)
  return found
}

/** Terminates the sandboxes with these tags, and, where `wanted` is given, an owner for which it holds; gives how many. Fails when some stay. */
const terminateAll = (
  { client, app }: Account.Account,
  tags: Readonly<Record<string, string>>,
  wanted?: (owner: string) => boolean
): Effect.Effect<number, Account.ModalError> =>
  Effect.gen(function* () {
    const listed = yield* Account.call(() => all(client.sandboxes.list({ appId: app.appId, tags: tagged(tags) })))
    const end = (sandbox: Sandbox) =>
      Effect.gen(function* () {
        if (wanted !== undefined && !wanted((yield* Account.call(() => sandbox.getTags())).owner ?? "")) return false
        yield* Account.call(() => sandbox.terminate())
        return true
      }).pipe(
        // It may have come to its own end meanwhile.
        Effect.catchIf(Account.isMissing, () => Effect.succeed(false))
      )
    const tried = yield* Effect.forEach(
      listed,
      (sandbox) =>
        Effect.ensuring(
          Effect.either(end(sandbox)),
          Effect.sync(() => sandbox.detach())
        ),
      { concurrency: terminations }
    )
    const failed = tried.find(Either.isLeft)
    if (failed !== undefined) return yield* failed.left
    return tried.filter((one) => Either.isRight(one) && one.right).length
  })

/** Terminates what runners left that are dead for certain. */
const sweep = (account: Account.Account): Effect.Effect<Cleaned, Account.ModalError> =>
  Effect.map(terminateAll(account, { machine: Owner.machine() }, Owner.isDead), (count) =>
    cleaned(count, "Modal sandbox", "Modal sandboxes")
  )

/** Terminates the sandboxes that dead runners of this machine left at Modal; nothing to do where there is no token. */
export const clean: Effect.Effect<Cleaned, SandboxError> = Effect.scoped(
  Effect.gen(function* () {
    const account = yield* Account.find
    if (account === undefined) return []
    return yield* Effect.mapError(
      sweep(account),
      Account.toSandboxError("The Modal sandboxes of dead runs could not be terminated")
    )
  })
)

/** The account as a run would find it, with the same failures, and nothing made or billed. */
export const inspect: Effect.Effect<Inspection, SandboxError> = Effect.map(Account.look, (made) => ({
  told: made ? "Modal takes the token" : "Modal takes the token, and makes its app at first use",
  image: () => Effect.succeed({ _tag: "Unknown", why: "built at first use, not checked" })
}))

const paramsOf = (options: ContainerOptions, tags: Readonly<Record<string, string>>): SandboxCreateParams => ({
  command: Box.first,
  timeoutMs: Math.min(Math.max(Math.ceil(options.lifetime), 1), longestLife) * 1000,
  blockNetwork: !options.network,
  tags: tagged(tags),
  // What is asked for is kept free, and no more than that is given.
  ...(options.cpus !== undefined && { cpu: options.cpus, cpuLimit: options.cpus }),
  ...(options.memory !== undefined && mebibytes(options.memory))
})

const mebibytes = (bytes: number): Pick<SandboxCreateParams, "memoryMiB" | "memoryLimitMiB"> => {
  const memoryMiB = Math.max(1, Math.floor(bytes / 2 ** 20))
  return { memoryMiB, memoryLimitMiB: memoryMiB }
}

const noImage = Account.unavailable(
  "A Modal sandbox needs an image, and this prompt names none; give one to all by --image"
)

/** The service, but for results that only tell of the end of the sandbox itself. */
const guarded = (service: SandboxService, { execs }: Box.Box): SandboxService => {
  const checked = <A, E>(effect: Effect.Effect<A, E | SandboxError>): Effect.Effect<A, E | SandboxError> =>
    Effect.flatMap(Effect.exit(effect), (exit) => (execs.alive() ? exit : execs.lost()))
  return {
    ...service,
    exec: (command, options) => checked(service.exec(command, options)),
    start: (command, options) => checked(service.start(command, options)),
    read: (path, options) => checked(service.read(path, options)),
    write: (path, bytes) => checked(service.write(path, bytes))
  }
}

let layers = 0

/**
 * Sandboxes of the user's account at Modal, each terminated when its scope closes, and by Modal when its lifetime is over.
 * Fails with `Unavailable` when there is no token, when Modal refuses it, or when Modal does not answer.
 */
export const layer = (options: ContainerOptions): Layer.Layer<Sandboxes, SandboxError> =>
  Layer.scoped(
    Sandboxes,
    Effect.gen(function* () {
      const { ramp = (start) => start } = options
      const account = yield* Account.open
      const owner = `${Owner.here()}-${layers++}`
      let open = 0
      const books: Box.Books = {
        begun: () => {
          open++
        },
        gone: () => {
          open--
        }
      }
      // What was given up while it was made, or while it was released, is still known by its tags.
      yield* Effect.addFinalizer(() =>
        Effect.when(Proc.atMost(Effect.ignore(terminateAll(account, { owner })), lastLook), () => open > 0)
      )
      yield* Trace.leave("modal")
      yield* Startup.sweep(sweep(account))
      const images = yield* Images.make(account)

      return {
        open: Effect.fn("Modal.open")(function* (spec) {
          if (spec.image === "") return yield* noImage
          const trouble = Survey.unfit(spec.cwd)
          if (trouble !== undefined) return yield* Account.unavailable(Survey.blocked(spec.cwd, trouble))
          const plan: Box.Plan = {
            name: spec.image,
            image: yield* images(spec.image),
            params: paramsOf(options, { run: options.run, owner, machine: Owner.machine(), prompt: spec.id }),
            cwd: spec.cwd
          }
          const box = yield* ramp(Box.open(account, plan, books))
          const { found, execs } = box
          const service = yield* Session.make({
            cwd: found.cwd,
            home: found.home,
            shell: found.shell,
            id: "",
            make: Effect.suspend(() =>
              execs.alive() ? Effect.succeed(Remote.ground(execs, Effect.void)) : execs.lost()
            ),
            remove: Effect.void
          })
          return guarded(service, box)
        })
      }
    })
  )
