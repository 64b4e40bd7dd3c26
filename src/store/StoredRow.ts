/** What is read back of rows and failures that earlier sessions left. */
import { Either, Option, Predicate, Schema } from "effect"
import * as Model from "../model/Model.ts"
import { samplesAtMost } from "../RunConfig.ts"
import { Row, type ToolCount } from "../trajectory/Trajectory.ts"

/** A field whose value does not fit counts as missing: one odd field must not make a finished row run again. */
const lenient = <A, I>(schema: Schema.Schema<A, I>, missing: A) =>
  Schema.optionalWith(schema.annotations({ decodingFallback: () => Either.right(missing) }), { default: () => missing })

// No figure is below nothing or beyond all bounds: one such would spoil every sum.
// What no session can have spent would spoil every sum and every budget.
const Figure = lenient(Schema.NonNegative.pipe(Schema.lessThanOrEqualTo(1e12)), 0)
export const Usage = lenient(
  Schema.Struct({
    prompt: Figure,
    completion: Figure,
    reasoning: Figure,
    cached: Figure,
    total: Figure,
    cost_usd: Figure
  }),
  Model.noUsage
)
const Text = lenient(Schema.String, "")
export const Place = lenient(Schema.NonNegativeInt, 0)
const Flag = lenient(Schema.Boolean, false)
const isToolName = Schema.is(Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]{1,64}$/)))
/** Names of tools as a session's record tells them; the first versions told none. One that is no name hides no other. */
export const ToolNames = lenient(
  Schema.transform(Schema.Array(Schema.Unknown), Schema.Array(Schema.String), {
    strict: true,
    decode: (names) => names.filter(isToolName),
    encode: (names) => names
  }),
  []
)
const Sample = lenient(Schema.Int.pipe(Schema.between(0, samplesAtMost - 1)), 0)

const Metadata = Schema.Struct({
  batch_num: Place,
  image: Text,
  cwd: Text,
  default_image: Flag,
  default_cwd: Flag,
  sample: Sample,
  occurrence: Place,
  shortened: Place,
  usage: Usage
})

const Stored = Schema.Struct({
  conversations: Schema.Array(Schema.Struct({ from: Text, value: Text })),
  metadata: lenient(Metadata, {
    ...{ batch_num: 0, image: "", cwd: "", default_image: false, default_cwd: false },
    ...{ sample: 0, occurrence: 0, shortened: 0, usage: Model.noUsage }
  }),
  api_calls: lenient(Schema.NonNegativeInt, -1),
  tool_stats: Schema.optional(Schema.Unknown),
  tools: Text
})

export interface StoredRow extends Pick<typeof Stored.Type, "conversations" | "metadata" | "tools"> {
  readonly prompt: string
  /** As the row tells, or one for each answer in it. */
  readonly api_calls: number
  readonly tool_stats: Readonly<Record<string, ToolCount>>
  /** Not all is there that our own rows have, in our own shape. */
  readonly foreign: boolean
}

type Json = Readonly<Record<string, unknown>>

const figure = (value: unknown): number => (Predicate.isNumber(value) ? value : 0)

// Not by Schema.Record, which loses the key `__proto__`: a model can invent that name like any other.
const countsOf = (stats: unknown): Readonly<Record<string, ToolCount>> =>
  Object.fromEntries(
    Object.entries(Predicate.isRecord(stats) ? stats : {}).map(([name, one]) => {
      const part = Predicate.isRecord(one) ? one : {}
      return [name, { count: figure(part.count), success: figure(part.success), failure: figure(part.failure) }]
    })
  )

const has = (value: unknown, names: ReadonlyArray<string>): boolean =>
  Predicate.isRecord(value) &&
  Object.keys(value).length === names.length &&
  names.every((name) => Object.hasOwn(value, name))

