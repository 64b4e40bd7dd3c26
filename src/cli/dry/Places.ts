/** Whether sandboxes work here and images can be had: chosen among backends as a run chooses, nothing started or pulled. */
import { Effect, Either } from "effect"
import type { DatasetService } from "../../dataset/Dataset.ts"
import type { Settings } from "../../RunConfig.ts"
import * as Auto from "../../sandbox/Auto.ts"
import * as Docker from "../../sandbox/Docker.ts"
import type { Image, Inspection } from "../../sandbox/Inspection.ts"
import * as Local from "../../sandbox/Local.ts"
import * as Modal from "../../sandbox/Modal.ts"
import type { SandboxError } from "../../sandbox/Sandbox.ts"
import * as Singularity from "../../sandbox/Singularity.ts"
import * as Backend from "../Backend.ts"

export interface Places {
  /** What was found, by backend. */
  readonly told: ReadonlyArray<readonly [backend: string, what: string]>
  /** Why a run would not begin. */
  readonly problems: ReadonlyArray<string>
  /** Why no prompt with an image would have a sandbox, undefined when they may. */
  readonly imageless: string | undefined
  readonly image: (name: string) => Effect.Effect<Image>
}

type Inspected = Either.Either<Inspection, SandboxError>

const unchecked: Image = { _tag: "Unknown", why: "not checked, as its sandbox does not work" }

const look = (inspected: Inspected, name: string): Effect.Effect<Image> =>
  Either.match(inspected, {
    onLeft: () => Effect.succeed(unchecked),
    onRight: ({ image }) =>
      Effect.catchAll(image(name), ({ message }) => Effect.succeed<Image>({ _tag: "Missing", why: message }))
  })

const whatOf = (inspected: Inspected): string =>
  Either.match(inspected, { onLeft: () => "does not work here", onRight: ({ told }) => told })

/** One backend for all prompts. */
const only = (backend: string, inspected: Inspected): Places => ({
  told: [[backend, whatOf(inspected)]],
  problems: Either.match(inspected, { onLeft: ({ message }) => [message], onRight: () => [] }),
  imageless: undefined,
  image: (name) => look(inspected, name)
})

/** As `Auto` chooses by prompt: what it only warns of, since some prompts can run, counts as a problem here. */
const chosen = Effect.fn("Places.chosen")(function* (config: Settings, folder: string, dataset: DatasetService) {
  const { images, plain } = Backend.wanted(config, dataset)
  const options = Backend.containerOptions(config)
  const singularity = yield* Effect.cached(Effect.either(Singularity.inspect(options)))
  const engine = images ? yield* Effect.either(Docker.answers) : undefined
  const told: Array<readonly [string, string]> = []
  const problems: Array<string> = []
  const note = (backend: string, inspected: Inspected) => {
    told.push([backend, whatOf(inspected)])
    if (Either.isLeft(inspected)) problems.push(inspected.left.message)
  }
  if (plain) note("local", yield* Effect.either(Local.inspect(Backend.localOptions(config, folder))))
  if (engine === undefined) return { told, problems, imageless: undefined, image: () => Effect.succeed(unchecked) }
  if (Either.isRight(engine)) {
    const docker = yield* Effect.either(Docker.inspect(options))
    note("docker", docker)
    const image = (name: string) =>
      Auto.isForeign(name) ? Effect.flatMap(singularity, (found) => look(found, name)) : look(docker, name)
    return { told, problems, imageless: undefined, image }
  }
  const found = yield* singularity
  const imageless = Either.match(found, {
    onLeft: ({ message }) => `there is no container engine: ${Auto.install} (${engine.left.message}; ${message})`,
    onRight: () => undefined
  })
  told.push(["singularity", Either.isLeft(found) ? "not here, and no container engine answers" : found.right.told])
  return { told, problems, imageless, image: (name: string) => look(found, name) }
})

/** What `--sandbox` would give the run whose files lie in `folder`. */
export const inspect = (config: Settings, folder: string, dataset: DatasetService): Effect.Effect<Places> => {
  const misfit = Backend.misfit(config, dataset)
  if (misfit !== undefined) {
    const image = () => Effect.succeed(unchecked)
    return Effect.succeed({ told: [], problems: [misfit.message], imageless: undefined, image })
  }
  const options = Backend.containerOptions(config)
  const by = (inspection: Effect.Effect<Inspection, SandboxError>) =>
    Effect.map(Effect.either(inspection), (inspected) => only(config.sandbox, inspected))
  switch (config.sandbox) {
    case "local":
      return by(Local.inspect(Backend.localOptions(config, folder)))
    case "docker":
      return by(Docker.inspect(options))
    case "singularity":
      return by(Singularity.inspect(options))
    case "modal":
      return by(Modal.inspect)
    case "auto":
      return chosen(config, folder, dataset)
  }
}
