/** The machine's processes as /proc shows them: which belong to a call, and how they are ended. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { Effect, Either, Fiber } from "effect"

/** The variable that tells which call started a process: its children inherit it. */
export const marker = "SANDBOX_CALL"

export interface Process {
  readonly pid: number
  readonly parent: number
  /** Process id of its session's leader. */
  readonly session: number
  /** Clock ticks from the machine's start to its own. */
  readonly started: number
  /** The call in its environment; undefined when there is none. */
  readonly call: string | undefined
}

const read = <A>(from: () => A): A | undefined => Either.getOrUndefined(Either.try(from))

/** Reads the text of /proc/<pid>/stat; undefined when it is none, or that of a dead process nobody has reaped. */
export const parseStat = (text: string): Omit<Process, "call"> | undefined => {
  // The name stands in parentheses and may hold anything, parentheses and spaces too.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const number = (at: number) => Number(fields[at] ?? 0)
  const pid = Number.parseInt(text, 10)
  if (Number.isNaN(pid) || fields.length < 20 || fields[0] === "Z" || fields[0] === "X") return undefined
  return { pid, parent: number(1), session: number(3), started: number(19) }
}

/** The fields of /proc/<pid>/stat that matter here; undefined when there is no such process, or a dead one nobody has reaped. */
export const stat = (pid: number | "self"): Omit<Process, "call"> | undefined => {
  const text = read(() => readFileSync(`/proc/${pid}/stat`, "latin1"))
  return text === undefined ? undefined : parseStat(text)
}

const callOf = (pid: number): string | undefined => {
  const environ = read(() => readFileSync(`/proc/${pid}/environ`, "utf8")) ?? ""
  const found = environ.split("\0").find((entry) => entry.startsWith(`${marker}=`))
  return found?.slice(marker.length + 1)
}

/** Descriptors above 2 that every program we start would inherit, because whoever started us left them so. */
export const inherited = (): ReadonlyArray<number> =>
  (read(() => readdirSync("/proc/self/fdinfo")) ?? []).flatMap((name) => {
    const flags = /flags:\s*(\d+)/.exec(read(() => readFileSync(`/proc/self/fdinfo/${name}`, "utf8")) ?? "")?.[1]
    const closes = flags === undefined || (Number.parseInt(flags, 8) & 0o2000000) !== 0
    return Number(name) > 2 && !closes ? [Number(name)] : []
  })

/** Name of the process's pid namespace, such as `pid:[4026531836]`; undefined where it cannot be read. */
export const pidNamespace = (pid: number | "self"): string | undefined =>
  read(() => readlinkSync(`/proc/${pid}/ns/pid`, "utf8"))

/** Short name of the program that a process runs; undefined where it cannot be read. Never waits for the process. */
export const program = (pid: number): string | undefined => read(() => readFileSync(`/proc/${pid}/comm`, "utf8").trim())

/** Working directory of a process; undefined where it cannot be read. */
export const workingDirectory = (pid: number): string | undefined =>
  read(() => readlinkSync(`/proc/${pid}/cwd`, "utf8"))

/** Every live process for which `wanted` holds, this one excepted; empty on a system without /proc. */
export const list = (wanted: (pid: number) => boolean): ReadonlyArray<Process> =>
  (read(() => readdirSync("/proc")) ?? []).flatMap((name) => {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid || !wanted(pid)) return []
    const known = stat(pid)
    return known === undefined ? [] : [{ ...known, call: callOf(pid) }]
  })

/** Whether there are so many processes for which `wanted` holds; looks no further than it must. */
export const atLeast = (count: number, wanted: (pid: number) => boolean): boolean => {
  let found = 0
  // The newest have the highest numbers.
  for (const name of (read(() => readdirSync("/proc")) ?? []).reverse()) {
    const pid = Number(name)
    if (Number.isInteger(pid) && wanted(pid) && ++found >= count) return true
  }
  return false
}

