/** Sandboxes on this machine: a bubblewrap namespace for each prompt, or a plain folder where bubblewrap does not work. */
import { existsSync, mkdirSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, posix } from "node:path"
import { Effect, Layer, Scope } from "effect"
import * as Fifo from "./Fifo.ts"
import * as Host from "./Host.ts"
import type { Inspection } from "./Inspection.ts"
import * as Layout from "./local/Layout.ts"
import * as Namespace from "./local/Namespace.ts"
import * as Plain from "./local/Plain.ts"
import * as System from "./local/System.ts"
import * as Output from "./Output.ts"
import * as Place from "./Place.ts"
import { type Cleaned, SandboxError, Sandboxes, type SandboxSpec } from "./Sandbox.ts"
import * as Session from "./Session.ts"
import * as Startup from "./Startup.ts"
import * as Survey from "./Survey.ts"

export interface Options {
  /** Whether commands reach the network; a namespace without it has a loopback device of the session's own. */
  readonly network: boolean
  /** Host paths that a namespace must never show, such as the run folder. They must exist before a sandbox's first call. */
  readonly hide: ReadonlyArray<string>
  /** Folder for the sandboxes' own folders; by default that for temporary files. */
  readonly root?: string | undefined
  /** `plain` goes without bubblewrap even where it works; `auto` is the default. */
  readonly namespace?: "auto" | "plain" | undefined
}

/** What all sandboxes of one layer share. */
interface Shared {
  readonly options: Options
  /** Folder of all places. */
  readonly base: string
  readonly pipes: Fifo.Pool
  readonly shell: string
}

const parts = Layout.privates.map((one) => one.part)

const blocked = (cwd: string, by: string) =>
  new SandboxError({
    reason: "Unavailable",
    detail: Survey.blocked(cwd, by)
  })

/** What stands in the way of a working directory: found before anything is paid for it. */
const obstacle = ({ options, base }: Shared, system: System.System | undefined, cwd: string): string | undefined => {
  const trouble = Survey.unfit(cwd)
  if (trouble !== undefined) return trouble
  if (system !== undefined) {
    const provided = Layout.plan(system, System.hidden(system, [...options.hide, base]), Layout.directory(cwd))
    return provided._tag === "Blocked" ? `${provided.by} is no directory` : undefined
  }
  if (!cwd.startsWith("/")) return undefined
  let ancestor = cwd
  while (!existsSync(ancestor)) ancestor = posix.dirname(ancestor)
  return statSync(ancestor).isDirectory() ? undefined : `${ancestor} is no directory`
}

/** A session in a namespace. */
const inNamespace = (shared: Shared, system: System.System, name: string, cwd: string): Session.Kind => {
  const place = join(shared.base, name)
  const directory = Layout.directory(cwd)
  const id = `${basename(shared.base)}-${name}`
  return {
    cwd: directory,
    home: Layout.home,
    shell: shared.shell,
    id: `${id}.`,
    make: Effect.gen(function* () {
      const hidden = System.hidden(system, [...shared.options.hide, shared.base])
      const provided = Layout.plan(system, hidden, directory)
      if (provided._tag === "Blocked") return yield* blocked(cwd, `${provided.by} is no directory`)
      const own = provided._tag === "Made" ? provided.part : "cwd"
      yield* Place.make(place, [...parts, "etc", own])
      for (const list of ["passwd", "group"] as const) yield* Place.put(join(place, "etc", list), Layout.users[list])
      const space = yield* Namespace.open({
        id,
        layout: Layout.argv(system, hidden, place, provided),
        network: shared.options.network,
        env: Namespace.environment(Layout.home),
        pipes: shared.pipes
      })
      return Host.ground(space, shared.pipes)
    }),
    remove: Place.remove(place)
  }
}

/** A session in a plain folder; an absolute `cwd` is that very directory of the host, made if absent. */
const inFolder = (shared: Shared, name: string, cwd: string): Session.Kind => {
  const place = join(shared.base, name)
  const directory = posix.resolve(join(place, "work"), cwd)
  const home = join(place, "home")
  const id = `${basename(shared.base)}-${name}`
  return {
    cwd: directory,
    home,
    shell: shared.shell,
    id: `${id}.`,
    make: Effect.gen(function* () {
      yield* Place.make(place, ["work", "home", "tmp"])
      // A directory that cannot be made is what the first command will say.
      yield* Effect.ignore(Place.make(directory, [""]))
      return Host.ground(Plain.open({ id, place, env: Plain.environment(home, join(place, "tmp")) }), shared.pipes)
    }),
    remove: Place.remove(place)
  }
}

/** Runs one command in a namespace made as for a prompt; fails with why it cannot be had. */
const probe = (shared: Shared, system: System.System): Effect.Effect<void, SandboxError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const session = yield* Session.make(inNamespace(shared, system, "probe", ""))
      const result = yield* session.exec("echo here", { timeout: 10 })
      if (result._tag === "Exited" && Output.text(result.output) === "here\n") return
      return yield* new SandboxError({
        reason: "Unavailable",
        detail: "a command in a namespace did not end as it should"
      })
    })
  )

const warning = (why: string) =>
  `No bubblewrap sandbox here (${why.replaceAll(/\s+/g, " ")}): each prompt gets a plain folder and process group instead, and its commands ` +
  "can read and change whatever this user can, network included. Install it with `apt install bubblewrap util-linux` (or dnf, pacman, apk), " +
  "or use containers."

