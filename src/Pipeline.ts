/** The whole run: what is still to do, each prompt once with bounded concurrency, every outcome saved, then merged and summed up. */
import { Clock, Effect, Exit, FiberRef, HashMap } from "effect"
import * as Attempt from "./Attempt.ts"
import * as Preview from "./agent/Preview.ts"
import * as TimeLimit from "./agent/TimeLimit.ts"
import { conclude, type Plan } from "./Conclusion.ts"
import { Dataset, type DatasetError } from "./dataset/Dataset.ts"
import * as Events from "./events/Events.ts"
import { Budget } from "./model/Budget.ts"
import { kindOf } from "./model/Model.ts"
import * as Prices from "./model/Prices.ts"
import { filtersReasoning, RunConfig, type Settings } from "./RunConfig.ts"
import { Progress } from "./report/Progress.ts"
import { type Halt, wentOn } from "./report/Report.ts"
import * as Summary from "./report/Summary.ts"
import { doneEvent, Tally, type TooManyFailures } from "./report/Tally.ts"
import { OpenBatches } from "./store/OpenBatches.ts"
import { changes } from "./store/Recorded.ts"
import * as Resume from "./store/Resume.ts"
import * as Session from "./store/Session.ts"
import { type Entry, Store, type StoreError } from "./store/Store.ts"
import { Toolbox } from "./tools/Toolbox.ts"
import { isDone } from "./trajectory/Outcome.ts"
import { version } from "./version.ts"

/** Ends the work early: when it completes, no prompt is started any more and those in flight are released. */
export interface Options {
  readonly stop?: Effect.Effect<void>
}

/**
 * Runs everything that is still to do and leaves the run's files in order, also when it is stopped or cannot go on: why, says
 * the report.
 */
export const run = Effect.fn("Pipeline.run")(function* (options: Options = {}) {
  const store = yield* Store
  const dataset = yield* Dataset
  const config = yield* RunConfig
  const budget = yield* Budget
  const started = yield* Clock.currentTimeMillis
  const done = Resume.match(store.ledger, dataset.index, config.samples_per_prompt)
  const failed = Resume.failed(store.failures, dataset.index, done)
  const leftOut = failed.leftOut(config.retry_failed)
  const plan: Plan = { done, failed, leftOut, idle: [...leftOut.values()].reduce((sum, count) => sum + count, 0) }
  yield* store.begin(Session.record(config, version, started, undefined, store.toolNames))
  const earlier = yield* store.sums
  // Sessions before the prices were given spent as much as those say.
  const cost = earlier.costUsd > 0 ? earlier.costUsd : Prices.costOf(earlier.tokens, Prices.priceOf(config))
  yield* budget.begin({ cost, tokens: earlier.tokens.total, calls: earlier.apiCalls })
  yield* announce(config, plan)
  const tally = new Tally(config.max_consecutive_failures)
  const toolbox = yield* Toolbox
  const worked = work(plan, tally).pipe(
    // Rows count the tools of earlier sessions too, so that all have one schema.
    Effect.provideService(Toolbox, { ...toolbox, toolNames: store.toolNames }),
    Effect.zipRight(budget.reached),
    Effect.map((message): Halt => ({ kind: message === "" ? "" : kindOf("BudgetReached"), message })),
    // The model's error here is one that no prompt can get past.
    Effect.catchTags({
      ModelError: ({ reason, message }) => Effect.succeed<Halt>({ kind: kindOf(reason), message }),
      TooManyFailures: ({ _tag, message }) => Effect.succeed<Halt>({ kind: kindOf(_tag), message })
    }),
    Effect.map((halt) => ({ halt, stopped: false }))
  )
  const stopped = Effect.as(options.stop ?? Effect.never, { halt: wentOn, stopped: true })
  const exit = yield* Effect.exit(Effect.raceFirst(worked, stopped))
  const ended = Exit.getOrElse(exit, () => ({ halt: wentOn, stopped: false }))
  const report = yield* conclude({ plan, tally, started, ...ended }).pipe(
    // A run that could not go on says why it could not, rather than what that broke in turn.
    Effect.catchAll(
      (error): Effect.Effect<never, StoreError | DatasetError> =>
        Exit.isFailure(exit) ? Effect.failCause(exit.cause) : Effect.fail(error)
    )
  )
  return Exit.isFailure(exit) ? yield* Effect.failCause(exit.cause) : report
})

