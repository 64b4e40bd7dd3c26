/** One prompt's instance: how it is started from an image, how programs join it, and how it ends. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import * as Fifo from "../Fifo.ts"
import * as Host from "../Host.ts"
import * as Place from "../Place.ts"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"
import type { Ground } from "../Session.ts"
import * as Complaint from "./Complaint.ts"
import * as Inside from "./Inside.ts"
import * as Members from "./Members.ts"
import * as Program from "./Program.ts"
import * as StartScript from "./StartScript.ts"

/** What works on this machine, as the starts so far have shown. */
export interface Means {
  /** Control groups hold memory, processors and processes; else the system's limits on a process do what they can. */
  groups: boolean
  /** A folder on the disk takes what is written; else it is memory, and little of it. */
  overlay: boolean
}

export interface Options {
  readonly program: string
  /** File or folder of the image, and what people call it. */
  readonly image: { readonly path: string; readonly name: string }
  /** Unique on this machine. */
  readonly name: string
  /** Folder of this instance alone. */
  readonly place: string
  readonly network: boolean
  /** Bytes. */
  readonly memory: number
  readonly cpus: number | undefined
  readonly means: Means
  /** Run inside at its start, where that is possible. */
  readonly script: string
}

/** Processes of one sandbox at most. */
const processes = 512

/** Milliseconds for an instance to start. */
const startLimit = 60_000

/** Bytes of arguments that the program carries inside by itself; written as JSON they grow up to six times, and a megabyte is its limit. */
const carried = 120_000

// What package managers need of root, and no more.
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE"]

const isRoot = () => process.geteuid?.() === 0

const rights = (): ReadonlyArray<string> =>
  isRoot() ? ["--no-privs", "--add-caps", capabilities.map((name) => `CAP_${name}`).join(",")] : ["--userns"]

// Root inside is root of the machine where there is no user namespace: its settings must not be within reach. /dev/full is
// missing from the devices that the program itself provides.
const bound = (): ReadonlyArray<string> => {
  const guarded = isRoot() ? ["sys", "irq", "bus", "fs", "sysrq-trigger"].map((name) => `/proc/${name}`) : []
  const binds = [...guarded.map((path) => [path, ":ro"]), ["/dev/full", ""]]
  return binds.flatMap(([path = "", mode]) => (existsSync(path) ? ["--bind", `${path}:${path}${mode}`] : []))
}

const starting = ({ program, image, name, place, network, memory, cpus, means }: Options): ReadonlyArray<string> => [
  ...[program, "--quiet", "instance", "start", "--containall", "--cleanenv", "--no-home"],
  ...["--no-mount", "bind-paths,hostfs,sys,tmp", "--uts", "--hostname", "sandbox"],
  ...["--pid-file", join(place, "pid"), ...rights(), ...bound()],
  ...(network ? [] : ["--net", "--network", "none"]),
  ...(means.overlay ? ["--overlay", join(place, "overlay")] : ["--writable-tmpfs"]),
  ...(means.groups ? ["--memory", `${memory}`, "--pids-limit", `${processes}`] : []),
  ...(means.groups && cpus !== undefined ? ["--cpus", `${cpus}`] : []),
  ...[image.path, name]
]

const noGroups = (why: string, memory: number) =>
  `No control groups for Singularity sandboxes here (${why}): each process of a sandbox may have ${Math.round(memory / 2 ** 20)} MiB of data` +
  `${isRoot() ? "" : `, all of them together are ${processes} at most`}, and --cpus has no effect.`

const noOverlay = (why: string) =>
  `Singularity sandboxes cannot write to the folder for temporary files here (${why}): what they write is kept in memory, 64 MB at most ` +
  "unless the system's administrator allows more; let TMPDIR name a folder on a local disk."

const firstOf = (place: string): number | undefined => {
  const text = Either.getOrElse(
    Either.try(() => readFileSync(join(place, "pid"), "utf8")),
    () => ""
  )
  return Number.parseInt(text, 10) || undefined
}

const environment = (place: string) => ({
  PATH: Program.path,
  ...Inside.environment(join(place, "config"), join(place, "tmp"))
})

/** What rootless control groups are asked for by. */
const session = () => {
  const { XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS } = process.env
  return { XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS }
}

