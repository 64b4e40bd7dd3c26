/** One process at a time works on a run folder: a lock file that names its owner, and that outlives no owner. */

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

/** Puts our name on the lock, if nobody else's is there. */
const claim = (path: string, mine: string) => tolerant(() => link(mine, path)).pipe(Effect.map(Option.isSome))

/** Takes a dead owner's lock away; one that changed hands in between is put back. */
const clear = Effect.fn("Lock.clear")(function* (path: string, dead: string, aside: string) {
  const moved = yield* tolerant(() => rename(path, aside))
  if (Option.isNone(moved)) return
  const text = yield* tolerant(() => readFile(aside, "utf8"))
  if (Option.getOrElse(text, () => "") !== dead) yield* tolerant(() => link(aside, path))
  yield* tolerant(() => rm(aside, { force: true }))
})

const acquire = Effect.fn("Lock.acquire")(function* (folder: string) {
  const path = join(folder, ".lock")
  const mine = join(folder, `.lock.${process.pid}.${yield* Clock.currentTimeNanos}`)
  yield* attempt(path, () => writeFile(mine, encodeOwner(self())))
  for (let tries = 0; tries < 20; tries++) {
    if (yield* claim(path, mine)) return { path, mine }
    const text = Option.getOrElse(yield* tolerant(() => readFile(path, "utf8")), () => "")
    const age = Option.match(yield* tolerant(() => stat(path)), {
      onNone: () => silence,
      onSome: (found) => found.mtimeMs
    })
    const owner = decodeOwner(text)
    if (Option.isSome(owner) && isAlive(owner.value, (yield* Clock.currentTimeMillis) - age)) {
      yield* tolerant(() => rm(mine, { force: true }))
      return yield* busy(folder, owner.value)
    }
    yield* clear(path, text, `${mine}.dead`)
  }
  yield* tolerant(() => rm(mine, { force: true }))
  return yield* new StoreError({
    reason: "Busy",
    detail: `${path} changes hands all the time; remove it and try again`
  })
})

/** Removes what runners left behind that were killed while they asked for the lock. */
const sweep = Effect.fn("Lock.sweep")(function* (folder: string) {
  const names = Option.getOrElse(yield* tolerant(() => readdir(folder)), () => [])
  for (const name of names.filter((each) => each.startsWith(".lock."))) {
    const path = join(folder, name)
    const owner = decodeOwner(Option.getOrElse(yield* tolerant(() => readFile(path, "utf8")), () => ""))
    if (Option.isSome(owner) && !isAlive(owner.value, 0)) yield* tolerant(() => rm(path, { force: true }))
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