const announce = Effect.fnUntraced(function* (config: Settings, { done, leftOut, idle }: Plan) {
  const store = yield* Store
  const dataset = yield* Dataset
  const last = store.sessions.at(-1)
  const differences = last === undefined ? [] : changes(last.config, config)
  if (differences.length > 0)
    yield* Effect.logWarning(`settings differ from the last session: ${differences.join("; ")}`)
  if (!filtersReasoning(config)) yield* Effect.logInfo("the reasoning filter is off: rows without reasoning are kept")
  const total = dataset.index.size * config.samples_per_prompt
  const toDo = total - done.count - idle
  const doing = `${Preview.counted(dataset.index.size, "prompt")}${config.samples_per_prompt > 1 ? ` × ${config.samples_per_prompt} samples` : ""}`
  yield* Effect.logInfo(
    done.count === 0
      ? `${doing}, ${config.num_workers} at a time, into ${store.location}`
      : `${doing}: ${done.count} of ${total} done before, ${toDo} to do, into ${store.location}`
  )
  if (idle > 0) yield* Effect.logInfo(Summary.leftOut(leftOut))
  yield* (yield* Progress).begin(toDo, done.count)
  yield* Events.emit({
    ...{ event: "run_started", run_name: config.run_name },
    ...{ prompts: dataset.index.size, to_do: toDo }
  })
})

const work = Effect.fnUntraced(function* ({ done, failed, idle }: Plan, tally: Tally) {
  const store = yield* Store
  const dataset = yield* Dataset
  const config = yield* RunConfig
  const progress = yield* Progress
  const budget = yield* Budget
  const batches = new OpenBatches()
  const close = (batch: number | undefined) => (batch === undefined ? Effect.void : store.closeBatch(batch, done))

  // Once an outcome is safe it also counts, even when the run is stopped in between.
  const settle = (unit: Resume.Unit, entry: Entry) =>
    Effect.uninterruptible(
      Effect.map(store.save(entry), () => {
        if (isDone(entry.outcome)) done.mark(unit.place, unit.sample)
        return tally.add(entry.outcome)
      })
    )

  const one = Effect.fnUntraced(function* (unit: Resume.Unit) {
    yield* close(batches.start(unit))
    yield* progress.started
    yield* logsAt(label(unit, config))
    const whose = { prompt_index: unit.place, sample: unit.sample, batch_num: unit.batch }
    yield* Events.emit({ event: "prompt_started", ...whose, attempt: unit.attempt })
    const began = yield* Clock.currentTimeMillis
    let halt: TooManyFailures | undefined
    const attempted = Effect.tap(Attempt.run(unit), (entry) =>
      entry === undefined
        ? Effect.void
        : Effect.map(settle(unit, entry), (why) => {
            halt = why
          })
    )
    yield* Effect.onExit(attempted, (exit) => {
      const outcome = Exit.isSuccess(exit) ? exit.value?.outcome : undefined
      return Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.zipRight(progress.ended(outcome), Events.emit(doneEvent(whose, outcome, now - began)))
      )
    })
    const warning = tally.warning()
    if (warning !== "") yield* Effect.zipRight(logsAt(undefined), Effect.logWarning(warning))
    yield* close(batches.end(unit))
    if (halt !== undefined) yield* halt
  })

  const units = Resume.remaining(done, failed, config.retry_failed, config.batch_size, store.nextBatch)
  yield* forEachOf(units, one, {
    concurrency: Math.min(config.num_workers, dataset.index.size * config.samples_per_prompt - done.count - idle),
    until: Effect.map(budget.reached, (why) => why !== ""),
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

/**
 * Effect.forEach over a sequence that is drawn as it is needed: Effect.forEach itself makes an array of all elements
 * first, and a run may have millions.
 */
const forEachOf = <A, E, R, E2>(
  items: Iterable<A>,
  each: (item: A) => Effect.Effect<void, E, R>,
  options: {
    readonly concurrency: number
    /** Whether nothing more is drawn. */
    readonly until: Effect.Effect<boolean>
    /** Runs when nothing is left to draw, perhaps while the last elements are still at work, and more than once. */
    readonly onLast: Effect.Effect<void, E2>
  }
): Effect.Effect<void, E | E2, R> => {
  const { concurrency, until, onLast } = options
  const iterator = items[Symbol.iterator]()
  const worker = Effect.gen(function* () {
    while (!(yield* until)) {
      const next = iterator.next()
      if (next.done) break
      yield* each(next.value)
    }
    yield* onLast
  })
  return Effect.forEach(Array.from({ length: concurrency }), () => worker, { concurrency, discard: true })
}
