/** The record of what is done, for people and tools; the batch files are the truth. */
import { timestamp } from "../trajectory/Trajectory.ts"
import type { Done } from "./Resume.ts"
import type { BatchStats } from "./Store.ts"

/** The content of checkpoint.json; `now` in milliseconds since the epoch. */
export const make = (options: {
  readonly runName: string
  readonly done: Done
  readonly batches: ReadonlyMap<number, BatchStats>
  readonly now: number
}): object => ({
  run_name: options.runName,
  completed_prompts: options.done.ranges(),
  batch_stats: Object.fromEntries(options.batches),
  last_updated: timestamp(options.now)
})
