/** Sandboxes in containers of Apptainer or Singularity: an instance for each prompt, without a daemon, and without root. */
import { mkdirSync } from "node:fs"
import { availableParallelism, homedir, tmpdir, totalmem } from "node:os"
import { basename, join } from "node:path"
import { Effect, Either, Layer, type Scope } from "effect"
import * as Fifo from "./Fifo.ts"
import type { Inspection } from "./Inspection.ts"
import * as Limits from "./Limits.ts"
import * as Place from "./Place.ts"
import * as Proc from "./Proc.ts"
import {
  type Cleaned,
  type ContainerOptions,
  SandboxError,
  Sandboxes,
  type SandboxService,
  type SandboxSpec
} from "./Sandbox.ts"
import * as Session from "./Session.ts"
import * as Startup from "./Startup.ts"
import * as Survey from "./Survey.ts"
import * as Cache from "./singularity/Cache.ts"
import * as Complaint from "./singularity/Complaint.ts"
import * as Inquiry from "./singularity/Inquiry.ts"
import * as Inside from "./singularity/Inside.ts"
import * as Instance from "./singularity/Instance.ts"
import * as Leftovers from "./singularity/Leftovers.ts"
import * as Members from "./singularity/Members.ts"
import * as Program from "./singularity/Program.ts"
import * as Trace from "./Trace.ts"

export interface Options extends ContainerOptions {
  /** Folder of converted images; by default `batch-runner/singularity` in the user's folder for caches. */
  readonly cache?: string | undefined
  /** Folder for what sandboxes write; by default that for temporary files. It should lie on a local disk. */
  readonly root?: string | undefined
  /** The program, by path or name; by default BATCH_RUNNER_APPTAINER, else `apptainer` or `singularity` on PATH. */
  readonly program?: string | undefined
}

/** Milliseconds for the first look inside. */
const lookLimit = 60_000

/** Milliseconds for all that clears away after one sandbox. */
const releaseLimit = 20_000

const defaultCache = (): string =>
  join(process.env.XDG_CACHE_HOME?.trim() || join(homedir(), ".cache"), "batch-runner", "singularity")

/** What all sandboxes of one layer have in common. */
interface Yard {
  readonly options: Options
  readonly program: string
  readonly base: string
  readonly pipes: Fifo.Pool
  readonly cache: Cache.Cache
  readonly means: Instance.Means
  /** Whether image files can be mounted, as far as starts have shown. */
  mounts: boolean
}

const unavailable = (detail: string) => new SandboxError({ reason: "Unavailable", detail })

const blocked = (cwd: string, by: string) => unavailable(Survey.blocked(cwd, by))

const imageless = unavailable(
  "A Singularity sandbox needs an image, and this prompt names none: give it an `image`, or all of them one by --image."
)

/** An instance, and how another is started in its place, with what it wrote. */
interface Begun {
  readonly started: Instance.Started
  readonly again: Effect.Effect<Instance.Started, SandboxError>
  /** The image's own working directory. */
  readonly directory: string
}

/** Starts an instance; an image file that turns out not to be mountable here is unpacked first. */
const begin = (yard: Yard, spec: SandboxSpec, number: number): Effect.Effect<Begun, SandboxError> =>
  Effect.gen(function* () {
    const { mounts, options, base } = yard
    const { ramp = (start) => start } = options
    const found = yield* yard.cache.image(spec.image, mounts)
    // Half started it could be found by nobody.
    const again = Effect.uninterruptible(
      Instance.start({
        program: yard.program,
        image: found,
        name: `${basename(base)}-${number}`,
        place: join(base, `${number}`),
        network: options.network,
        memory: Limits.granted(options, supply()).memory,
        cpus: options.cpus,
        means: yard.means,
        script: Inside.startscript(spec.cwd, found.directory || "/")
      })
    )
    const first = yield* Effect.either(ramp(again))
    if (Either.isRight(first)) return { again, directory: found.directory, started: first.right }
    if (!mounts || !/loop device|squashfs|squashfuse|\bfuse\b/i.test(first.left.detail)) return yield* first.left
    yard.mounts = false
    return yield* begin(yard, spec, number)
  })

/** The first look by a program of its own, where the instance has run none at its start. */
const lookAgain = (started: Instance.Started, spec: SandboxSpec, directory: string) =>
  Effect.gen(function* () {
    const ended = yield* Program.run(started.argv(Inside.look(spec.cwd, directory || "/"), "/"), {
      env: started.env,
      millis: lookLimit
    })
    const survey = Inside.survey(ended.output)
    return survey ?? (yield* Complaint.start(spec.image, ended.errors || "a shell inside gave no answer"))
  })

/** The first look inside: what the session needs to know, and the working directory made. */
const look = (yard: Yard, started: Instance.Started, spec: SandboxSpec, directory: string) =>
  Effect.gen(function* () {
    const printed = yield* started.printed((text) => Inside.survey(text) !== undefined)
    const survey = Inside.survey(printed) ?? (yield* lookAgain(started, spec, directory))
    if (!yard.options.network && survey.devices.length > 0) {
      return yield* unavailable(
        `--network=off is not kept by Singularity sandboxes here (there is ${survey.devices.join(", ")} inside): run as root, allow user namespaces, or leave --network out.`
      )
    }
    if (survey.blocked !== undefined) return yield* blocked(spec.cwd, survey.blocked)
    return survey
  })

