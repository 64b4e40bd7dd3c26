/** Instances as the machine's processes show them, and their end: the first process inside, and the one that watches over it. */
import { readdirSync, readFileSync, rmdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import * as Proc from "../Proc.ts"

/** An instance that runs. */
export interface Instance {
  readonly name: string
  /** The process outside that watches over it. */
  readonly keeper: number
  /** Process 1 inside, by its number outside; undefined before there is one. */
  readonly first: number | undefined
}

const names = (folder: string): ReadonlyArray<string> =>
  Either.getOrElse(
    Either.try(() => readdirSync(folder)),
    () => []
  )

/** The name in a keeper's title, `Apptainer instance: user [name]`; undefined for any other process. */
const titled = (pid: number): string | undefined => {
  // Reading a title waits for a process that is stuck in the kernel: no other program's is looked at.
  if (Proc.program(pid)?.startsWith("starter") !== true) return undefined
  const title = Either.getOrElse(
    Either.try(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")),
    () => ""
  )
  return /^\w+ instance: .*\[([^[\]]+)\]/.exec(title)?.[1]
}

/** The live instances of this machine whose name is wanted. */
export const list = (wanted: (name: string) => boolean): ReadonlyArray<Instance> => {
  const pids = names("/proc").map(Number).filter(Number.isInteger)
  const keepers = pids.flatMap((pid) => {
    const name = titled(pid)
    return name !== undefined && wanted(name) && Proc.stat(pid) !== undefined ? [{ pid, name }] : []
  })
  if (keepers.length === 0) return []
  const parents = pids.map((pid) => ({ pid, parent: Proc.stat(pid)?.parent }))
  return keepers.map(({ pid, name }) => ({
    name,
    keeper: pid,
    first: parents.find(({ parent }) => parent === pid)?.pid
  }))
}

/** Milliseconds for a keeper to see that its instance has ended, and to clear away after it. */
const patience = 2000

const groups = "/sys/fs/cgroup"

/** A keeper that was killed itself leaves the instance's control groups. */
const removeGroups = (first: number) => {
  for (const folder of [groups, ...names(groups).map((name) => join(groups, name))]) {
    Either.try(() => rmdirSync(join(folder, "apptainer", `${first}`)))
  }
}

/** Ends all that runs in an instance, and waits until it has ended: for some seconds at most. */
export const end = ({ keeper, first, name }: Instance): Effect.Effect<void> =>
  Effect.gen(function* () {
    const space = first === undefined ? undefined : Proc.pidNamespace(first)
    const own = space !== undefined && space !== Proc.pidNamespace("self")
    const watching = () => titled(keeper) === name && Proc.stat(keeper) !== undefined
    // With its first process the kernel ends all others; the keeper sees that, clears away, and ends too.
    if (own && first !== undefined) Proc.signal(first, "SIGKILL")
    const until = performance.now() + patience
    for (let wait = 1; own && watching() && performance.now() < until; wait = Math.min(20, wait * 2)) {
      yield* Proc.pause(wait)
    }
    if (watching()) Proc.signal(keeper, "SIGKILL")
    if (own) yield* Proc.reap(() => Proc.list((pid) => Proc.pidNamespace(pid) === space).map((one) => one.pid))
    if (first !== undefined) removeGroups(first)
  })
