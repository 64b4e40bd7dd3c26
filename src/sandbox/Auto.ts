/** Where each prompt's sandbox comes from when nobody has said: containers for those that name an image, this machine for the rest. */
import { Context, Effect, Layer, type Scope } from "effect"
import { SandboxError, Sandboxes } from "./Sandbox.ts"
import * as Reference from "./singularity/Reference.ts"

type Source = Layer.Layer<Sandboxes, SandboxError>

export interface Options {
  readonly local: Source
  readonly docker: Source
  readonly singularity: Source
  /** Fails when no container engine answers, and says why. */
  readonly engine: Effect.Effect<unknown, SandboxError>
  /** Whether some prompts name an image, and whether some name none: only what is needed is made ready. */
  readonly images: boolean
  readonly plain: boolean
}

/** A file or folder on the runner's machine, or an address of another kind than Docker's, which only Singularity takes for an image. */
export const isForeign = (image: string): boolean => {
  const read = Reference.read(image, "/")
  return read._tag === "Local" || !read.address.startsWith("docker://")
}

/** Makes what is wanted once, when it is first wanted, for as long as the scope is open. */
const once = (source: Source, scope: Scope.Scope) =>
  Effect.cached(Effect.map(Layer.buildWithScope(source, scope), (context) => Context.get(context, Sandboxes)))

export const install = "install and start Docker or Podman, or install Apptainer"

const nowhere = (image: string) =>
  new SandboxError({
    reason: "Unavailable",
    detail: `The image ${image} needs a container engine, and none was found at the start: ${install}`
  })

/**
 * Prompts with an image go to Docker if an engine answers at the start, else to Singularity if it is installed, else they fail with
 * what to install; what only Singularity knows, such as files and folders, always goes there; prompts without an image stay on this machine.
 */
export const layer = (options: Options): Layer.Layer<Sandboxes, SandboxError> =>
  Layer.scoped(
    Sandboxes,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const [local, docker, singularity] = yield* Effect.all([
        once(options.local, scope),
        once(options.docker, scope),
        once(options.singularity, scope)
      ])
      const engine = yield* options.images ? Effect.either(options.engine) : Effect.succeed(undefined)
      // What stands in the way of a setting is told before anything is paid for.
      if (options.plain) yield* local
      if (engine?._tag === "Right") yield* docker
      if (engine?._tag === "Left") {
        const found = yield* Effect.either(singularity)
        yield* found._tag === "Right"
          ? Effect.logInfo(`images run in Singularity: ${engine.left.message}`)
          : Effect.logWarning(
              `there is no container engine, and prompts with an image will fail: ${install} (${engine.left.message}; ${found.left.message})`
            )
      }
      const containers = (image: string) =>
        engine === undefined || engine._tag === "Right" ? docker : Effect.mapError(singularity, () => nowhere(image))
      return {
        lazy: ({ image }) => image === "",
        open: (spec) =>
          Effect.flatMap(
            spec.image === "" ? local : isForeign(spec.image) ? singularity : containers(spec.image),
            ({ open }) => open(spec)
          )
      }
    })
  )
