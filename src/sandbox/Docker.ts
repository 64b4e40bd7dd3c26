/** Sandboxes as containers of Docker, or of another engine that speaks its API, such as Podman. */
import type Dockerode from "dockerode"
import { Effect, Layer, Schema } from "effect"
import * as Client from "./docker/Client.ts"
import * as Container from "./docker/Container.ts"
import * as Endpoint from "./docker/Endpoint.ts"
import * as Images from "./docker/Images.ts"
import * as Inquiry from "./docker/Inquiry.ts"
import type { Inspection } from "./Inspection.ts"
import * as Limits from "./Limits.ts"
import * as Owner from "./Owner.ts"
import * as Proc from "./Proc.ts"
import * as Remote from "./Remote.ts"
import { type Cleaned, type ContainerOptions, cleaned, SandboxError, Sandboxes, type SandboxSpec } from "./Sandbox.ts"
import * as Session from "./Session.ts"
import * as Startup from "./Startup.ts"
import * as Survey from "./Survey.ts"
import * as Trace from "./Trace.ts"

export interface Options extends ContainerOptions {
  /** Address of the engine; by default what the environment, Docker's contexts or the usual sockets say. */
  readonly host?: string | undefined
}

const labels = {
  run: "batch-runner.run",
  process: "batch-runner.process",
  machine: "batch-runner.machine",
  prompt: "batch-runner.prompt"
}

const hints = "start it, or set DOCKER_HOST to its address (unix:///path, tcp://host:port, ssh://user@host)"

const unavailable = (detail: string) => new SandboxError({ reason: "Unavailable", detail })

const withoutPassword = (host: string) => host.replace(/(:\/\/[^/@:]*):[^/@]*@/, "$1@")

/** The first engine that answers. */
const connect = (host: string | undefined): Effect.Effect<Client.Client, SandboxError> =>
  Effect.gen(function* () {
    const places = host === undefined ? Endpoint.candidates(process.env) : [{ host, by: "the options" }]
    if (places.length === 0) {
      const looked = Endpoint.sockets(process.env).join(", ")
      return yield* unavailable(`No container engine found: there is no ${looked}; install Docker or Podman, ${hints}`)
    }
    const tried: Array<string> = []
    for (const place of places) {
      const client = yield* Effect.either(Client.connect(place))
      if (client._tag === "Right") return client.right
      tried.push(`${withoutPassword(place.host) || place.by} (${client.left.message})`)
    }
    const named = places[0]?.by === "its socket" ? "" : `, named by ${places[0]?.by}`
    const right = tried.some((one) => one.includes("EACCES")) ? "become a member of the socket's group, or " : ""
    return yield* unavailable(`No container engine answers at ${tried.join(", ")}${named}; ${right}${hints}`)
  })

const Info = Schema.Struct({
  NCPU: Schema.optional(Schema.Number),
  MemTotal: Schema.optional(Schema.Number),
  MemoryLimit: Schema.optional(Schema.Boolean),
  PidsLimit: Schema.optional(Schema.Boolean),
  CpuCfsQuota: Schema.optional(Schema.Boolean)
})

const Version = Schema.Struct({
  Components: Schema.optional(Schema.Array(Schema.Struct({ Name: Schema.optional(Schema.String) })))
})

const isPodman = (client: Client.Client) =>
  client
    .call((docker): Promise<unknown> => docker.version())
    .pipe(
      Effect.flatMap(Schema.decodeUnknown(Version)),
      Effect.map(({ Components = [] }) => Components.some(({ Name }) => Name?.startsWith("Podman") === true)),
      Effect.orElseSucceed(() => false)
    )

/** The limits of every container, as far as this engine can hold them. */
const limits = (client: Client.Client, options: Options): Effect.Effect<Dockerode.HostConfig, SandboxError> =>
  Effect.gen(function* () {
    const told = yield* client
      .call((docker): Promise<unknown> => docker.info())
      .pipe(Effect.mapError(Client.toSandboxError("The container engine does not describe itself", "Unavailable")))
    const info = yield* Schema.decodeUnknown(Info)(told).pipe(
      Effect.mapError(() => unavailable(`What answers at ${client.host} is no container engine`))
    )
    const supply = { cpus: info.NCPU ?? Number.POSITIVE_INFINITY, memory: info.MemTotal ?? Number.POSITIVE_INFINITY }
    const trouble = Limits.exceeded(options, supply, "the container engine")
    if (trouble !== undefined) return yield* trouble
    const lacking = [
      ...(info.MemoryLimit === false ? ["memory"] : []),
      ...(info.CpuCfsQuota === false ? ["processors"] : []),
      ...(info.PidsLimit === false ? ["processes"] : [])
    ]
    if (lacking.length > 0) {
      yield* Effect.logWarning(
        `the container engine cannot limit ${lacking.join(", ")} here: containers take what they get`
      )
    }
    const { cpus, memory } = Limits.granted(options, supply)
    return {
      // Podman may take a restart for the end, and remove what it is about to start.
      AutoRemove: !(yield* isPodman(client)),
      ...(info.MemoryLimit !== false && { Memory: memory, MemorySwap: memory }),
      ...(info.CpuCfsQuota !== false && { NanoCpus: Math.round(cpus * 1e9) }),
      ...(info.PidsLimit === false && { PidsLimit: 0 }),
      ...(!options.network && { NetworkMode: "none" })
    }
  })

