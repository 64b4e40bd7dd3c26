/** What is read back of rows and failures that earlier sessions left. */
import { Predicate, Schema } from "effect"
import { RowUsage, ToolCount } from "../trajectory/Trajectory.ts"

const Usage = Schema.optionalWith(RowUsage, {
  default: () => ({ prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0, cost_usd: 0 })
})
const Text = Schema.optionalWith(Schema.String, { default: () => "" })

const isCount = Schema.is(ToolCount)

// As it is, since Schema.Record loses the key `__proto__`, which a model can invent like any other.
const ToolStats = Schema.declare(
  (value): value is Readonly<Record<string, ToolCount>> =>
    Predicate.isRecord(value) && Object.values(value).every((part) => isCount(part))
)

/** Rows of other programs with the same shape are read too: what they lack has a default. */
const StoredRow = Schema.Struct({
  conversations: Schema.NonEmptyArray(
    Schema.Struct({ from: Schema.Literal("human", "gpt", "tool", "system"), value: Schema.String })
  ),
  metadata: Schema.Struct({
    batch_num: Schema.optionalWith(Schema.Int, { default: () => 0 }),
    image: Text,
    cwd: Text,
    sample: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 99_999)), { default: () => 0 }),
    occurrence: Schema.optionalWith(Schema.Int, { default: () => 0 }),
    usage: Usage
  }),
  tool_stats: ToolStats
})
export type StoredRow = typeof StoredRow.Type

const StoredFailure = Schema.Struct({ batch_num: Schema.Int, usage: Usage })

export const decodeRow = Schema.decodeUnknownOption(Schema.parseJson(StoredRow))
export const decodeFailure = Schema.decodeUnknownOption(Schema.parseJson(StoredFailure))