/** A folder keeps no command from the network, and nobody who asks for that must believe that it does. */
const networkless = (why: string) =>
  new SandboxError({
    reason: "Unavailable",
    detail: `--network=off needs a bubblewrap sandbox, and there is none here (${why.replaceAll(/\s+/g, " ")}); install it with \`apt install bubblewrap util-linux\` (or dnf, pacman, apk), or leave --network out`
  })

const makeRoot = (root: string) =>
  Effect.try({
    try: () => mkdirSync(root, { recursive: true }),
    catch: (cause) =>
      new SandboxError({ reason: "Unavailable", detail: `The folder for sandboxes, ${root}, cannot be made: ${cause}` })
  })

const noImage = (spec: SandboxSpec) =>
  new SandboxError({
    reason: "Unavailable",
    detail: `The local sandbox runs no container images, and this prompt asks for ${spec.image}; leave --sandbox out, or give docker, singularity or modal`
  })

/** Removes the folders and processes that dead runners left on this machine. */
export const clean: Effect.Effect<Cleaned> = Effect.suspend(() => Place.removeAbandoned(tmpdir()))

/** A session that is put together with its first call: most of what a prompt without tool calls would pay for it. */
const lazily = (kind: Session.Kind): Effect.Effect<Session.Connecting, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    let made: Effect.Effect<Session.Connecting> | undefined
    const session = Effect.suspend(() => {
      if (made !== undefined) return made
      return Effect.flatMap(Effect.cached(Scope.extend(Session.make(kind), scope)), (once) => (made ??= once))
    })
    return {
      cwd: kind.cwd,
      exec: (command, options) => Effect.flatMap(session, (made) => made.exec(command, options)),
      start: (command, options) => Effect.flatMap(session, (made) => made.start(command, options)),
      connect: (command, options) => Effect.flatMap(session, (made) => made.connect(command, options)),
      started: Effect.flatMap(session, (made) => made.started),
      read: (path, options) => Effect.flatMap(session, (made) => made.read(path, options)),
      write: (path, bytes) => Effect.flatMap(session, (made) => made.write(path, bytes)),
      idle: () => made === undefined
    }
  })

/** What all sandboxes of a layer share, and the namespaces' system where bubblewrap works; `trouble` is why it does not. */
const prepared = (options: Options, root: string) =>
  Effect.gen(function* () {
    const base = Place.base(root)
    yield* Effect.addFinalizer(() => (existsSync(base) ? Place.remove(base) : Effect.void))
    const shared: Shared = {
      options,
      base,
      pipes: Fifo.pool(join(base, "pipes")),
      shell: existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh"
    }
    const system = options.namespace === "plain" ? undefined : System.survey()
    const trouble = yield* system === undefined
      ? Effect.succeed("switched off")
      : Effect.match(probe(shared, system), { onFailure: (error) => error.message, onSuccess: () => undefined })
    if (trouble !== undefined && !options.network) return yield* networkless(trouble)
    return { shared, trouble, ground: trouble === undefined ? system : undefined }
  })

/** This machine as a run would find it, with the same failures; a probe's folder is gone when this ends. */
export const inspect = Effect.fn("Local.inspect")(function* (options: Options) {
  const { trouble } = yield* Effect.scoped(prepared(options, options.root ?? tmpdir()))
  const found: Inspection = {
    told: trouble === undefined ? "bubblewrap on this machine works" : warning(trouble),
    image: (name) => noImage({ id: "", image: name, cwd: "" })
  }
  return found
})

/**
 * Sandboxes on this machine. Opening one costs nothing: its folder and namespace are made with its first call. Fails with
 * `Unavailable` when the folder for them cannot be made, or when they are to have no network and only bubblewrap could see to it.
 */
export const layer = (options: Options): Layer.Layer<Sandboxes, SandboxError> =>
  Layer.scoped(
    Sandboxes,
    Effect.gen(function* () {
      const root = options.root ?? tmpdir()
      yield* makeRoot(root)
      yield* Startup.sweep(Place.removeAbandoned(root))
      const { shared, trouble, ground } = yield* prepared(options, root)
      if (trouble !== undefined) yield* Effect.logWarning(warning(trouble))
      let opened = 0
      return {
        lazy: () => true,
        open: (spec) =>
          Effect.suspend(() => {
            if (spec.image !== "") return noImage(spec)
            const hindrance = spec.cwd === "" ? undefined : obstacle(shared, ground, spec.cwd)
            if (hindrance !== undefined) return blocked(spec.cwd, hindrance)
            const name = `${spec.id}-${opened++}`
            return lazily(
              ground === undefined ? inFolder(shared, name, spec.cwd) : inNamespace(shared, ground, name, spec.cwd)
            )
          })
      }
    })
  )

/**
 * Plain folders beside the sandboxes, for programs of the user's own: such a one reaches all that this user can, and ends with its
 * scope. It is given a name for its folder, and a directory, empty for that folder.
 */
export const beside: Effect.Effect<
  (name: string, cwd: string) => Effect.Effect<Session.Connecting, never, Scope.Scope>,
  SandboxError,
  Scope.Scope
> = Effect.map(prepared({ network: true, hide: [], namespace: "plain" }, tmpdir()), ({ shared }) => {
  let opened = 0
  return (name, cwd) => Effect.suspend(() => lazily(inFolder(shared, `${name}-${opened++}`, cwd)))
})
