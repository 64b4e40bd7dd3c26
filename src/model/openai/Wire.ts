/** The chat-completions JSON of the endpoints, decoded into answers at this one door. */
import { Either, Predicate, Schema } from "effect"
import { type Answer, type Ask, type FinishReason, noUsage, type Price, type ToolCall, type Usage } from "../Model.ts"
import * as Prices from "../Prices.ts"
import * as Reasoning from "./Reasoning.ts"

type Json = Readonly<Record<string, unknown>>

/**
 * A body that is no answer, and what was spent on it: `Failed` is the endpoint's own error inside HTTP 200, its code 0 for none,
 * `Malformed` no chat completion at all.
 */
export type Problem = { readonly usage: Usage } & (
  | { readonly _tag: "Failed"; readonly code: number; readonly error: unknown }
  | { readonly _tag: "Malformed"; readonly detail: string }
)

/** A JSON object taken as it is, unknown fields included, without a copy. */
const JsonObject = Schema.declare((value: unknown): value is Json => Predicate.isRecord(value), {
  identifier: "a JSON object"
})

const Body = Schema.Struct({
  error: Schema.optional(Schema.Unknown),
  choices: Schema.optional(Schema.NullOr(Schema.Array(JsonObject))),
  usage: Schema.optional(Schema.Unknown)
})

const Choice = Schema.Struct({
  message: JsonObject,
  finish_reason: Schema.optional(Schema.Unknown),
  error: Schema.optional(Schema.Unknown)
})

const decodeBody = Schema.decodeUnknownEither(Body)
const decodeChoice = Schema.decodeUnknownEither(Choice)

/** Decodes the text of a response body. `price` is what the model costs where the body does not say. */
export const decodeText = (ask: Ask, text: string, price?: Price): Either.Either<Answer, Problem> =>
  Either.flatMap(
    Either.try({
      try: (): unknown => JSON.parse(text),
      catch: () => malformed(text.trim() === "" ? "an empty body" : `a body that is no JSON: ${text.slice(0, 2000)}`)
    }),
    (body) => decode(ask, body, price)
  )

/** Decodes a response body. `ask` is what it answers: made-up call ids come from its turn and differ from all earlier ones. */
export const decode = (ask: Ask, body: unknown, price?: Price): Either.Either<Answer, Problem> => {
  const top = decodeBody(body)
  if (Either.isLeft(top)) {
    return Either.left(malformed("a body that is no chat completion"))
  }
  const spent = Prices.read(top.right.usage, price)
  if (isGiven(top.right.error)) {
    return Either.left(failed(top.right.error, spent))
  }
  const first = top.right.choices?.[0]
  if (first === undefined) {
    return Either.left(malformed("a body without choices", spent))
  }
  const choice = decodeChoice(first)
  // An error may stand in the place of the message.
  if (isGiven(first.error) || first.finish_reason === "error") {
    return Either.left(failed(first.error ?? "the answer broke off with finish_reason error", spent))
  }
  if (Either.isLeft(choice)) {
    return Either.left(malformed("a choice without a message", spent))
  }
  return Either.right(toAnswer(ask, choice.right.message, choice.right.finish_reason, spent))
}

const malformed = (detail: string, spent?: Prices.Spent): Problem => ({
  _tag: "Malformed",
  detail,
  usage: spent?.usage ?? noUsage
})

const failed = (error: unknown, { usage }: Prices.Spent): Problem => ({
  _tag: "Failed",
  code: codeOf(field(error, "code")),
  error,
  usage
})

/** A status of HTTP, as a number or as its digits; other numbers are a server's own. */
const codeOf = (code: unknown): number => {
  const digits = Predicate.isNumber(code) || Predicate.isString(code) ? String(code) : ""
  return /^[45]\d\d$/.test(digits) ? Number(digits) : 0
}

const isGiven = (error: unknown): boolean => error !== undefined && error !== null && error !== "" && error !== false

const toAnswer = (ask: Ask, message: Json, finish: unknown, spent: Prices.Spent): Answer => {
  const calls = toCalls(ask, callsGiven(message))
  const parts = contentParts(message.content)
  const finishReason = toFinishReason(finish, calls.length > 0)
  const images = imagesOf(message)
  const refusal = Predicate.isString(message.refusal) ? message.refusal : ""
  const { content, reasoning } = Reasoning.part({
    text: parts.text === "" ? refusal : parts.text,
    ended: finishReason === "stop",
    reasoning: message.reasoning,
    reasoning_content: message.reasoning_content,
    reasoning_details: message.reasoning_details,
    parts: parts.reasoning
  })
  return {
    content: content.toWellFormed(),
    reasoning,
    toolCalls: calls.map((call) => call.call),
    finishReason,
    ...(images.length > 0 ? { images } : {}),
    ...spent,
    echo: toEcho(
      message,
      calls.map((call) => call.raw)
    )
  }
}