/** Starts it with what works here; a means that turns out not to work is given up, for all that follow too. */
const begin = (options: Options): Effect.Effect<number, SandboxError> =>
  Effect.gen(function* () {
    const { means, place, image, name } = options
    const given = { ...means }
    const ended = yield* Program.run(starting(options), {
      env: { ...environment(place), ...session() },
      millis: startLimit
    })
    const first = firstOf(place)
    if (ended.exitCode === 0 && first !== undefined) return first
    yield* Effect.forEach(
      Members.list((one) => one === name),
      Members.end,
      { discard: true }
    )
    const why = Complaint.line(ended.errors)
    if (given.groups && /cgroup|systemd|dbus/i.test(ended.errors)) {
      if (means.groups) yield* Effect.logWarning(noGroups(why, options.memory))
      means.groups = false
      return yield* begin(options)
    }
    if (given.overlay && /overlay/i.test(ended.errors)) {
      if (means.overlay) yield* Effect.logWarning(noOverlay(why))
      means.overlay = false
      return yield* begin(options)
    }
    if (!options.network && /network|netns|\bcni\b/i.test(why)) {
      return yield* new SandboxError({
        reason: "Unavailable",
        detail: `--network=off cannot be kept by Singularity sandboxes here (${why}): run as root, allow user namespaces, or leave --network out.`
      })
    }
    return yield* Complaint.start(image.name, ended.errors)
  })

/** A started instance. */
export interface Started {
  /** What the start's script printed, when `enough` held of it; empty where none ran in time. */
  readonly printed: (enough: (text: string) => boolean) => Effect.Effect<string>
  /** Arguments that run a program inside, with this home. */
  readonly argv: (inside: ReadonlyArray<string>, home: string) => ReadonlyArray<string>
  /** The container program's own environment. */
  readonly env: Record<string, string>
  /** Where the session's programs run, with this home. */
  readonly ground: (home: string, pipes: Fifo.Pool) => Ground
  /** Ends it with all its processes; what it wrote stays in its folder. */
  readonly end: Effect.Effect<void>
}

/** The ground of a space whose program carries few arguments: more go by a script that a shell inside reads. */
const grounded = (space: Host.Space, pipes: Fifo.Pool): Ground => {
  const ground = Host.ground(space, pipes)
  return {
    ...ground,
    launch: (call, launch) => {
      const inside = launch.argv([])
      if (inside.reduce((sum, word) => sum + Buffer.byteLength(word), 0) <= carried) return ground.launch(call, launch)
      const script = Buffer.from(Inside.taken(inside, 3))
      return Effect.acquireUseRelease(
        pipes.holding(script),
        (fd) =>
          Host.ground({ ...space, fds: [fd] }, pipes).launch(call, {
            ...launch,
            argv: () => ["/bin/sh", "-c", ". /proc/self/fd/3"]
          }),
        (fd) => Effect.sync(() => Fifo.close(fd))
      )
    }
  }
}

/** Starts an instance in its folder, with what an earlier one of the same folder wrote. */
export const start = (options: Options): Effect.Effect<Started, SandboxError> =>
  Effect.gen(function* () {
    const { name, place, program, memory, means } = options
    yield* Place.make(place, ["config", "tmp", "overlay"])
    yield* StartScript.lay(place, options.script)
    const first = yield* begin(options)
    const space = Proc.pidNamespace(first)
    const keeper = Proc.stat(first)?.parent ?? 0
    const rlimits = means.groups ? undefined : { data: Math.ceil(memory / 1024), processes }
    const env = environment(place)
    const argv: Started["argv"] = (inside, home) => [
      ...[program, "--silent", "exec", ...rights(), "--pwd", "/", `instance://${name}`],
      ...Inside.wrapped(inside, { home, rlimits })
    ]
    let ended = false
    const end = Effect.suspend(() => {
      if (ended) return Effect.void
      ended = true
      return Members.end({ name, keeper, first })
    })
    return {
      argv,
      env,
      end,
      printed: (enough) =>
        means.overlay ? StartScript.printed(join(place, "config"), name, enough) : Effect.succeed(""),
      ground: (home, pipes) =>
        grounded(
          {
            alive: () => !ended && Proc.pidNamespace(first) === space,
            argv: (inside) => argv(inside, home),
            fds: [],
            env,
            host: "/",
            ...Host.ofNamespace(space),
            end
          },
          pipes
        )
    }
  })
