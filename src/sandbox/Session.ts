/** What every local sandbox does alike: it makes its ground with the first call, runs commands on it, and clears it away. */
import { Clock, Effect, type Scope } from "effect"
import * as Child from "./Child.ts"
import type * as Fifo from "./Fifo.ts"
import * as Files from "./Files.ts"
import * as Output from "./Output.ts"
import * as Proc from "./Proc.ts"
import { type Background, FileError, SandboxError, type SandboxService } from "./Sandbox.ts"
import * as Shell from "./Shell.ts"

/** Where commands can be started: a namespace or a plain folder. */
export interface Ground {
  /** False when it has ended by itself. */
  readonly alive: () => boolean
  /** Puts what is needed in front of the arguments of a program that is to run inside. */
  readonly argv: (inside: ReadonlyArray<string>) => ReadonlyArray<string>
  readonly fds: ReadonlyArray<number>
  readonly env: Record<string, string>
  /** Directory on the host where programs are started. */
  readonly host: string
  /** Live processes that may belong to a call which began at `since`, in clock ticks from the machine's start. */
  readonly strays: (call: string, since: number) => ReadonlyArray<number>
  /** Whether there are too many processes to tell them apart in time. */
  readonly crowded: () => boolean
  /** Ends every process on it. */
  readonly end: Effect.Effect<void>
}

/** How one kind of ground is made. */
export interface Kind {
  readonly cwd: string
  readonly home: string
  readonly shell: string
  /** Unique on this machine; calls are `<id>.<n>`. */
  readonly id: string
  readonly pipes: Fifo.Pool
  readonly make: Effect.Effect<Ground, SandboxError>
  /** Clears away what `make` left on disk, with the last ground ended. */
  readonly remove: Effect.Effect<void>
}

/** Bytes of output kept when a call does not say. */
const defaultKeep = 100_000

type Ended = { readonly _tag: "Exited"; readonly exitCode: number } | { readonly _tag: "TimedOut" }

interface Running {
  readonly call: string
  readonly ground: Ground
  readonly child: Child.Child
}

const lost = (detail: string) => new SandboxError({ reason: "Lost", detail })

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

/**
 * Ends a call with all its children; when some cannot be ended, or when they are so many that looking for them would take
 * longer than making more, the whole ground goes, and the next call makes another.
 */
const kill = ({ call, ground, child }: Running): Effect.Effect<void> =>
  Effect.gen(function* () {
    const clean = yield* Proc.reap(() => ground.strays(call, child.started), { tooMany: ground.crowded })
    // What joined the namespace on the command's behalf stops and ends with it. Killed before, it would leave a dead child to
    // the machine's first process, which may take a second to notice, or for ever; as long the namespace cannot end.
    Proc.signal(-child.pid, "SIGCONT")
    if (clean) yield* Proc.atMost(child.ended, 500)
    if (child.exitCode() === null) Proc.signal(-child.pid, "SIGKILL")
    if (!clean) yield* ground.end
    yield* Proc.atMost(child.ended, 1000)
  })

