/** The whole run: what is still to do, each prompt once with bounded concurrency, every outcome saved, then merged and summed up. */
import { Clock, Effect, Exit, FiberRef, HashMap } from "effect"
import * as Attempt from "./Attempt.ts"
import * as Preview from "./agent/Preview.ts"
import * as TimeLimit from "./agent/TimeLimit.ts"
import { Dataset, type DatasetError } from "./dataset/Dataset.ts"
import { changes, filtersReasoning, RunConfig, recorded, type Settings } from "./RunConfig.ts"
import { Progress } from "./report/Progress.ts"
import type { Report } from "./report/Report.ts"
import * as Statistics from "./report/Statistics.ts"
import * as Card from "./store/Card.ts"
import { OpenBatches } from "./store/OpenBatches.ts"
import * as Resume from "./store/Resume.ts"
import { type Entry, type SessionRecord, Store, type StoreError } from "./store/Store.ts"
import { Toolbox } from "./tools/Toolbox.ts"
import { isDone, type Outcome } from "./trajectory/Outcome.ts"
import { timestamp } from "./trajectory/Trajectory.ts"
import { version } from "./version.ts"

/** Ends the work early: when it completes, no prompt is started any more and those in flight are released. */
export interface Options {
  readonly stop?: Effect.Effect<void>
}

/** Runs everything that is still to do and leaves the run's files in order, also when it is stopped or cannot go on. */
export const run = Effect.fn("Pipeline.run")(function* (options: Options = {}) {
  const store = yield* Store
  const dataset = yield* Dataset
  const config = yield* RunConfig
  const started = yield* Clock.currentTimeMillis
  const done = Resume.match(store.ledger, dataset.index, config.samples_per_prompt)
  const failed = Resume.failed(store.failures, dataset.index, done)
  yield* store.begin(sessionRecord(config, started, undefined))
  yield* announce(config, done)
  const tally = new Tally()
  const exit = yield* Effect.exit(
    Effect.raceFirst(Effect.as(work(done, failed, tally), false), Effect.as(options.stop ?? Effect.never, true))
  )
  const report = yield* conclude({ done, failed, tally, started, stopped: Exit.isSuccess(exit) && exit.value }).pipe(
    // A run that could not go on says why it could not, rather than what that broke in turn.
    Effect.catchAll(
      (error): Effect.Effect<never, StoreError | DatasetError> =>
        Exit.isFailure(exit) ? Effect.failCause(exit.cause) : Effect.fail(error)
    )
  )
  if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
  return report
})

/** Counts of this session of work. */
class Tally {
  readonly failures = new Map<string, number>()
  hopeless = 0
  kept = 0
  discarded = 0
  private warned = false

  add(outcome: Outcome): void {
    if (outcome._tag === "Kept") this.kept++
    if (outcome._tag === "Discarded") this.discarded++
    if (outcome._tag !== "Failed") return
    const { kind, retryable } = outcome.failure
    if (!retryable) this.hopeless++
    this.failures.set(kind, (this.failures.get(kind) ?? 0) + 1)
  }

  /** True once, as soon as so many sessions in a row were all discarded. */
  warnsOfDiscards(): boolean {
    if (this.warned || this.kept > 0 || this.discarded < 2) return false
    this.warned = true
    return true
  }
}

const announce = Effect.fnUntraced(function* (config: Settings, done: Resume.Done) {
  const store = yield* Store
  const dataset = yield* Dataset
  const last = store.sessions.at(-1)
  const differences = last === undefined ? [] : changes(last.config, config)
  if (differences.length > 0)
    yield* Effect.logWarning(`settings differ from the last session: ${differences.join("; ")}`)
  if (!filtersReasoning(config)) yield* Effect.logInfo("the reasoning filter is off: rows without reasoning are kept")
  const total = dataset.index.size * config.samples_per_prompt
  const doing = `${Preview.counted(dataset.index.size, "prompt")}${config.samples_per_prompt > 1 ? ` × ${config.samples_per_prompt} samples` : ""}`
  yield* Effect.logInfo(
    done.count === 0
      ? `${doing}, ${config.num_workers} at a time, into ${store.location}`
      : `${doing}: ${done.count} of ${total} done before, ${total - done.count} to do, into ${store.location}`
  )
  yield* (yield* Progress).begin(total - done.count, done.count)
})