/** Fails when no engine answers, and says where it was looked for. */
export const answers: Effect.Effect<void, SandboxError> = Effect.asVoid(Effect.suspend(() => connect(undefined)))

/** The engine as a run would find it, with the same failures, and nothing started. */
export const inspect = Effect.fn("Docker.inspect")(function* (options: Options) {
  const client = yield* connect(options.host)
  yield* limits(client, options)
  const podman = yield* isPodman(client)
  const found: Inspection = {
    told: `the container engine at ${withoutPassword(client.host)} answers`,
    image: Inquiry.make(client, !podman)
  }
  return found
})

/** The containers of runners that are dead for certain, or, with `mine`, those of this very process. */
const owned = (client: Client.Client, mine: string | undefined) =>
  Effect.map(
    client.call((docker) => docker.listContainers({ all: true, filters: { label: [labels.process] } })),
    (containers) =>
      containers.filter(({ Labels }) => {
        if (Labels[labels.machine] !== Owner.machine()) return false
        const owner = Labels[labels.process] ?? ""
        return mine === undefined ? Owner.isDead(owner) : owner === mine
      })
  )

/** Milliseconds for a layer that closes to look for what it may have left. */
const lastLook = 30_000

/** Containers removed at the same time. */
const removals = 8

/** Removes them all; fails when some would not go. */
const removeAll = (client: Client.Client, mine: string | undefined) =>
  Effect.gen(function* () {
    const found = yield* owned(client, mine)
    const tried = yield* Effect.forEach(
      found,
      ({ Id }) => Effect.either(Container.remove(client, client.docker.getContainer(Id))),
      { concurrency: removals }
    )
    const [first, ...others] = tried.flatMap((one) => (one._tag === "Left" ? [one.left] : []))
    if (first === undefined) return found.length
    const { status, message } = first
    return yield* new Client.EngineError({
      status,
      message: `${others.length + 1} of ${found.length} stay: ${message}`
    })
  })

const cleanBy = (client: Client.Client) =>
  Effect.map(removeAll(client, undefined), (count) => cleaned(count, "container"))

/** Removes the containers that dead runners left on this machine; fails when no engine answers. */
export const clean: Effect.Effect<Cleaned, SandboxError> = Effect.flatMap(
  Effect.suspend(() => connect(undefined)),
  (client) =>
    Effect.mapError(
      cleanBy(client),
      Client.toSandboxError("The containers of dead runs could not be removed", "StartFailed")
    )
)

const noImage = unavailable("A container needs an image, and this prompt names none; give one to all by --image")

let layers = 0

/**
 * Containers of one engine, each removed when its scope closes. Fails with `Unavailable` when no engine answers, or when it
 * has less than what is asked for each.
 */
export const layer = (options: Options): Layer.Layer<Sandboxes, SandboxError> =>
  Layer.scoped(
    Sandboxes,
    Effect.gen(function* () {
      const client = yield* connect(options.host)
      const host = yield* limits(client, options)
      yield* Trace.leave("docker")
      yield* Startup.sweep(cleanBy(client))
      // What an interruption left half made is still known by its label.
      const owner = `${Owner.here()}-${layers++}`
      yield* Effect.addFinalizer(() => Proc.atMost(Effect.ignore(removeAll(client, owner)), lastLook))
      const images = yield* Images.make(client)
      const { ramp = (start) => start } = options
      let opened = 0

      const kind = (container: Container.Container): Session.Kind => ({
        cwd: container.found.cwd,
        home: container.found.home,
        shell: container.found.shell,
        id: "",
        make: Effect.suspend(() =>
          container.engine.alive()
            ? Effect.succeed(Remote.ground(container.engine, Effect.void))
            : new SandboxError({ reason: "Lost", detail: "The sandbox's container has ended" })
        ),
        remove: Effect.void
      })

      return {
        open: Effect.fn("Docker.open")(function* (spec: SandboxSpec) {
          if (spec.image === "") return yield* noImage
          const trouble = Survey.unfit(spec.cwd)
          if (trouble !== undefined) return yield* unavailable(Survey.blocked(spec.cwd, trouble))
          const image = yield* images.have(spec.image)
          const plan: Container.Plan = {
            name: `batch-runner-${owner}-${spec.id}-${opened++}`,
            image,
            labels: {
              [labels.run]: options.run,
              [labels.process]: owner,
              [labels.machine]: Owner.machine(),
              [labels.prompt]: spec.id
            },
            cwd: spec.cwd,
            lifetime: options.lifetime,
            host
          }
          const create = Effect.tapError(Container.create(client, plan), () => Effect.sync(() => images.forget(image)))
          const made = Effect.acquireRelease(create, (made) =>
            Effect.catchAll(Container.remove(client, made), ({ message }) =>
              Effect.logWarning(
                `the container ${plan.name} could not be removed: ${message}; \`batch-runner clean\` does it later`
              )
            )
          )
          const container = yield* ramp(Effect.flatMap(made, (made) => Container.start(client, plan, made)))
          return yield* Session.make(kind(container))
        })
      }
    })
  )