/** Makes the service; when its scope closes, nothing that it started is left. */
export const make = (kind: Kind): Effect.Effect<SandboxService, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ground = yield* groundOf(kind)
    const backgrounds: Array<Background> = []
    let calls = 0

    const begin = (
      argv: (fds: ReadonlyArray<number>) => ReadonlyArray<string>,
      launch: Pick<Child.Launch, "output" | "stdin">
    ): Effect.Effect<Running, SandboxError> =>
      Effect.gen(function* () {
        const on = yield* ground
        const call = `${kind.id}.${++calls}`
        const child = yield* Child.start(kind.pipes, {
          ...launch,
          argv: on.argv(argv(on.fds.map((_, index) => index + 3))),
          env: { ...on.env, [Proc.marker]: call },
          cwd: on.host,
          fds: on.fds
        })
        return { call, ground: on, child }
      })

    const stop = (running: Running) =>
      Effect.suspend(() => (running.child.exitCode() === null ? kill(running) : Effect.void))

    /** Runs a marked script to its end. What never began, because its ground was lost meanwhile, is begun once more. */
    const run = (
      argv: (fds: ReadonlyArray<number>) => ReadonlyArray<string>,
      options: {
        readonly timeout: number
        readonly stdin: Uint8Array | undefined
        readonly output: Output.Accumulator
      },
      again = true
    ): Effect.Effect<Ended & { readonly mark: string; readonly output: Output.Output }, SandboxError> =>
      Effect.acquireUseRelease(
        begin(argv, options),
        (running) =>
          Effect.gen(function* () {
            const code = yield* running.child.ended.pipe(
              Effect.map((exitCode): Ended => ({ _tag: "Exited", exitCode })),
              Effect.timeoutTo({
                duration: options.timeout * 1000,
                onSuccess: (ended) => ended,
                onTimeout: (): Ended => ({ _tag: "TimedOut" })
              })
            )
            if (code._tag === "TimedOut") yield* kill(running)
            return { ...code, mark: running.child.mark(), output: running.child.output() }
          }),
        stop
      ).pipe(
        Effect.flatMap((ended) => {
          const { mark } = ended
          if (mark !== null || ended._tag === "TimedOut") return Effect.succeed({ ...ended, mark: mark ?? "" })
          if (again) return Effect.zipRight(Proc.pause(20), run(argv, options, false))
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
      const { mark, ...ended } = yield* run((fds) => Shell.command(kind.shell, command, { cwd, fds }), {
        timeout: options.timeout,
        stdin: options.stdin,
        output: Output.capped(options.keep ?? defaultKeep)
      })
      return mark === "-" ? ({ _tag: "NoDirectory", cwd } as const) : ended
    })

    const start: SandboxService["start"] = Effect.fn("Sandbox.start")(function* (command, options) {
      const cwd = Shell.absolute(options.cwd ?? "", kind)
      const missing = new FileError({ path: cwd, reason: "NotFound", detail: `${cwd} is no directory` })
      if (cwd.includes("\0")) return yield* missing
      const unfit = Shell.unfit(command)
      if (unfit !== undefined) return yield* new FileError({ path: cwd, reason: "Other", detail: unfit })
      const launched = (again: boolean): Effect.Effect<Running, SandboxError> =>
        begin((fds) => Shell.command(kind.shell, command, { cwd, fds }), {
          output: Output.capped(defaultKeep),
          stdin: "open"
        }).pipe(
          Effect.tap((running) => Proc.atMost(running.child.marked, 10_000)),
          Effect.flatMap((running) => {
            if (running.child.mark() !== null) return Effect.succeed(running)
            const failed = lost(`A command could not be started: ${Output.text(running.child.output()).trim()}`)
            return Effect.zipRight(kill(running), again ? launched(false) : failed)
          })
        )
      const startedAt = yield* Clock.currentTimeMillis
      // Between its start and its place on the list it must not be lost to an interruption.
      const running = yield* Effect.uninterruptible(launched(true))
      const { child } = running
      if (child.mark() === "-") return yield* missing
      const state = Effect.sync(() => ({ exitCode: child.exitCode(), output: child.output() }))
      const background: Background = {
        id: `proc_${backgrounds.length + 1}`,
        command,
        pid: Number(child.mark()) || 0,
        startedAt,
        state,
        wait: (seconds) => Effect.zipRight(Effect.timeoutOption(child.ended, seconds * 1000), state),
        write: (data) => (child.exitCode() === null ? child.write(data) : Effect.succeed(false)),
        kill: Effect.uninterruptible(kill(running))
      }
      backgrounds.push(background)
      return background
    })

    const files = Files.make({
      ...kind,
      run: (script, options) =>
        run((fds) => ["/bin/sh", "-c", Shell.marked(script, fds), "sh", ...options.args], {
          timeout: options.timeout,
          stdin: options.stdin,
          output: Output.accumulator({ head: options.limit, tail: 0 })
        }).pipe(
          Effect.map((ended) => ({
            exitCode: ended._tag === "Exited" ? ended.exitCode : undefined,
            output: ended.output.head
          }))
        )
    })

    return { cwd: kind.cwd, exec, start, started: Effect.sync(() => [...backgrounds]), ...files }
  })
