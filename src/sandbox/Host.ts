/** A ground whose programs are processes of this machine: started, watched and ended as such, wherever they live inside. */
import { Effect } from "effect"
import * as Child from "./Child.ts"
import type * as Fifo from "./Fifo.ts"
import * as Proc from "./Proc.ts"
import type { Ground, Running } from "./Session.ts"

/** What keeps the processes of one session together. */
export interface Space {
  /** False when it has ended by itself. */
  readonly alive: () => boolean
  /** Puts what is needed in front of the arguments of a program that is to run inside. */
  readonly argv: (inside: ReadonlyArray<string>, call: string) => ReadonlyArray<string>
  /** Descriptors that every program gets as 3, 4, … */
  readonly fds: ReadonlyArray<number>
  readonly env: Record<string, string>
  /** Directory on the host where programs are started. */
  readonly host: string
  /** Live processes that may belong to a call which began at `since`, in clock ticks from the machine's start. */
  readonly strays: (call: string, since: number) => ReadonlyArray<number>
  /** Whether there are too many processes to tell them apart in time. */
  readonly crowded: () => boolean
  /** Ends every process in it. */
  readonly end: Effect.Effect<void>
}

/** Processes of one session above which a time-out ends them all at once. */
const crowd = 1000

/** The members of a pid namespace, as a space tells of its processes. */
export const ofNamespace = (space: string | undefined): Pick<Space, "strays" | "crowded"> => ({
  crowded: () => Proc.atLeast(crowd, (pid) => Proc.pidNamespace(pid) === space),
  strays: (call, since) => {
    const processes = Proc.list((pid) => Proc.pidNamespace(pid) === space)
    const first = processes.toSorted((a, b) => a.started - b.started || a.pid - b.pid)[0]?.pid ?? 0
    return Proc.strays(processes, call, since, first)
  }
})

/**
 * Ends a call with all its children; when some cannot be ended, or when they are so many that looking for them would take
 * longer than making more, the whole space goes, and the next call makes another.
 */
const kill = (space: Space, call: string, child: Child.Child): Effect.Effect<void> =>
  Effect.gen(function* () {
    const clean = yield* Proc.reap(() => space.strays(call, child.started), { tooMany: space.crowded })
    // What joined the namespace on the command's behalf stops and ends with it. Killed before, it would leave a dead child to
    // the machine's first process, which may take a second to notice, or for ever; as long the namespace cannot end.
    Proc.signal(-child.pid, "SIGCONT")
    if (clean) yield* Proc.atMost(child.ended, 500)
    if (child.exitCode() === null) Proc.signal(-child.pid, "SIGKILL")
    if (!clean) yield* space.end
    yield* Proc.atMost(child.ended, 1000)
  })

/** The ground of a space; its programs are joined to us by `pipes`. */
export const ground = (space: Space, pipes: Fifo.Pool): Ground => ({
  alive: space.alive,
  launch: (call, { argv, output, stdin }) =>
    Effect.map(
      Child.start(pipes, {
        output,
        stdin,
        argv: space.argv(argv(space.fds.map((_, index) => index + 3)), call),
        env: { ...space.env, [Proc.marker]: call },
        cwd: space.host,
        fds: space.fds
      }),
      (child): Running => ({ ...child, lost: () => false, kill: kill(space, call, child) })
    ),
  end: space.end
})
