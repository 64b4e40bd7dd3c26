/**
 * A ground that is reached through an engine's API, such as a container: programs are wrapped so that their end is told in
 * their output, and found again inside by the mark of their call when they are to be ended.
 */
import { Deferred, Effect, FiberId } from "effect"
import * as Mark from "./Mark.ts"
import * as Output from "./Output.ts"
import * as Proc from "./Proc.ts"
import type { SandboxError } from "./Sandbox.ts"
import type { Ground, Launch, Running } from "./Session.ts"

/** A program that the engine is to run inside, as the user of its commands. */
export interface Request {
  readonly argv: ReadonlyArray<string>
  /** Added to the environment that the image gives. */
  readonly env: Readonly<Record<string, string>>
  readonly stdin: Uint8Array | "open" | undefined
  /** Called with what it prints on standard output. */
  readonly take: (data: Uint8Array) => void
  /** Called once, with its exit code, when its output is closed; undefined when the engine cannot tell. */
  readonly closed: (exitCode: number | undefined) => void
}

/** What the engine gives in return. */
export interface Exchange {
  /** False when its standard input is closed. */
  readonly write: (data: Uint8Array) => Effect.Effect<boolean>
}

/** A sandbox as its engine shows it. */
export interface Engine {
  /** False when the sandbox has ended. */
  readonly alive: () => boolean
  readonly exec: (request: Request) => Effect.Effect<Exchange, SandboxError>
  /** Ends every process inside by the engine's own means, and the sandbox itself where there is no other way. Its files stay where they can. */
  readonly restart: Effect.Effect<void>
}

// The shell's own words, such as that a command was killed, are none of the command's. Input that it left is taken, for an
// engine may break off an exchange whose other end goes away with something unread. The last `cat` lives on as long as
// something that the command left holds its output, so that this does not die of a closed pipe.
const wrapper = `word=$1 drain=$2; shift 2; { "$@" 2>&1; code=$?; $drain >/dev/null; printf '\\036%s %s\\n' "$word" $code; } 2>/dev/null | cat`

/** Ends the processes $2, $3, … by signal $1, then shows who lives: the marked, those of the call, everyone. */
const census = `
signal=$1; call=$2; shift 2
printf '\\036%s\\n' $$
for one in "$@"; do kill -s "$signal" "$one" 2>/dev/null; done
grep -slzF "$call" /proc/[0-9]*/environ
echo any
grep -slzF "${Proc.marker}=" /proc/[0-9]*/environ
echo all
exec cat /proc/[0-9]*/stat 2>/dev/null
`

/** Milliseconds for a script of ours that tells or ends processes. */
const censusLimit = 10_000

/** Exit code of what SIGKILL ended. */
const killed = 137

/** Milliseconds in which a call must be ended before everything inside is. */
const killLimit = 8000

/** Processes inside above which a time-out ends them all at once. */
const crowd = 1000

/** Starts a program; `unbegun` is called when it ends without having begun, and something else was said instead. */
const start = (
  engine: Engine,
  call: string,
  launch: Launch,
  unbegun: () => void
): Effect.Effect<Omit<Running, "kill">, SandboxError> =>
  Effect.gen(function* () {
    const marked = Deferred.unsafeMake<void>(FiberId.none)
    const ended = Deferred.unsafeMake<number>(FiberId.none)
    let exit: number | null = null
    let unknown = false
    const finish = (code: number) => {
      if (exit !== null) return
      exit = code
      Deferred.unsafeDone(marked, Effect.void)
      Deferred.unsafeDone(ended, Effect.succeed(code))
    }
    const intake = Mark.intake(launch.output, () => Deferred.unsafeDone(marked, Effect.void))
    const word = `end of ${call}`
    const output = Mark.ending(word, intake.take, finish)
    const exchange = yield* engine.exec({
      argv: [
        "/bin/sh",
        "-c",
        wrapper,
        "sh",
        word,
        launch.stdin instanceof Uint8Array ? "cat" : ":",
        ...launch.argv([])
      ],
      env: { [Proc.marker]: `${call};` },
      stdin: launch.stdin,
      take: output.take,
      closed: (code) => {
        output.end()
        const said = intake.value()
        const begun = intake.mark() !== null || code === undefined || code > 128
        if (!begun && Output.size(said) > 0) unbegun()
        // The wrapper's end is that of its last part: but for a signal's, it is no command's without the command's own mark.
        else unknown = exit === null && (code === undefined || code <= 128)
        finish(code ?? killed)
      }
    })
    return {
      // Killed before its mark was through, it had begun all the same.
      mark: () => intake.mark() ?? (exit !== null && exit > 128 ? "" : null),
      marked: Deferred.await(marked),
      exitCode: () => exit,
      ended: Deferred.await(ended),
      lost: () => unknown,
      output: intake.value,
      write: exchange.write
    }
  })

