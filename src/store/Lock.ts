/** One process at a time works on a run folder: a lock file that names its owner, and that outlives no owner. */

import { hash } from "node:crypto"
import { readFileSync } from "node:fs"
import { link, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { join } from "node:path"
import { Clock, Effect, Option, Schedule, Schema, type Scope } from "effect"
import { storeError } from "./Disk.ts"
import { StoreError } from "./Store.ts"

const Owner = Schema.parseJson(
  Schema.Struct({
    pid: Schema.Int,
    /** The kernel's clock tick of the process's start, so that a reused number is not taken for the owner. */
    started: Schema.String,
    host: Schema.String,
    boot: Schema.String
  })
)
type Owner = typeof Owner.Type

const decodeOwner = Schema.decodeUnknownOption(Owner)
const encodeOwner = Schema.encodeSync(Owner)

const beat = "10 seconds"
/** Milliseconds without a sign of life after which an owner on another machine counts as gone. */
const silence = 120_000

const readSmall = (path: string): string =>
  Option.getOrElse(Option.liftThrowable(() => readFileSync(path, "utf8"))(), () => "")

/** Field 22 of /proc/<pid>/stat; empty where there is no such process, or no /proc. */
const startOf = (pid: number): string => readSmall(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ")[19] ?? ""

const self = (): Owner => ({
  pid: process.pid,
  started: startOf(process.pid),
  host: hostname(),
  boot: readSmall("/proc/sys/kernel/random/boot_id").trim()
})

const exists = (pid: number): boolean =>
  Option.match(Option.liftThrowable(() => process.kill(pid, 0))(), {
    onNone: () => startOf(pid) !== "",
    onSome: () => true
  })

const isAlive = (owner: Owner, quietFor: number): boolean => {
  const me = self()
  if (owner.host !== me.host) return quietFor < silence
  if (owner.boot !== me.boot) return false
  return exists(owner.pid) && startOf(owner.pid) === owner.started
}

const busy = (folder: string, owner: Owner) =>
  new StoreError({
    reason: "Busy",
    detail: `${folder} is in use by another batch-runner (process ${owner.pid} on ${owner.host}); wait for it, or use another --run_name`
  })

const attempt = <A>(path: string, run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: storeError(path) })
const tolerant = <A>(run: () => Promise<A>) => Effect.option(Effect.tryPromise(run))

const textOf = (path: string) =>
  Effect.map(
    tolerant(() => readFile(path, "utf8")),
    Option.getOrUndefined
  )

/** How an attempt at a lock ended: it is ours, a living owner has it, or it changed hands meanwhile. */
type Taken = "Ours" | "Moved" | Owner

/**
 * Puts our name on `path`. A lock is given up by nobody but its owner, so a dead one is replaced in place, by one alone: by who
 * holds the lock on taking over from that very owner. No other owner can bear the same name, so who comes late finds it changed.
 */
const take = (path: string, mine: string): Effect.Effect<Taken> =>
  Effect.gen(function* () {
    if (Option.isSome(yield* tolerant(() => link(mine, path)))) return "Ours"
    const text = yield* textOf(path)
    const seen = yield* tolerant(() => stat(path))
    if (text === undefined || Option.isNone(seen)) return "Moved"
    const owner = decodeOwner(text)
    const quietFor = (yield* Clock.currentTimeMillis) - seen.value.mtimeMs
    if (Option.isSome(owner) && isAlive(owner.value, quietFor)) return owner.value
    const over = `${path}.${hash("sha1", text).slice(0, 8)}`
    if ((yield* take(over, mine)) !== "Ours") return "Moved"
    if ((yield* textOf(path)) === text && Option.isSome(yield* tolerant(() => rename(over, path)))) return "Ours"
    yield* tolerant(() => rm(over, { force: true }))
    return "Moved"
  })

const acquire = Effect.fn("Lock.acquire")(function* (folder: string) {
  const path = join(folder, ".lock")
  const mine = join(folder, `.lock.${process.pid}.${yield* Clock.currentTimeNanos}`)
  yield* attempt(path, () => writeFile(mine, encodeOwner(self())))
  const removeMine = tolerant(() => rm(mine, { force: true }))
  for (let tries = 0; tries < 100; tries++) {
    const taken = yield* take(path, mine)
    if (taken === "Ours") return { path, mine }
    if (taken !== "Moved") return yield* Effect.zipRight(removeMine, busy(folder, taken))
    yield* Effect.sleep("20 millis")
  }
  yield* removeMine
  return yield* new StoreError({
    reason: "Busy",
    detail: `${path} changes hands all the time; remove it and try again`
  })
})

/** Who works on the run, told without asking for the lock; undefined when nobody does. */
export const holder = (folder: string): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const path = join(folder, ".lock")
    const owner = decodeOwner((yield* textOf(path)) ?? "")
    const seen = yield* tolerant(() => stat(path))
    if (Option.isNone(owner) || Option.isNone(seen)) return undefined
    const alive = isAlive(owner.value, (yield* Clock.currentTimeMillis) - seen.value.mtimeMs)
    return alive ? `process ${owner.value.pid} on ${owner.value.host}` : undefined
  })

/** Removes what runners left behind that were killed while they asked for the lock. */
const sweep = Effect.fn("Lock.sweep")(function* (folder: string) {
  const names = Option.getOrElse(yield* tolerant(() => readdir(folder)), () => [])
  for (const name of names.filter((each) => each.startsWith(".lock."))) {
    const path = join(folder, name)
    const owner = decodeOwner((yield* textOf(path)) ?? "")
    // What names nobody was being written: by someone who is long gone, if it is old.
    const age =
      (yield* Clock.currentTimeMillis) -
      Option.match(yield* tolerant(() => stat(path)), { onNone: () => 0, onSome: ({ mtimeMs }) => mtimeMs })
    const dead = Option.isSome(owner) ? !isAlive(owner.value, 0) : age > silence
    if (dead) yield* tolerant(() => rm(path, { force: true }))
  }
})

/** Holds the folder for the scope's life. */
export const hold = (folder: string): Effect.Effect<void, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const { path, mine } = yield* Effect.acquireRelease(acquire(folder), ({ path, mine }) =>
      tolerant(() => rm(path, { force: true })).pipe(Effect.zipRight(tolerant(() => rm(mine, { force: true }))))
    )
    yield* tolerant(() => rm(mine, { force: true }))
    yield* sweep(folder)
    const touch = Effect.flatMap(Clock.currentTimeMillis, (now) => tolerant(() => utimes(path, now / 1000, now / 1000)))
    yield* Effect.forkScoped(Effect.repeat(touch, Schedule.spaced(beat)))
  })