const work = Effect.fnUntraced(function* (done: Resume.Done, failed: Resume.Failed, tally: Tally) {
  const store = yield* Store
  const dataset = yield* Dataset
  const config = yield* RunConfig
  const progress = yield* Progress
  const batches = new OpenBatches()
  const close = (batch: number | undefined) => (batch === undefined ? Effect.void : store.closeBatch(batch, done))

  // Once an outcome is safe it also counts, even when the run is stopped in between.
  const settle = (unit: Resume.Unit, entry: Entry) =>
    Effect.uninterruptible(
      Effect.map(store.save(entry), () => {
        if (isDone(entry.outcome)) done.mark(unit.place, unit.sample)
        tally.add(entry.outcome)
        return entry.outcome
      })
    )

  const one = Effect.fnUntraced(function* (unit: Resume.Unit) {
    yield* close(batches.start(unit))
    yield* progress.started
    yield* logsAt(label(unit, config))
    yield* Effect.flatMap(Attempt.run(unit), (entry) => settle(unit, entry)).pipe(
      Effect.onExit((exit) => progress.ended(Exit.isSuccess(exit) ? exit.value : undefined))
    )
    if (tally.warnsOfDiscards()) {
      yield* logsAt(undefined)
      yield* Effect.logWarning(allDiscarded(tally.discarded))
    }
    yield* close(batches.end(unit))
  })

  const units = Resume.remaining(done, failed, config.retry_failed, config.batch_size, store.nextBatch)
  yield* forEachOf(units, one, {
    concurrency: Math.min(config.num_workers, dataset.index.size * config.samples_per_prompt - done.count),
    onLast: Effect.suspend(() => close(batches.finish()))
  }).pipe(Effect.provideServiceEffect(TimeLimit.TimeLimit, TimeLimit.make(config.timeout)), Effect.scoped)
})

/** Marks the log lines of this fiber, and of those that it starts, with their place: `Effect.annotateLogs` for a fiber of our own. */
const logsAt = (label: string | undefined) =>
  FiberRef.update(
    FiberRef.currentLogAnnotations,
    label === undefined ? HashMap.remove("at") : HashMap.set<string, unknown>("at", label)
  )

const label = ({ batch, place, sample }: Resume.Unit, config: Settings): string =>
  config.samples_per_prompt > 1 ? `B${batch}:P${place}:S${sample}` : `B${batch}:P${place}`

const allDiscarded = (count: number): string =>
  `all ${count} sessions so far were discarded: no turn holds reasoning. To keep such rows from now on give --reasoning_filter=off (what was discarded stays in discarded.jsonl, and is not run again); to have the model reason give --reasoning_effort`

/**
 * Effect.forEach over a sequence that is drawn as it is needed: Effect.forEach itself makes an array of all elements
 * first, and a run may have millions.
 */
const forEachOf = <A, E, R, E2>(
  items: Iterable<A>,
  each: (item: A) => Effect.Effect<void, E, R>,
  options: {
    readonly concurrency: number
    /** Runs when nothing is left to draw, perhaps while the last elements are still at work, and more than once. */
    readonly onLast: Effect.Effect<void, E2>
  }
): Effect.Effect<void, E | E2, R> => {
  const { concurrency, onLast } = options
  const iterator = items[Symbol.iterator]()
  const worker = Effect.gen(function* () {
    for (let next = iterator.next(); !next.done; next = iterator.next()) yield* each(next.value)
    yield* onLast
  })
  return Effect.forEach(Array.from({ length: concurrency }), () => worker, { concurrency, discard: true })
}

interface Ended {
  readonly done: Resume.Done
  /** As it stood at the start. */
  readonly failed: Resume.Failed
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly started: number
  readonly stopped: boolean
}

const conclude = Effect.fnUntraced(function* ({ done, failed, tally, started, stopped }: Ended) {
  const store = yield* Store
  const dataset = yield* Dataset
  const config = yield* RunConfig
  const { toolNames } = yield* Toolbox
  const merged = yield* store.merge(done)
  const sums = yield* store.sums
  const now = yield* Clock.currentTimeMillis
  const session = sessionRecord(config, started, now)
  const earlier = store.sessions.reduce((seconds, { duration_seconds }) => seconds + duration_seconds, 0)
  const durationSeconds = earlier + session.duration_seconds
  const { run_name, distribution, model, batch_size } = config
  yield* store.finish({
    statistics: Statistics.toJson(sums, {
      runName: run_name,
      distribution,
      totalPrompts: dataset.index.size,
      totalBatches: (yield* store.batches).size,
      batchSize: batch_size,
      model,
      completedAt: timestamp(now),
      durationSeconds,
      failed: Resume.failed(store.failures, dataset.index, done).count,
      toolNames
    }),
    card: Card.make({ runName: run_name, model, distribution, rows: merged.rows, toolNames }),
    session
  })
  const sessions = dataset.index.size * config.samples_per_prompt
  const report: Report = {
    runName: run_name,
    location: store.location,
    sums,
    merged,
    prompts: dataset.index.size,
    sessions,
    toDo: sessions - done.count,
    failures: tally.failures,
    hopeless: tally.hopeless,
    leftOut: failed.leftOut(config.retry_failed),
    durationSeconds,
    badLines: dataset.badLines.count,
    stopped,
    halted: ""
  }
  return report
})

const sessionRecord = (config: Settings, started: number, ended: number | undefined): SessionRecord => ({
  version,
  seed: config.seed,
  config: recorded(config),
  started_at: timestamp(started),
  ended_at: ended === undefined ? "" : timestamp(ended),
  duration_seconds: ended === undefined ? 0 : Math.round((ended - started) / 10) / 100,
  released: Statistics.noUsage,
  released_calls: 0
})
