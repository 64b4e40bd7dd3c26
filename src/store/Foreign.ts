/** Rows that another program left in the run, such as batch_runner.py, completed to the shape of our own. */
import { Option, Predicate, Schema } from "effect"
import { errorCounts, noCalls } from "../trajectory/ShareGpt.ts"
import type { Row, Turn } from "../trajectory/Trajectory.ts"
import type { StoredRow } from "./StoredRow.ts"

type Json = Readonly<Record<string, unknown>>

const text = (value: unknown): string => (Predicate.isString(value) ? value : "")

/** A text as it is, anything else as JSON text; `none` where there is nothing. */
const jsonText = (value: unknown, none: string): string =>
  Predicate.isString(value) ? value : value === undefined || value === null ? none : JSON.stringify(value)

const isCalls = Schema.is(
  Schema.Array(
    Schema.Struct({
      id: Schema.String,
      function: Schema.Struct({ name: Schema.String, arguments: Schema.String })
    })
  )
)

const turnOf = (turn: Json): Turn => ({
  from: turn.from === "human" || turn.from === "tool" ? turn.from : "gpt",
  value: text(turn.value),
  tool_calls: isCalls(turn.tool_calls)
    ? turn.tool_calls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.function.name, arguments: call.function.arguments }
      }))
    : [],
  tool_call_id: text(turn.tool_call_id),
  name: text(turn.name)
})

const decodeJson = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
)

/** The whole row. `line` is its text, `stored` what was read of it; a leading `system` turn becomes the `system` field. */
export const complete = (line: string, stored: StoredRow, toolNames: ReadonlyArray<string>, place: number): Row => {
  const given = Option.getOrElse(decodeJson(line), (): Json => ({}))
  const turns = Array.isArray(given.conversations) ? given.conversations.filter(Predicate.isRecord) : []
  const metadata: Json = Predicate.isRecord(given.metadata) ? given.metadata : {}
  const { batch_num, image, cwd, sample, occurrence, shortened, usage } = stored.metadata
  const counts = new Map(Object.entries(stored.tool_stats))
  const stats = Object.fromEntries(toolNames.map((name) => [name, counts.get(name) ?? noCalls]))
  return {
    prompt_index: place,
    conversations: turns.filter((turn) => turn.from !== "system").map(turnOf),
    metadata: {
      batch_num,
      timestamp: text(metadata.timestamp).slice(0, 19),
      model: text(metadata.model),
      image,
      cwd,
      default_image: stored.metadata.default_image,
      default_cwd: stored.metadata.default_cwd,
      sample,
      occurrence,
      shortened,
      usage
    },
    completed: given.completed !== false,
    partial: given.partial === true,
    api_calls: stored.api_calls,
    toolsets_used: Array.isArray(given.toolsets_used) ? given.toolsets_used.filter(Predicate.isString) : [],
    tool_stats: stats,
    tool_error_counts: errorCounts(stats),
    tools: jsonText(given.tools, "[]"),
    system: text(given.system) || text(turns.find((turn) => turn.from === "system")?.value),
    source: jsonText(given.source, "{}")
  }
}
