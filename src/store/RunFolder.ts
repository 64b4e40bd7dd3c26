/** The files of a run folder: their names, and what earlier sessions wrote into run.json. */
import { readdir, readFile, rename, stat } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Effect, Option, Schema } from "effect"
import { replace, storeError } from "./Disk.ts"
import type { SessionRecord, StoreError } from "./Store.ts"
import { Place, ToolNames, Usage } from "./StoredRow.ts"

export const trajectories = "trajectories.jsonl"
export const discarded = "discarded.jsonl"
export const failures = "failures.jsonl"
export const checkpoint = "checkpoint.json"
export const statistics = "statistics.json"
export const card = "README.md"
export const run = "run.json"

export const batchFile = (batch: number): string => `batch_${batch}.jsonl`

/** The number of a batch file; undefined for any other name. */
export const batchNumber = (name: string): number | undefined => {
  const digits = /^batch_(0|[1-9]\d{0,14})\.jsonl$/.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Whether a name is that of a file which a run writes. */
export const isOurs = (name: string): boolean =>
  batchNumber(name) !== undefined ||
  [trajectories, discarded, failures, checkpoint, statistics, card, run].includes(name)

/** What lies in a run folder. */
export interface Found {
  /** A name of ours that is no regular file. */
  readonly irregular: string | undefined
  /** Names of files that hold rows. */
  readonly results: ReadonlyArray<string>
  /** How many batch files hold anything. */
  readonly batches: number
}

/** Looks at the run's own files before anything is read or written. */
export const look = Effect.fn("RunFolder.look")(function* (folder: string) {
  const found = yield* Effect.forEach((yield* names(folder)).filter(isOurs), (name) =>
    Effect.tryPromise({
      try: async () => ({ name, stat: await stat(join(folder, name)) }),
      catch: storeError(join(folder, name))
    })
  )
  const rows = found.filter(({ name, stat }) =>
    name === trajectories ? stat.size > 0 : name === discarded || batchNumber(name) !== undefined
  )
  const looked: Found = {
    irregular: found.find(({ stat }) => !stat.isFile())?.name,
    results: rows.map(({ name }) => name),
    batches: rows.filter(({ name, stat }) => batchNumber(name) !== undefined && stat.size > 0).length
  }
  return looked
})

/** Names in the folder; none when there is no folder. */
export const names = (folder: string): Effect.Effect<ReadonlyArray<string>, StoreError> =>
  Effect.tryPromise({
    try: () => readdir(folder).catch((cause: unknown) => (isMissing(cause) ? [] : Promise.reject(cause))),
    catch: storeError(folder)
  })

const isMissing = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOENT"

const Session = Schema.Struct({
  version: Schema.String,
  seed: Schema.Number,
  config: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  started_at: Schema.String,
  ended_at: Schema.String,
  duration_seconds: Schema.Number,
  released: Usage,
  released_calls: Place,
  tools: ToolNames
})
const decodeRun = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ sessions: Schema.Array(Session) })))

/** Earlier sessions, oldest first. A record that cannot be read is set aside, and said so; without `mend` it is left alone. */
export const sessions = Effect.fn("RunFolder.sessions")(function* (folder: string, mend = true) {
  const path = join(folder, run)
  const text = yield* Effect.tryPromise({
    try: () => readFile(path, "utf8").catch((cause: unknown) => (isMissing(cause) ? undefined : Promise.reject(cause))),
    catch: storeError(path)
  })
  if (text === undefined) return []
  const found = decodeRun(text)
  if (Option.isSome(found)) return found.value.sessions
  if (!mend) return []
  const aside = `${path}.unreadable-${yield* Clock.currentTimeMillis}`
  yield* Effect.tryPromise({ try: () => rename(path, aside), catch: storeError(path) })
  yield* Effect.logWarning(`${path} cannot be read and is now ${aside}: what earlier sessions were told is not known`)
  return []
})

/** Replaces run.json. */
export const writeSessions = (folder: string, runName: string, all: ReadonlyArray<SessionRecord>) =>
  replace(join(folder, run), `${JSON.stringify({ run_name: runName, sessions: all }, null, 2)}\n`)
