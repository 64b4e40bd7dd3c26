/** What makes a finished row unfit for training. */
import * as ShareGpt from "./ShareGpt.ts"
import type { Row } from "./Trajectory.ts"

/** No turn of the model holds reasoning. */
export const lacksReasoning = (row: Pick<Row, "conversations">): boolean =>
  !row.conversations.some(ShareGpt.hasReasoning)

/** Tools that were called and that no toolset has. */
export const inventedTools = (row: Pick<Row, "tool_stats">, known: ReadonlySet<string>): ReadonlyArray<string> =>
  Object.entries(row.tool_stats).flatMap(([name, { count }]) => (count > 0 && !known.has(name) ? [name] : []))
