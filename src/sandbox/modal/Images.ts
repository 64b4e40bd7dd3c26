/** The images of a run: each is built at Modal once, however many prompts want it, and what cannot be had is known from then on. */
import { Deferred, Effect, Exit, FiberId, type Scope } from "effect"
import type { Image } from "modal"
import { SandboxError } from "../Sandbox.ts"
import { type Account, call, isPassing, type ModalError, toSandboxError } from "./Account.ts"

/** Gives an image that Modal has built. */
export type Images = (name: string) => Effect.Effect<Image, SandboxError>

/** Seconds for Modal to fetch and build one. */
const buildLimit = 1800

const normalize = (image: string): string => image.trim().replace(/^docker:\/\//, "")

// It becomes a line of a Dockerfile, where anything else would be a command for the builder.
const nameable = /^[\w][\w.\-/:@]*$/

const absent =
  /not found|unknown|does not exist|no such image|denied|unauthorized|forbidden|invalid (image )?reference|pull access|could not be pulled|failed to (pull|resolve)/i

const missing = (name: string, why: string) =>
  new SandboxError({ reason: "ImageMissing", detail: `The image ${name} cannot be had at Modal: ${why}` })

const lastWords = (log: string): string =>
  log
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .slice(-3)
    .join("; ")
    .slice(-500)

const buildError = (account: Account, name: string) => (error: ModalError) => {
  const { message } = error
  const failed = /^Image build for (\S+) (failed|timed out|terminated)/.exec(message)
  const [, imageId = "", how] = failed ?? []
  if (how === undefined) {
    // What is wrong with the name is said before anything is built.
    if (isPassing(error) || error.status === 0) return toSandboxError(`The image ${name} could not be built`)(error)
    const told = toSandboxError("")(error)
    return error.status === 16 || error.status === 7 ? told : missing(name, message)
  }
  if (how !== "failed") return new SandboxError({ reason: "StartFailed", detail: `The image ${name}: ${message}` })
  const reason = message.replace(/^Image build for \S+ failed with the exception: ?/, "")
  const log = lastWords(account.log(imageId))
  const why = [reason, log].filter((part) => part !== "").join(" — ") || "Modal gave no reason"
  if (absent.test(why)) return missing(name, why)
  return new SandboxError({ reason: "ImageUnfit", detail: `Modal cannot build a sandbox of the image ${name}: ${why}` })
}

const build = (account: Account, name: string): Effect.Effect<Image, SandboxError> =>
  // Modal hands a sandbox's command to the image's entry point, which may do anything with it.
  call(
    () => account.client.images.fromRegistry(name).dockerfileCommands(["ENTRYPOINT []"]).build(account.app),
    buildLimit
  ).pipe(Effect.mapError(buildError(account, name)))

/** Builds go on while the scope is open, also when the prompt that began one is interrupted. */
export const make = (account: Account): Effect.Effect<Images, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const known = new Map<string, Deferred.Deferred<Image, SandboxError>>()
    return (given) =>
      Effect.suspend(() => {
        const name = normalize(given)
        if (!nameable.test(name)) return missing(JSON.stringify(given.slice(0, 200)), "that is no name of an image")
        const before = known.get(name)
        if (before !== undefined) return Deferred.await(before)
        const built = Deferred.unsafeMake<Image, SandboxError>(FiberId.none)
        known.set(name, built)
        return build(account, name).pipe(
          Effect.onExit((exit) => {
            if (Exit.isFailure(exit) && !lasting(exit)) known.delete(name)
            return Deferred.done(built, exit)
          }),
          Effect.interruptible,
          Effect.forkIn(scope),
          Effect.zipRight(Deferred.await(built))
        )
      })
  })

const lasting = (exit: Exit.Failure<Image, SandboxError>): boolean =>
  exit.cause._tag === "Fail" && !exit.cause.error.transient
