/** What makes a finished row unfit for training. */
import * as ShareGpt from "./ShareGpt.ts"
import type { Row } from "./Trajectory.ts"

/** No turn of the model holds reasoning. */
export const lacksReasoning = (row: Pick<Row, "conversations">): boolean =>
  !row.conversations.some(ShareGpt.hasReasoning)

/** Tools that were called and that no toolset has. */
export const inventedTools = (row: Pick<Row, "tool_stats">, known: ReadonlySet<string>): ReadonlyArray<string> =>
  Object.keys(row.tool_stats).filter((name) => !known.has(name) && (row.tool_stats[name]?.count ?? 0) > 0)
