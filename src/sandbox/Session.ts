/** What every sandbox does alike: it makes its ground when that is first wanted, runs commands on it, and clears it away. */
import { Clock, Effect, type Scope } from "effect"
import * as Files from "./Files.ts"
import * as Output from "./Output.ts"
import * as Proc from "./Proc.ts"
import { type Background, FileError, SandboxError, type SandboxService } from "./Sandbox.ts"
import * as Shell from "./Shell.ts"

/** A program that is to run inside. */
export interface Launch {
  /** Its arguments; it closes `fds`, descriptors that only its starter needed. */
  readonly argv: (fds: ReadonlyArray<number>) => ReadonlyArray<string>
  readonly output: Output.Accumulator
  /** Bytes to read, `open` for a pipe that `write` feeds, or nothing at all. */
  readonly stdin: Uint8Array | "open" | undefined
}

/** A program inside, from its start on. */
export interface Running {
  /** The first line of its output that begins with the mark, without the mark; null while none came. */
  readonly mark: () => string | null
  /** Settled when the mark came, or when it ended without one. */
  readonly marked: Effect.Effect<void>
  /** null while it runs; 128 + n after signal n. */
  readonly exitCode: () => number | null
  /** Waits until it has ended and its output has been read, as far as no descendant holds the pipe open. */
  readonly ended: Effect.Effect<number>
  /** Whether its end is unknown: the sandbox, or the way there, went away meanwhile. */
  readonly lost: () => boolean
  /** Output after the mark; before one came, what was printed instead. */
  readonly output: () => Output.Output
  /** False when its standard input is closed. */
  readonly write: (data: Uint8Array) => Effect.Effect<boolean>
  /** Ends it with all its children; where these cannot be told or ended, everything on its ground. */
  readonly kill: Effect.Effect<void>
}

/** Where programs can be started: a namespace, a folder, a container. */
export interface Ground {
  /** False when it has ended by itself. */
  readonly alive: () => boolean
  /** Starts a program as the call of that name. */
  readonly launch: (call: string, launch: Launch) => Effect.Effect<Running, SandboxError>
  /** Ends every process on it. */
  readonly end: Effect.Effect<void>
}

/** How one kind of ground is made. */
export interface Kind {
  readonly cwd: string
  readonly home: string
  readonly shell: string
  /** In front of the names of its calls, `<id><n>`: unique on this machine where processes of several sessions are seen together. */
  readonly id: string
  readonly make: Effect.Effect<Ground, SandboxError>
  /** Clears away what `make` left, with the last ground ended. */
  readonly remove: Effect.Effect<void>
}

/** The service of such a sandbox: all can be connected to. */
export interface Connecting extends SandboxService {
  readonly connect: NonNullable<SandboxService["connect"]>
}

/** Bytes of output kept when a call does not say. */
const defaultKeep = 100_000

/** Milliseconds for a background process to begin. */
const markLimit = 30_000

type Ended = { readonly _tag: "Exited"; readonly exitCode: number } | { readonly _tag: "TimedOut" }

const lost = (detail: string) => new SandboxError({ reason: "Lost", detail })

const gone = lost("The sandbox ended, or its engine went away, while a command ran in it.")

/** One session's ground, made when it is first wanted and again when it was lost. */
const groundOf = (kind: Kind): Effect.Effect<Effect.Effect<Ground, SandboxError>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const gate = Effect.unsafeMakeSemaphore(1)
    let ground: Ground | undefined
    let used = false
    let closed = false
    yield* Effect.addFinalizer(() =>
      gate.withPermits(1)(
        Effect.gen(function* () {
          closed = true
          if (ground !== undefined) yield* ground.end
          if (used) yield* kind.remove
        })
      )
    )
    const current = Effect.gen(function* () {
      if (closed) return yield* lost("The sandbox is closed.")
      if (ground?.alive() === true) return ground
      if (ground !== undefined) yield* ground.end
      used = true
      ground = yield* kind.make
      return ground
    })
    return gate.withPermits(1)(Effect.uninterruptible(current))
  })

