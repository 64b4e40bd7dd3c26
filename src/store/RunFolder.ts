/** The files of a run folder: their names, and what earlier sessions wrote into run.json. */
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import type { Defaults } from "../dataset/ContentKey.ts"
import { replace, storeError } from "./Disk.ts"
import type { SessionRecord, StoreError } from "./Store.ts"

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
  duration_seconds: Schema.Number
})
const decodeRun = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ sessions: Schema.Array(Session) })))

/** Earlier sessions, oldest first; a record that cannot be read counts as none. */
export const sessions = (folder: string): Effect.Effect<ReadonlyArray<SessionRecord>> =>
  Effect.promise(() => readFile(join(folder, run), "utf8").catch(() => "")).pipe(
    Effect.map((text) => Option.match(decodeRun(text), { onNone: () => [], onSome: (found) => found.sessions }))
  )

/** Replaces run.json. */
export const writeSessions = (folder: string, runName: string, all: ReadonlyArray<SessionRecord>) =>
  replace(join(folder, run), `${JSON.stringify({ run_name: runName, sessions: all }, null, 2)}\n`)

/** The image and directory that any of the sessions gave to rows without their own. */
export const defaultsOf = (configs: ReadonlyArray<Readonly<Record<string, unknown>>>): Defaults => {
  const all = (name: string) =>
    new Set(configs.map((config) => config[name]).filter((value) => typeof value === "string" && value !== ""))
  return { images: strings(all("image")), cwds: strings(all("cwd")) }
}

const strings = (values: ReadonlySet<unknown>): ReadonlySet<string> =>
  new Set([...values].filter((value) => typeof value === "string"))
