/** Where a run is kept: what is finished, and everything that is left behind for people and programs. */
import { Context, type Effect, Schema } from "effect"
import type { ContentKey } from "../dataset/ContentKey.ts"
import type { Statistics, Usage } from "../report/Statistics.ts"
import type { Outcome } from "../trajectory/Outcome.ts"
import type { Failures } from "./Failures.ts"
import type { Ledger } from "./Ledger.ts"
import type { Merged } from "./Merge.ts"
import type { Done } from "./Resume.ts"

/** The run cannot be kept here. `message` is one line with the way out. */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  reason: Schema.Literal(
    /** Another process works on the run. */
    "Busy",
    /** The folder holds results and `resume` was not asked for. */
    "Occupied",
    "NoSpace",
    "NotAllowed",
    "Other"
  ),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

export interface BatchStats {
  readonly processed: number
  readonly kept: number
  readonly discarded: number
  readonly failed: number
}

/** A finished attempt on its way into the store. */
export interface Entry {
  readonly key: ContentKey
  readonly occurrence: number
  readonly sample: number
  readonly place: number
  readonly batch: number
  readonly outcome: Outcome
}

/** One session of work on a run, as run.json tells it. */
export interface SessionRecord {
  readonly version: string
  readonly seed: number
  readonly config: Readonly<Record<string, unknown>>
  /** UTC, seconds. */
  readonly started_at: string
  /** Empty while it works, and for ever when it was killed. */
  readonly ended_at: string
  readonly duration_seconds: number
  /** What prompts had spent that were released in flight, and the answers that they had: it stands in no row and no failure. */
  readonly released: Usage
  readonly released_calls: number
  /** Names of the tools that its rows count. */
  readonly tools: ReadonlyArray<string>
}

/** What a run leaves beside its rows when a session ends. */
export interface Closing {
  readonly statistics: object
  readonly card: string
  readonly session: SessionRecord
}

export interface StoreService {
  /** For people: where the files are. */
  readonly location: string
  /** Tools that rows count: those of all earlier sessions first, in their order, then this one's own. */
  readonly toolNames: ReadonlyArray<string>
  /** Finished rows of all sessions. */
  readonly ledger: Ledger
  /** Failed attempts of all sessions. */
  readonly failures: Failures
  /** Figures over everything in the store, with what each session of work that is over had spent on prompts that it released. */
  readonly sums: Effect.Effect<Statistics>
  readonly batches: Effect.Effect<ReadonlyMap<number, BatchStats>>
  /** The first batch number that nothing has yet. */
  readonly nextBatch: number
  /** Earlier sessions, oldest first. */
  readonly sessions: ReadonlyArray<SessionRecord>
  /** Writes down that a session works on the run. */
  readonly begin: (session: SessionRecord) => Effect.Effect<void, StoreError>
  /** Returns when the outcome is safe. */
  readonly save: (entry: Entry) => Effect.Effect<void, StoreError>
  /** Nothing more comes for this batch: notes what is done, at once or as soon as that costs next to nothing. */
  readonly closeBatch: (batch: number, done: Done) => Effect.Effect<void, StoreError>
  /** Writes the merged data set and the checkpoint as of now. */
  readonly merge: (done: Done) => Effect.Effect<Merged, StoreError>
  /** Leaves the files of a session's end; from then on the sums hold what it spent on released prompts. */
  readonly finish: (closing: Closing) => Effect.Effect<void, StoreError>
}

export class Store extends Context.Tag("batch-runner/Store")<Store, StoreService>() {}