/** Makes the service; when its scope closes, nothing that it started is left. */
export const make = (kind: Kind): Effect.Effect<Connecting, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ground = yield* groundOf(kind)
    const backgrounds: Array<Background> = []
    let calls = 0

    const begin = (launch: Launch): Effect.Effect<Running, SandboxError> =>
      Effect.flatMap(ground, (on) => on.launch(`${kind.id}${++calls}`, launch))

    const stop = (running: Running) => Effect.suspend(() => (running.exitCode() === null ? running.kill : Effect.void))

    /** Runs a marked script to its end. What never began, because its ground was lost meanwhile, is begun once more. */
    const run = (
      launch: Launch,
      timeout: number,
      again = true
    ): Effect.Effect<Ended & { readonly mark: string; readonly output: Output.Output }, SandboxError> =>
      Effect.acquireUseRelease(
        begin(launch),
        (running) =>
          Effect.gen(function* () {
            const code = yield* running.ended.pipe(
              Effect.map((exitCode): Ended => ({ _tag: "Exited", exitCode })),
              Effect.timeoutTo({
                duration: timeout * 1000,
                onSuccess: (ended) => ended,
                onTimeout: (): Ended => ({ _tag: "TimedOut" })
              })
            )
            if (code._tag === "TimedOut") yield* running.kill
            else if (running.lost()) return yield* gone
            return { ...code, mark: running.mark(), output: running.output() }
          }),
        stop
      ).pipe(
        Effect.flatMap((ended) => {
          const { mark } = ended
          if (mark !== null || ended._tag === "TimedOut") return Effect.succeed({ ...ended, mark: mark ?? "" })
          if (again) return Effect.zipRight(Proc.pause(20), run(launch, timeout, false))
          return lost(`A command could not be started in the sandbox: ${Output.text(ended.output).trim()}`)
        })
      )

    const exec: SandboxService["exec"] = Effect.fn("Sandbox.exec")(function* (command, options) {
      const cwd = Shell.absolute(options.cwd ?? "", kind)
      if (cwd.includes("\0")) return { _tag: "NoDirectory", cwd } as const
      const unfit = Shell.unfit(command)
      if (unfit !== undefined) {
        return { _tag: "Exited", exitCode: 127, output: Output.fromText(`${unfit}\n`) } as const
      }
      const { mark, ...ended } = yield* run(
        {
          argv: (fds) => Shell.command(kind.shell, command, { cwd, fds }),
          stdin: options.stdin,
          output: Output.capped(options.keep ?? defaultKeep)
        },
        options.timeout
      )
      return mark === "-" ? ({ _tag: "NoDirectory", cwd } as const) : ended
    })

    /** Begins a command that outlives its call, with its standard input open. */
    const opened = Effect.fnUntraced(function* (
      command: string,
      given: string | undefined,
      output: Output.Accumulator
    ) {
      const cwd = Shell.absolute(given ?? "", kind)
      const missing = new FileError({ path: cwd, reason: "NotFound", detail: `${cwd} is no directory` })
      if (cwd.includes("\0")) return yield* missing
      const unfit = Shell.unfit(command)
      if (unfit !== undefined) return yield* new FileError({ path: cwd, reason: "Other", detail: unfit })
      const launched = (again: boolean): Effect.Effect<Running, SandboxError> =>
        begin({
          argv: (fds) => Shell.command(kind.shell, command, { cwd, fds }),
          output,
          stdin: "open"
        }).pipe(
          Effect.tap((running) => Proc.atMost(running.marked, markLimit)),
          Effect.flatMap((running) => {
            if (running.mark() !== null) return Effect.succeed(running)
            if (running.lost()) return gone
            const failed = lost(`A command could not be started: ${Output.text(running.output()).trim()}`)
            return Effect.zipRight(running.kill, again ? launched(false) : failed)
          })
        )
      const running = yield* launched(true)
      if (running.mark() === "-") return yield* missing
      return running
    })

    const start: SandboxService["start"] = Effect.fn("Sandbox.start")(function* (command, { cwd }) {
      const startedAt = yield* Clock.currentTimeMillis
      // Between its start and its place on the list it must not be lost to an interruption.
      const running = yield* Effect.uninterruptible(opened(command, cwd, Output.capped(defaultKeep)))
      const state = Effect.sync(() => ({ exitCode: running.exitCode(), output: running.output() }))
      const background: Background = {
        id: `proc_${backgrounds.length + 1}`,
        command,
        pid: Number.parseInt(running.mark() ?? "", 10) || 0,
        startedAt,
        state,
        wait: (seconds) => Effect.zipRight(Effect.timeoutOption(running.ended, seconds * 1000), state),
        write: (data) => (running.exitCode() === null ? running.write(data) : Effect.succeed(false)),
        kill: Effect.uninterruptible(running.kill)
      }
      backgrounds.push(background)
      return background
    })

    const connect: Connecting["connect"] = Effect.fn("Sandbox.connect")(function* (command, { cwd, take }) {
      const running = yield* Effect.acquireRelease(
        opened(command, cwd, { push: take, value: () => Output.empty }),
        stop
      )
      return { write: running.write, ended: running.ended }
    })

    const files = Files.make({
      ...kind,
      run: (script, options) =>
        run(
          {
            argv: (fds) => ["/bin/sh", "-c", Shell.marked(script, fds), "sh", ...options.args],
            stdin: options.stdin,
            output: Output.accumulator({ head: options.limit, tail: 0 })
          },
          options.timeout
        ).pipe(
          Effect.map((ended) => ({
            exitCode: ended._tag === "Exited" ? ended.exitCode : undefined,
            output: ended.output.head
          }))
        )
    })

    return { cwd: kind.cwd, exec, start, connect, started: Effect.sync(() => [...backgrounds]), ...files }
  })