const turnKeys = ["from", "value", "tool_calls", "tool_call_id", "name"]
const metadataKeys = Object.keys(Row.fields.metadata.fields)
const isMetadata = Schema.is(Row.fields.metadata)
const isSimple: (row: Json) => boolean = Schema.is(
  Row.pick("completed", "partial", "api_calls", "toolsets_used", "tools", "system", "source")
)
const countKeys = ["count", "success", "failure"]

/** Whether a row's parts have the keys of ours; `toolNames` are those that rows count now. */
const isWhole = (row: Json, toolNames: ReadonlyArray<string>): boolean =>
  isSimple(row) &&
  has(row.metadata, metadataKeys) &&
  isMetadata(row.metadata) &&
  has(row.metadata.usage, Object.keys(Model.Usage.fields)) &&
  Array.isArray(row.conversations) &&
  row.conversations.every(
    (turn) => has(turn, turnKeys) && turnKeys.every((name) => name === "tool_calls" || Predicate.isString(turn[name]))
  ) &&
  has(row.tool_stats, toolNames) &&
  Predicate.isRecord(row.tool_stats) &&
  Object.values(row.tool_stats).every((one) => has(one, countKeys)) &&
  has(row.tool_error_counts, toolNames)

const decodeJson = (text: string): Option.Option<unknown> =>
  Option.getRight(Either.try((): unknown => JSON.parse(text)))
const decodeStored = Schema.decodeUnknownOption(Stored)

/** A finished row, of any program with the same shape: it needs a prompt and an answer, all else has a default. */
export const decodeRow = (text: string, toolNames: ReadonlyArray<string>): Option.Option<StoredRow> =>
  Option.gen(function* () {
    const json = yield* Option.filter(decodeJson(text), Predicate.isRecord)
    const { conversations, metadata, api_calls, tool_stats, tools } = yield* decodeStored(json)
    const prompt = yield* Option.fromNullable(conversations.find(({ from }) => from === "human")?.value)
    const answers = conversations.filter(({ from }) => from === "gpt").length
    if (answers === 0) return yield* Option.none()
    const foreign = !isWhole(json, toolNames)
    return {
      ...{ conversations, metadata, tools, prompt, foreign },
      api_calls: api_calls < 0 ? answers : api_calls,
      tool_stats: countsOf(tool_stats)
    }
  })

const decodeOffer = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String }) })))
)

/** Tools that a row was offered and counts, of those that are not known. */
export const unknownTools = (
  { tools, tool_stats }: Pick<StoredRow, "tools" | "tool_stats">,
  known: ReadonlySet<string>
): ReadonlyArray<string> => {
  const counted = new Set(Object.keys(tool_stats).filter((name) => !known.has(name) && isToolName(name)))
  if (counted.size === 0) return []
  return Option.getOrElse(decodeOffer(tools), () => []).flatMap((tool) =>
    counted.has(tool.function.name) ? [tool.function.name] : []
  )
}

const StoredFailure = Schema.Struct({
  batch_num: Schema.Int,
  sample: Sample,
  occurrence: Place,
  prompt_key: lenient(Schema.String.pipe(Schema.pattern(/^[0-9a-f]{21}$/)), "0".repeat(21)),
  kind: Text,
  error: Text,
  reason: Text,
  api_calls: Place,
  usage: Usage
})

const snakeCase = (name: string): string => name.replace(/(?<!^)[A-Z]/g, "_$&").toLowerCase()

/** The kind that a failure names; the first versions told only the error's tag and its reason. */
const kindOf = ({ kind, error, reason }: typeof StoredFailure.Type): string =>
  // Kinds are shown to people, so none may write to a terminal more than its name.
  (kind || snakeCase(reason || error)).replace(/\p{C}/gu, "").slice(0, 64) || "unknown"

const decodeStoredFailure = Schema.decodeUnknownOption(Schema.parseJson(StoredFailure))

/** A failed attempt. */
export const decodeFailure = (text: string) =>
  Option.map(decodeStoredFailure(text), (stored) => ({ ...stored, kind: kindOf(stored) }))
