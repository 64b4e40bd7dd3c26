/** What is read back of rows and failures that earlier sessions left. */
import { Predicate, Schema } from "effect"
import { samplesAtMost } from "../RunConfig.ts"
import { RowUsage, ToolCount } from "../trajectory/Trajectory.ts"

const Usage = Schema.optionalWith(RowUsage, {
  default: () => ({ prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0, cost_usd: 0 })
})
const Text = Schema.optionalWith(Schema.String, { default: () => "" })

const Flag = Schema.optional(Schema.Boolean)

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
    default_image: Flag,
    default_cwd: Flag,
    sample: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, samplesAtMost - 1)), { default: () => 0 }),
    occurrence: Schema.optionalWith(Schema.Int, { default: () => 0 }),
    usage: Usage
  }),
  tool_stats: ToolStats,
  tools: Schema.optional(Schema.Unknown),
  system: Schema.optional(Schema.Unknown),
  source: Schema.optional(Schema.Unknown)
})
export type StoredRow = typeof StoredRow.Type

/** Whether a row has not all that our own have. */
export const isForeign = ({ metadata, tools, system, source }: StoredRow): boolean =>
  [metadata.default_image, metadata.default_cwd, tools, system, source].some((part) => part === undefined)

const StoredFailure = Schema.Struct({
  batch_num: Schema.Int,
  sample: Schema.optionalWith(Schema.Int, { default: () => 0 }),
  occurrence: Schema.optionalWith(Schema.Int, { default: () => 0 }),
  prompt_key: Schema.optionalWith(Schema.String.pipe(Schema.pattern(/^[0-9a-f]{21}$/)), {
    default: () => "0".repeat(21)
  }),
  usage: Usage
})

export const decodeRow = Schema.decodeUnknownOption(Schema.parseJson(StoredRow))
export const decodeFailure = Schema.decodeUnknownOption(Schema.parseJson(StoredFailure))
