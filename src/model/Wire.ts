/** The chat-completions JSON of the endpoints: our asks encoded, their answers decoded, at this one door. */
import { Either, Predicate, Schema } from "effect"
import type { Answer, Ask, FinishReason, Message, Request, ToolCall, Usage } from "./Model.ts"
import * as Reasoning from "./Reasoning.ts"

type Json = Readonly<Record<string, unknown>>

/** A body that is no answer: `Failed` is the endpoint's own error inside HTTP 200, `Malformed` no chat completion at all. */
export type Problem =
  | { readonly _tag: "Failed"; readonly code: number; readonly error: unknown }
  | { readonly _tag: "Malformed"; readonly detail: string }

/** Makes the request body of each ask of a run. */
export const encoder = (request: Request): ((ask: Ask) => Json) => {
  const rest = {
    ...(request.maxTokens === undefined ? {} : { max_tokens: request.maxTokens }),
    ...(request.provider === undefined ? {} : { provider: request.provider }),
    ...(request.reasoning === undefined ? {} : { reasoning: request.reasoning }),
    // Other endpoints may refuse a field they do not know.
    ...(isOpenRouter(request.baseUrl) ? { usage: { include: true } } : {})
  }
  return (ask) => ({
    model: request.model,
    messages: ask.messages.map(encodeMessage),
    ...(ask.tools.length === 0 ? {} : { tools: ask.tools }),
    ...rest
  })
}

/** Makes the text of each ask's body; the tools of a run are few sets and long, so each set is written once. */
export const textEncoder = (request: Request): ((ask: Ask) => string) => {
  const encode = encoder(request)
  const written = new WeakMap<Ask["tools"], string>()
  const toolsText = (tools: Ask["tools"]): string => {
    const text = written.get(tools) ?? JSON.stringify(tools)
    written.set(tools, text)
    return text
  }
  return (ask) => {
    const body = JSON.stringify(encode({ ...ask, tools: [] }))
    return ask.tools.length === 0 ? body : `${body.slice(0, -1)},"tools":${toolsText(ask.tools)}}`
  }
}

const isOpenRouter = (baseUrl: string): boolean => {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ""
  return host === "openrouter.ai" || host.endsWith(".openrouter.ai")
}

const encodeMessage = (message: Message): Json => {
  switch (message.role) {
    case "answer":
      return message.answer.echo
    case "tool":
      return { role: "tool", tool_call_id: message.callId, content: message.content.toWellFormed() }
    default:
      return { role: message.role, content: message.content.toWellFormed() }
  }
}

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

/** Decodes the text of a response body. */
export const decodeText = (ask: Ask, text: string): Either.Either<Answer, Problem> =>
  Either.flatMap(
    Either.try({
      try: (): unknown => JSON.parse(text),
      catch: () => malformed(text.trim() === "" ? "an empty body" : `a body that is no JSON: ${text.slice(0, 2000)}`)
    }),
    (body) => decode(ask, body)
  )

/** Decodes a response body. `ask` is what it answers: made-up call ids come from its turn and differ from all earlier ones. */
export const decode = (ask: Ask, body: unknown): Either.Either<Answer, Problem> => {
  const top = decodeBody(body)
  if (Either.isLeft(top)) {
    return Either.left(malformed("a body that is no chat completion"))
  }
  if (isGiven(top.right.error)) {
    return Either.left(failed(top.right.error))
  }
  const first = top.right.choices?.[0]
  if (first === undefined) {
    return Either.left(malformed("a body without choices"))
  }
  const choice = decodeChoice(first)
  // An error may stand in the place of the message.
  if (isGiven(first.error) || first.finish_reason === "error") {
    return Either.left(failed(first.error ?? "the answer broke off with finish_reason error"))
  }
  if (Either.isLeft(choice)) {
    return Either.left(malformed("a choice without a message"))
  }
  return Either.right(toAnswer(ask, choice.right.message, choice.right.finish_reason, top.right.usage))
}

const malformed = (detail: string): Problem => ({ _tag: "Malformed", detail })

const failed = (error: unknown): Problem => ({ _tag: "Failed", code: count(field(error, "code")), error })

const isGiven = (error: unknown): boolean => error !== undefined && error !== null && error !== "" && error !== false

const toAnswer = (ask: Ask, message: Json, finish: unknown, usage: unknown): Answer => {
  const calls = toCalls(ask, message.tool_calls)
  const parts = contentParts(message.content)
  const refusal = Predicate.isString(message.refusal) ? message.refusal : ""
  const { content, reasoning } = Reasoning.part({
    text: parts.text === "" ? refusal : parts.text,
    reasoning: message.reasoning,
    reasoning_content: message.reasoning_content,
    reasoning_details: message.reasoning_details,
    parts: parts.reasoning
  })
  return {
    content: content.toWellFormed(),
    reasoning,
    toolCalls: calls.map((call) => call.call),
    finishReason: toFinishReason(finish, calls.length > 0),
    usage: toUsage(usage),
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

/** Each call twice: ours, and the endpoint's own with the same id and arguments, for the echo. */
const toCalls = (ask: Ask, given: unknown): ReadonlyArray<{ readonly call: ToolCall; readonly raw: Json }> => {
  if (!Array.isArray(given) || given.length === 0) {
    return []
  }
  const list: ReadonlyArray<unknown> = given
  const used = new Set(
    ask.messages.flatMap((message) =>
      message.role === "answer" ? message.answer.toolCalls.map((earlier) => earlier.id) : []
    )
  )
  return list.filter(Predicate.isRecord).map((raw, place) => {
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

const toUsage = (usage: unknown): Usage => {
  const prompt = count(field(usage, "prompt_tokens"))
  const completion = count(field(usage, "completion_tokens"))
  return {
    prompt,
    completion,
    reasoning: count(field(field(usage, "completion_tokens_details"), "reasoning_tokens")),
    cached: count(field(field(usage, "prompt_tokens_details"), "cached_tokens")),
    total: count(field(usage, "total_tokens")) || prompt + completion,
    cost_usd: money(field(usage, "cost"))
  }
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

/** A whole number of tokens, whatever an endpoint makes of it: sums of millions of them stay exact. */
const count = (value: unknown): number => Math.min(1e9, Math.round(money(value)))

const money = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.min(1e9, value) : 0