/** Text as it is, or from a list of parts; parts of type `thinking` are reasoning. */
const contentParts = (content: unknown): { readonly text: string; readonly reasoning: ReadonlyArray<string> } => {
  if (Predicate.isString(content)) {
    return { text: content, reasoning: [] }
  }
  if (!Array.isArray(content)) {
    return { text: "", reasoning: [] }
  }
  const parts: ReadonlyArray<unknown> = content
  return {
    text: parts.map((part) => (Predicate.isString(part) ? part : string(field(part, "text")))).join(""),
    reasoning: parts.map((part) => contentParts(field(part, "thinking")).text).filter((text) => text !== "")
  }
}

/** Pictures of an answer at most. */
const imagesAtMost = 8

/** Pictures, in the field that OpenRouter has for them or among the parts of the content. */
const imagesOf = ({ images, content }: Json): ReadonlyArray<string> =>
  [images, content]
    .flatMap((given: unknown) => {
      const parts: ReadonlyArray<unknown> = Array.isArray(given) ? given : []
      return parts.flatMap((part) => {
        const image = field(part, "image_url")
        const url = Predicate.isString(image) ? image : string(field(image, "url"))
        return /^(?:data:image\/|https?:\/\/)/i.test(url) ? [url] : []
      })
    })
    .slice(0, imagesAtMost)

/** The calls as they came; older servers send a single one, without an id, in a field of its own. */
const callsGiven = (message: Json): ReadonlyArray<Json> => {
  const list: ReadonlyArray<unknown> = Array.isArray(message.tool_calls) ? message.tool_calls : []
  const calls = list.filter(Predicate.isRecord)
  const single = message.function_call
  return calls.length === 0 && string(field(single, "name")) !== "" ? [{ function: single }] : calls
}

/** Each call twice: ours, and the endpoint's own with the same id and arguments, for the echo. */
const toCalls = (
  ask: Ask,
  given: ReadonlyArray<Json>
): ReadonlyArray<{ readonly call: ToolCall; readonly raw: Json }> => {
  if (given.length === 0) {
    return []
  }
  const used = new Set(
    ask.messages.flatMap((message) =>
      message.role === "answer" ? message.answer.toolCalls.map((earlier) => earlier.id) : []
    )
  )
  return given.map((raw, place) => {
    const about = Predicate.isRecord(raw.function) ? raw.function : raw.custom
    const call = {
      id: uniqueId(string(raw.id), `call_${ask.turn}_${place}`, used),
      name: string(field(about, "name")).toWellFormed(),
      arguments: toArguments(field(about, "arguments") ?? field(about, "input")).toWellFormed()
    }
    const shape = { name: call.name, arguments: call.arguments }
    // Unknown fields stay: some endpoints want their signatures back.
    const own = Predicate.isRecord(raw.function) ? { ...raw.function, ...shape } : shape
    return { call, raw: { ...raw, id: call.id, type: "function", function: own } }
  })
}

const uniqueId = (given: string, fallback: string, used: Set<string>): string => {
  let id = given === "" || used.has(given) ? fallback : given
  for (let more = 1; used.has(id); more++) {
    id = `${fallback}_${more}`
  }
  used.add(id)
  return id
}

const toArguments = (given: unknown): string => {
  if (Predicate.isString(given)) {
    return given === "" ? "{}" : given
  }
  if (given === undefined || given === null) {
    return "{}"
  }
  // What nests too deep to be written is no arguments of any tool.
  return Either.getOrElse(
    Either.try(() => JSON.stringify(given)),
    () => "{}"
  )
}

/** A known reason stays, but `stop` and `tool_calls` go by whether there are calls; what is unknown counts as `stop`. */
const toFinishReason = (given: unknown, hasCalls: boolean): FinishReason => {
  if (given === "length" || given === "max_tokens" || given === "model_length") {
    return "length"
  }
  if (given === "content_filter") {
    return "content_filter"
  }
  return hasCalls ? "tool_calls" : "stop"
}

/** The message to hand back: content as given, the endpoint's own reasoning fields where it gave them. */
const toEcho = (message: Json, calls: ReadonlyArray<Json>): Json => {
  const given = (name: string): Json => (isGiven(message[name]) ? { [name]: message[name] } : {})
  const content = message.content ?? null
  return {
    role: "assistant",
    content: Predicate.isString(content) ? content.toWellFormed() : (content ?? (calls.length > 0 ? null : "")),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...given("refusal"),
    ...given("reasoning"),
    ...given("reasoning_content"),
    ...given("reasoning_details")
  }
}

const field = (value: unknown, name: string): unknown => (Predicate.isRecord(value) ? value[name] : undefined)

const string = (value: unknown): string => (Predicate.isString(value) ? value : "")
