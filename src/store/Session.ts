/** One session of work on a run, as run.json tells it. */
import { noUsage, type Usage } from "../model/Model.ts"
import type { Settings } from "../RunConfig.ts"
import { timestamp } from "../trajectory/Trajectory.ts"
import { recorded } from "./Recorded.ts"
import type { SessionRecord } from "./Store.ts"

/** How a session of work ended. */
export interface Ended {
  /** Milliseconds since the epoch. */
  readonly now: number
  /** What prompts had spent that it released in flight, and on how many answers. */
  readonly released: { readonly usage: Usage; readonly calls: number }
}

/** The record of a session that began at `started`, milliseconds since the epoch; `ended` is undefined while it works. `tools` are those that its rows count. */
export const record = (
  config: Settings,
  version: string,
  started: number,
  ended: Ended | undefined,
  tools: ReadonlyArray<string>
): SessionRecord => ({
  version,
  seed: config.seed,
  config: recorded(config),
  started_at: timestamp(started),
  ended_at: ended === undefined ? "" : timestamp(ended.now),
  duration_seconds: ended === undefined ? 0 : Math.round((ended.now - started) / 10) / 100,
  released: ended?.released.usage ?? noUsage,
  released_calls: ended?.released.calls ?? 0,
  tools
})

/** The tools that rows count from now on: a name keeps the place that it had in earlier sessions, so that all rows have one schema. */
export const toolNames = (
  earlier: ReadonlyArray<Pick<SessionRecord, "tools">>,
  own: ReadonlyArray<string>
): ReadonlyArray<string> => [...new Set([...earlier.flatMap(({ tools }) => tools), ...own])]
