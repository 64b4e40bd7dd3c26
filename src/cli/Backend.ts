/** Which sandboxes a run gets: its backend by option and by what its prompts name, with its limits, its pace and its releases. */
import { dirname } from "node:path"
import { Context, Effect, Layer } from "effect"
import { Dataset, type DatasetService } from "../dataset/Dataset.ts"
import type { Settings } from "../RunConfig.ts"
import * as Auto from "../sandbox/Auto.ts"
import * as Docker from "../sandbox/Docker.ts"
import * as Local from "../sandbox/Local.ts"
import * as Modal from "../sandbox/Modal.ts"
import { type ContainerOptions, type SandboxError, Sandboxes } from "../sandbox/Sandbox.ts"
import * as Singularity from "../sandbox/Singularity.ts"
import * as Startup from "../sandbox/Startup.ts"
import * as Trace from "../sandbox/Trace.ts"
import * as ConfigFile from "./ConfigFile.ts"
import { UsageError } from "./UsageError.ts"

type Source = Layer.Layer<Sandboxes, SandboxError>

/** Seconds that a container outlives the time of its prompt: for its start, and for the release to come first. */
const margin = 900

/** A data set and a backend that do not fit: the first line that shows it. */
export const misfit = (
  config: Settings,
  { path, firstImageLine, firstPlainLine }: DatasetService
): UsageError | undefined => {
  const { sandbox, image } = config
  if (sandbox === "local" && firstImageLine > 0) {
    return new UsageError({
      detail: `--sandbox=local: ${path}:${firstImageLine} names an image, and the local sandbox runs none; leave --sandbox out, or the image`
    })
  }
  if (sandbox !== "local" && sandbox !== "auto" && image === "" && firstPlainLine > 0) {
    return new UsageError({
      detail: `--sandbox=${sandbox}: ${path}:${firstPlainLine} names no image; give one to all such prompts, such as --image=python:3.11-slim, or leave --sandbox out`
    })
  }
  return undefined
}

/** Starts that bad luck stopped are tried again. */
const persistent = (source: Source): Source =>
  Layer.map(source, (context) => Context.make(Sandboxes, Startup.persistent(Context.get(context, Sandboxes))))

/** What a local sandbox is told, and what every container. */
export const localOptions = (config: Settings, folder: string): Local.Options => ({
  network: config.network,
  // Kept from others' eyes by its mode too, where it lies in no home.
  hide: [folder, dirname(folder), dirname(ConfigFile.pathOf(process.env))]
})
export const containerOptions = (config: Settings): ContainerOptions => ({
  run: config.run_name,
  network: config.network,
  cpus: config.cpus ?? undefined,
  memory: config.memory ?? undefined,
  lifetime: config.timeout + margin,
  ramp: Startup.ramp(config.sandbox_starts)
})

/** Whether some prompts run in containers, and whether some on this machine, when nobody has said where. */
export const wanted = (config: Settings, dataset: DatasetService) => ({
  images: dataset.firstImageLine > 0 || config.image !== "",
  plain: dataset.firstPlainLine > 0 && config.image === ""
})

const sourceOf = (config: Settings, folder: string, dataset: DatasetService): Source => {
  const options = containerOptions(config)
  const local = Local.layer(localOptions(config, folder))
  const docker = persistent(Docker.layer(options))
  const singularity = persistent(Singularity.layer(options))
  switch (config.sandbox) {
    case "local":
      return local
    case "docker":
      return docker
    case "singularity":
      return singularity
    case "modal":
      return persistent(Modal.layer(options))
    case "auto":
      return Auto.layer({
        local,
        docker,
        singularity,
        engine: Docker.answers,
        ...wanted(config, dataset)
      })
  }
}

/** What killed runs left in engines that this run may have no use for. */
const leftovers = [
  Trace.follow("docker", Docker.clean),
  Trace.follow("singularity", Singularity.clean),
  Trace.follow("modal", Modal.clean)
]

/** The sandboxes of the run whose files lie in `folder`. */
export const layer = (config: Settings, folder: string): Layer.Layer<Sandboxes, SandboxError | UsageError, Dataset> =>
  Layer.unwrapEffect(
    Effect.flatMap(Dataset, (dataset): Effect.Effect<Source, UsageError> => {
      const trouble = misfit(config, dataset)
      if (trouble !== undefined) return trouble
      const most = config.max_sandboxes ?? 2 * config.num_workers
      return Effect.succeed(
        Layer.scoped(
          Sandboxes,
          Effect.zipRight(
            Effect.forEach(leftovers, Startup.sweep, { discard: true }),
            Effect.flatMap(Sandboxes, (sandboxes) => Startup.behind(sandboxes, most))
          )
        ).pipe(Layer.provide(sourceOf(config, folder, dataset)))
      )
    })
  )