/** Runs a script of ours to its end; undefined when it could not be run, or not in time. */
const ask = (engine: Engine, script: string, args: ReadonlyArray<string>): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    const output = Output.accumulator({ head: 4_000_000, tail: 0 })
    const closed = Deferred.unsafeMake<void>(FiberId.none)
    const exec = engine.exec({
      argv: ["/bin/sh", "-c", script, "sh", ...args],
      env: {},
      stdin: undefined,
      take: output.push,
      closed: () => Deferred.unsafeDone(closed, Effect.void)
    })
    const said = Effect.as(Effect.zipRight(exec, Deferred.await(closed)), undefined)
    return Proc.atMost(Effect.ignore(said), censusLimit).pipe(
      Effect.map(() => new TextDecoder().decode(output.value().head)),
      Effect.map((text) => (text.includes("\x1e") ? text : undefined))
    )
  })

const ours = "the census itself"

/** The text of one /proc/<pid>/stat among others: a name may hold anything, ends of lines too. */
const stats = /^\d+ \([\s\S]{0,64}?\) \S(?: -?\d+){19,}$/gm

/** Reads what `census` shows. */
export const read = (text: string, call: string): ReadonlyArray<Proc.Process> => {
  const [heading = "", ...lines] = text.slice(text.indexOf("\x1e") + 1).split("\n")
  const pidOf = (line: string) => Number(/^\/proc\/(\d+)\/environ$/.exec(line)?.[1] ?? 0)
  const [own, all] = [lines.indexOf("any"), lines.indexOf("all")]
  const mine = new Set(lines.slice(0, own).map(pidOf))
  const marked = new Set(lines.slice(own + 1, all).map(pidOf))
  const owner = (pid: number) =>
    pid === Number(heading) ? ours : mine.has(pid) ? call : marked.has(pid) ? "another call" : undefined
  const rest = lines.slice(all + 1).join("\n")
  return [...rest.matchAll(stats)].flatMap(([line]) => {
    const found = Proc.parseStat(line)
    return found === undefined ? [] : [{ ...found, call: owner(found.pid) }]
  })
}

/** Ends a call and all it started, but nothing else; true when that was seen. */
const reap = (engine: Engine, call: string): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const until = performance.now() + killLimit
    const stopped = new Set<number>()
    let since = Number.MAX_SAFE_INTEGER
    let order: { readonly signal: string; readonly pids: ReadonlyArray<number> } = { signal: "STOP", pids: [] }
    while (performance.now() < until) {
      const text = yield* ask(engine, census, [order.signal, `${Proc.marker}=${call};`, ...order.pids.map(String)])
      if (text === undefined) return false
      const processes = read(text, call)
      if (processes.length > crowd) return false
      for (const one of processes) if (one.call === call) since = Math.min(since, one.started)
      const alive = Proc.strays(processes, call, since, 1)
      if (alive.length === 0) return true
      // They are stopped first: what runs on could start others faster than it is killed.
      const fresh = alive.filter((pid) => !stopped.has(pid))
      for (const pid of fresh) stopped.add(pid)
      order = fresh.length > 0 ? { signal: "STOP", pids: fresh } : { signal: "KILL", pids: alive }
    }
    return false
  })

// Where programs are missing that the census needs, nothing is found, and the call goes on.
const kill = (engine: Engine, call: string, running: Pick<Running, "ended">): Effect.Effect<void> =>
  Effect.gen(function* () {
    const ended = Proc.atMost(running.ended, 1000)
    if ((yield* reap(engine, call)) && (yield* ended) !== undefined) return
    yield* engine.restart
    yield* ended
  })

/**
 * The ground of one sandbox; `end` is the engine's own affair. Where a program could not begin, such as for want of room for
 * another process, everything inside is ended before the next one.
 */
export const ground = (engine: Engine, end: Effect.Effect<void>): Ground => {
  let crowded = false
  const unbegun = () => {
    crowded = true
  }
  const clear = Effect.suspend(() => {
    if (!crowded) return Effect.void
    crowded = false
    return engine.restart
  })
  return {
    alive: engine.alive,
    launch: (call, launch) =>
      Effect.map(
        Effect.zipRight(clear, start(engine, call, launch, unbegun)),
        (running): Running => ({ ...running, kill: kill(engine, call, running) })
      ),
    end
  }
}
