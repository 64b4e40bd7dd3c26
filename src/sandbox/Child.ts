/** One process of ours in a group of its own: what it prints, how it ends, and what it reads. */
import { type ChildProcess, spawn } from "node:child_process"
import { openSync } from "node:fs"
import { Socket } from "node:net"
import { constants } from "node:os"
import { Deferred, Effect, FiberId } from "effect"
import * as Fifo from "./Fifo.ts"
import * as Mark from "./Mark.ts"
import type * as Output from "./Output.ts"
import * as Proc from "./Proc.ts"
import { SandboxError } from "./Sandbox.ts"
import type { Running } from "./Session.ts"

export interface Launch {
  readonly argv: ReadonlyArray<string>
  /** The whole environment: nothing is inherited. */
  readonly env: Record<string, string>
  /** Directory on the host. */
  readonly cwd: string
  /** Descriptors that it gets as 3, 4, … */
  readonly fds: ReadonlyArray<number>
  readonly output: Output.Accumulator
  /** Bytes to read, `open` for a pipe that `write` feeds, or nothing at all. */
  readonly stdin: Uint8Array | "open" | undefined
}

export interface Child extends Omit<Running, "kill" | "lost"> {
  readonly pid: number
  /** Clock ticks from the machine's start to its own; 0 where unknown. */
  readonly started: number
}

/** Milliseconds without data after its end until its output counts as read; and while data still comes, the longest wait. */
const quiet = 50
const longest = 200

/** Turns of reading, 64 KB each, that an output has after `longest`: more than a pipe holds. */
const leastTurns = 4

type Stdio = "ignore" | "pipe" | number

let leaks: ReadonlyArray<number> | undefined
let nowhere: number | undefined

/** Descriptors for a new process, with /dev/null in place of those that would leak in from whoever started us. */
export const shielded = (stdio: ReadonlyArray<Stdio>): Array<Stdio> => {
  leaks ??= Proc.inherited()
  const all = [...stdio]
  for (const fd of leaks) {
    if (fd < stdio.length) continue
    nowhere ??= openSync("/dev/null", "r")
    while (all.length < fd) all.push("ignore")
    all[fd] = nowhere
  }
  return all
}

const codeOf = (code: number | null, name: NodeJS.Signals | null): number =>
  code ?? 128 + (name === null ? 0 : constants.signals[name])

/** Reads the pipe until it closes, whatever happens: a writer left behind must not die of SIGPIPE. */
const reader = (fd: number, take: (data: Uint8Array) => void, closed: () => void): Socket => {
  const socket = new Socket({ fd, readable: true, writable: false })
  socket.on("data", take)
  socket.on("error", () => {})
  socket.on("close", closed)
  return socket
}

const feeder = (fd: number | undefined) => {
  if (fd === undefined) return { write: () => Effect.succeed(false), end: () => {} }
  const socket = new Socket({ fd, readable: false, writable: true })
  socket.on("error", () => {})
  return {
    write: (data: Uint8Array) =>
      Effect.async<boolean>((resume) => {
        if (socket.destroyed || !socket.writable) return resume(Effect.succeed(false))
        // A full pipe is no reason to wait: what is left goes out when the command reads.
        if (!socket.write(data)) return resume(Effect.succeed(true))
        setImmediate(() => resume(Effect.sync(() => !socket.destroyed)))
      }),
    end: () => socket.destroy()
  }
}

const attach = (process: ChildProcess, pid: number, launch: Launch, ours: number, input: number | undefined): Child => {
  const marked = Deferred.unsafeMake<void>(FiberId.none)
  const ended = Deferred.unsafeMake<number>(FiberId.none)
  const pipe = Mark.intake(launch.output, () => Deferred.unsafeDone(marked, Effect.void))
  const stdin = feeder(input)
  let exit: number | null = null
  let exitedAt = 0
  let lastData = 0
  let open = true
  let done = false
  /** Whether a turn of reading was given since it fell quiet. */
  let asked = false

  const finish = () => {
    if (done || exit === null) return
    done = true
    stdin.end()
    socket.unref()
    Deferred.unsafeDone(marked, Effect.void)
    Deferred.unsafeDone(ended, Effect.succeed(exit))
  }
  let turns = 0
  // Timers come before reading in each turn of the event loop: after a long turn there may be much to read yet.
  const settle = () => {
    if (done || exit === null) return
    const now = performance.now()
    const late = now >= exitedAt + longest && turns++ > leastTurns
    const left = Math.max(lastData, exitedAt) + quiet - now
    if (!open || late || (left <= 0 && asked)) return finish()
    asked = left <= 0
    if (asked || now >= exitedAt + longest) setImmediate(settle)
    else setTimeout(settle, left)
  }
  const socket = reader(
    ours,
    (data) => {
      lastData = performance.now()
      asked = false
      if (!done) pipe.take(data)
    },
    () => {
      open = false
      finish()
    }
  )
  const end = (code: number) => {
    if (exit !== null) return
    exit = code
    exitedAt = performance.now()
    settle()
  }
  process.on("exit", (code, name) => end(codeOf(code, name)))
  process.on("error", () => end(127))
  return {
    pid,
    started: Proc.stat(pid)?.started ?? 0,
    mark: pipe.mark,
    marked: Deferred.await(marked),
    exitCode: () => exit,
    ended: Deferred.await(ended),
    output: pipe.value,
    write: stdin.write
  }
}

const failed = (cause: unknown) =>
  new SandboxError({
    reason: "StartFailed",
    detail: `A process could not be started: ${cause instanceof Error ? cause.message : cause}`
  })

/** Starts a process; ending it is the caller's affair. */
export const start = (pipes: Fifo.Pool, launch: Launch): Effect.Effect<Child, SandboxError> =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const output = yield* pipes.output
      const closing: Array<number> = [output.theirs]
      const failing: Array<number> = [output.ours]
      const program = Effect.gen(function* () {
        const input = launch.stdin === "open" ? yield* pipes.input : undefined
        const given = launch.stdin instanceof Uint8Array && launch.stdin.length > 0 ? launch.stdin : undefined
        const held = given === undefined ? undefined : yield* pipes.holding(given)
        const stdin = input?.theirs ?? held
        if (stdin !== undefined) closing.push(stdin)
        if (input !== undefined) failing.push(input.ours)
        const child = yield* Effect.try({
          try: () =>
            spawn(launch.argv[0] ?? "", launch.argv.slice(1), {
              cwd: launch.cwd,
              env: launch.env,
              detached: true,
              stdio: shielded([stdin ?? "ignore", output.theirs, output.theirs, ...launch.fds])
            }),
          catch: failed
        })
        if (child.pid === undefined) {
          const cause = yield* Effect.async<unknown>((resume) => {
            child.once("error", (error) => resume(Effect.succeed(error)))
          })
          return yield* failed(cause)
        }
        return attach(child, child.pid, launch, output.ours, input?.ours)
      })
      return yield* program.pipe(
        Effect.tapError(() => Effect.sync(() => failing.forEach(Fifo.close))),
        Effect.ensuring(Effect.sync(() => closing.forEach(Fifo.close)))
      )
    })
  )
