/** The end of a session of work, however it came: rows merged, figures summed up, and the report of it. */
import { Clock, Effect } from "effect"
import { Dataset } from "./dataset/Dataset.ts"
import * as Events from "./events/Events.ts"
import { Budget } from "./model/Budget.ts"
import { RunConfig } from "./RunConfig.ts"
import { type Halt, type Report, wentOn } from "./report/Report.ts"
import * as Statistics from "./report/Statistics.ts"
import type { Tally } from "./report/Tally.ts"
import * as Card from "./store/Card.ts"
import * as Resume from "./store/Resume.ts"
import * as Session from "./store/Session.ts"
import { Store } from "./store/Store.ts"
import { timestamp } from "./trajectory/Trajectory.ts"
import { version } from "./version.ts"

/** What there is to do. */
export interface Plan {
  readonly done: Resume.Done
  readonly failed: Resume.Failed
  /** Failed sessions that do not run again, by kind, and their number. */
  readonly leftOut: ReadonlyMap<string, number>
  readonly idle: number
}

/** How the work ended. */
export interface Ended {
  readonly plan: Plan
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly started: number
  readonly stopped: boolean
  readonly halt: Halt
}

/** Puts the run's files in order, and says how it stands. */
export const conclude = Effect.fnUntraced(function* ({ plan, tally, started, stopped, halt }: Ended) {
  const store = yield* Store
  const dataset = yield* Dataset
  const config = yield* RunConfig
  const { toolNames } = store
  const { done, leftOut, idle } = plan
  const released = tally.released(yield* (yield* Budget).spent)
  const merged = yield* store.merge(done)
  const sums = Statistics.add(yield* store.sums, Statistics.ofSpent(released.usage, released.calls))
  const now = yield* Clock.currentTimeMillis
  const session = Session.record(config, version, started, { now, released }, toolNames)
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
  const toDo = sessions - done.count
  const halted = toDo > idle ? halt : wentOn
  const report: Report = {
    runName: run_name,
    location: store.location,
    sums,
    merged,
    prompts: dataset.index.size,
    sessions,
    toDo,
    failures: tally.failures,
    hopeless: tally.hopeless,
    leftOut,
    durationSeconds,
    badLines: dataset.badLines.count,
    stopped,
    halted: halted.message
  }
  yield* Events.emit({ event: "run_done", done: done.count, to_do: toDo, halted: halted.kind, took: now - started })
  return report
})