/** Gives the call that a process belongs to: by its own marker, else by its nearest marked ancestor or its session. */
export const owners = (processes: ReadonlyArray<Process>): ((process: Process) => string | undefined) => {
  const byPid = new Map(processes.map((one) => [one.pid, one]))
  const owner = (one: Process, depth: number): string | undefined => {
    if (one.call !== undefined || depth > 64) return one.call
    const parent = byPid.get(one.parent)
    const leader = byPid.get(one.session)
    return (parent && owner(parent, depth + 1)) ?? (leader === one ? undefined : leader?.call)
  }
  return (one) => owner(one, 0)
}

/**
 * Process ids that belong to a call which began at `since`: its own, with all they started, and what was started since by nobody
 * known. `first` is the first process of their namespace, which takes in what lost its parent: what it started itself is its own.
 */
export const strays = (
  processes: ReadonlyArray<Process>,
  call: string,
  since: number,
  first: number
): ReadonlyArray<number> => {
  const byPid = new Map(processes.map((one) => [one.pid, one]))
  const owner = owners(processes)
  // What an earlier one started without a mark goes on starting others.
  const ofEarlier = (one: Process): boolean => {
    let at = byPid.get(one.parent)
    for (let depth = 0; at !== undefined && at.pid !== first && depth < 64; depth++) {
      if (at.started < since) return true
      at = byPid.get(at.parent)
    }
    return false
  }
  return processes.flatMap((one) => {
    if (one.pid === first) return []
    const by = owner(one)
    const unknown = by === undefined && one.started >= since && one.session !== first && !ofEarlier(one)
    return by === call || unknown ? [one.pid] : []
  })
}

/** Sends a signal to a process, or to a group when `pid` is negative; one that is gone is no mistake. */
export const signal = (pid: number, name: NodeJS.Signals): void => {
  read(() => process.kill(pid, name))
}

/** Waits in real time: processes do not follow a test's clock. */
export const pause = (millis: number): Effect.Effect<void> =>
  Effect.async((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

/**
 * Waits for `effect`, for `millis` at most, also where interruption is held off; undefined when it took longer. It runs in a
 * fiber that is nobody's child: a fiber that is interrupted passes that on to its children, held off or not.
 */
export const atMost = <A>(effect: Effect.Effect<A>, millis: number): Effect.Effect<A | undefined> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), (fiber) =>
      restore(
        Effect.async<A | undefined>((resume) => {
          const timer = setTimeout(() => {
            fiber.unsafeInterruptAsFork(fiber.id())
            resume(Effect.succeed(undefined))
          }, millis)
          fiber.addObserver((exit) => {
            clearTimeout(timer)
            resume(exit)
          })
          return Effect.zipRight(
            Effect.sync(() => clearTimeout(timer)),
            Fiber.interrupt(fiber)
          )
        })
      )
    )
  )

/**
 * Ends all processes that `targets` names, new ones too, until it names none; true when that came within `millis` and before
 * there were `tooMany`.
 * They are stopped first: what runs on could start others faster than it is killed.
 */
export const reap = (
  targets: () => ReadonlyArray<number>,
  options: { readonly millis?: number; readonly tooMany?: () => boolean } = {}
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const stopped = new Set<number>()
    const { millis = 2000, tooMany = () => false } = options
    const until = performance.now() + millis
    let wait = 1
    for (let round = 0; performance.now() < until && !tooMany(); round++) {
      const alive = targets()
      if (alive.length === 0) return true
      const fresh = alive.filter((pid) => !stopped.has(pid))
      for (const pid of fresh) {
        signal(pid, "SIGSTOP")
        stopped.add(pid)
      }
      if (fresh.length > 0 && round < 20) continue
      for (const pid of alive) signal(pid, "SIGKILL")
      yield* pause(wait)
      wait = Math.min(50, wait * 2)
    }
    return !tooMany() && targets().length === 0
  })