/** Ends whatever instance has that name. */
const endNamed = (name: string): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      Members.list((one) => one === name),
      Members.end,
      { discard: true }
    )
  )

/** The longest time that a timer can wait. */
const longestTimer = 2 ** 31 - 1

/** One prompt's sandbox, ready for its first command. */
const opened = (
  yard: Yard,
  spec: SandboxSpec,
  number: number
): Effect.Effect<SandboxService, SandboxError, Scope.Scope> =>
  Effect.gen(function* () {
    if (spec.image === "") return yield* imageless
    const wrong = Survey.unfit(spec.cwd)
    if (wrong !== undefined) return yield* blocked(spec.cwd, wrong)
    const id = `${basename(yard.base)}-${number}`
    let current: Instance.Started | undefined
    const end = Effect.suspend(() => current?.end ?? endNamed(id))
    yield* Effect.addFinalizer(() =>
      Proc.atMost(Effect.zipRight(end, Place.remove(join(yard.base, `${number}`))), releaseLimit)
    )
    const { again, directory, started } = yield* begin(yard, spec, number)
    current = started
    const survey = yield* look(yard, started, spec, directory)
    let used = false
    let over = false
    const lifetime = Proc.pause(Math.min(yard.options.lifetime * 1000, longestTimer))
    yield* Effect.forkScoped(
      Effect.andThen(lifetime, () => {
        over = true
        return end
      })
    )
    return yield* Session.make({
      cwd: survey.cwd,
      home: survey.home,
      shell: survey.shell,
      id: "",
      make: Effect.gen(function* () {
        if (over) {
          const detail = `The sandbox has ended: ${yard.options.lifetime} seconds are the longest one may last.`
          return yield* new SandboxError({ reason: "Lost", detail })
        }
        current = used ? yield* again : started
        used = true
        return current.ground(survey.home, yard.pipes)
      }),
      remove: Effect.void
    })
  })

const makeFolder = (folder: string) =>
  Effect.try({
    try: () => mkdirSync(folder, { recursive: true, mode: 0o700 }),
    catch: (cause) => unavailable(`The folder for sandboxes, ${folder}, cannot be made: ${cause}`)
  })

/** Whether the program runs at all, found before anything is paid for. */
const probe = (program: string) =>
  Effect.gen(function* () {
    const ended = yield* Program.run([program, "--version"], { env: { PATH: Program.path }, millis: 30_000 })
    if (ended.exitCode === 0 && /apptainer|singularity|version/i.test(ended.output)) return
    return yield* unavailable(`${program} does not run: ${Complaint.line(ended.errors || ended.output)}`)
  })

/** What this machine has. */
const supply = (): Limits.Supply => ({ cpus: availableParallelism(), memory: totalmem() })

/** The program, if it runs and this machine has what each sandbox is to get. */
const ready = (options: Options) =>
  Effect.gen(function* () {
    const program = yield* Program.find(options.program)
    yield* probe(program)
    const trouble = Limits.exceeded(options, supply(), "this machine")
    return trouble === undefined ? program : yield* trouble
  })

/** The program as a run would find it, with the same failures, and nothing started. */
export const inspect = Effect.fn("Singularity.inspect")(function* (options: Options) {
  const program = yield* ready(options)
  const found: Inspection = {
    told: `${program} runs`,
    image: (name) => Inquiry.ask(options.cache ?? defaultCache(), name)
  }
  return found
})

/**
 * Sandboxes by Apptainer or Singularity. Opening one fetches and converts its image where that has not been done on this machine,
 * and starts an instance of it. Fails with `Unavailable` when there is no such program, or when it does not run.
 */
export const layer = (options: Options): Layer.Layer<Sandboxes, SandboxError> =>
  Layer.scoped(
    Sandboxes,
    Effect.gen(function* () {
      const program = yield* ready(options)
      const root = options.root ?? tmpdir()
      const cache = options.cache ?? defaultCache()
      const base = join(root, Leftovers.name())
      yield* makeFolder(base)
      yield* Effect.addFinalizer(() => Place.remove(base))
      yield* Leftovers.guard(base)
      yield* Trace.leave("singularity")
      yield* Startup.sweep(Leftovers.remove({ root, cache }))
      const yard: Yard = {
        ...{ options, program, base },
        pipes: Fifo.pool(join(base, "pipes")),
        cache: yield* Cache.make(program, cache),
        means: { groups: true, overlay: true },
        mounts: Cache.mounts()
      }
      let count = 0
      return { open: (spec) => Effect.suspend(() => opened(yard, spec, count++)) }
    })
  )

/** Removes what dead runners left on this machine: instances, their folders, half-converted images. Converted images stay. */
export const clean: Effect.Effect<Cleaned> = Effect.suspend(() =>
  Leftovers.remove({ root: tmpdir(), cache: defaultCache() })
)
