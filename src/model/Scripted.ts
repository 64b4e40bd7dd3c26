/** An offline model: answers from a script keyed by prompt, for first steps, examples and tests. */
import * as Fs from "node:fs/promises"
import { Duration, Effect, Either, Layer, ParseResult, Predicate, Schema } from "effect"
import { type Answer, type Aside, type Ask, Model, ModelError } from "./Model.ts"
import * as Wire from "./openai/Wire.ts"
import * as ScriptedAside from "./scripted/Aside.ts"

const Call = Schema.Struct({
  name: Schema.String,
  /** An object, or the text that the model is to have written. */
  arguments: Schema.Union(Schema.String, Schema.Record({ key: Schema.String, value: Schema.Unknown }))
})

const Count = Schema.NonNegative

const ScriptedAnswer = Schema.Struct({
  content: Schema.optional(Schema.NullOr(Schema.String)),
  reasoning: Schema.optional(Schema.String),
  tool_calls: Schema.optional(Schema.Array(Call)),
  finish_reason: Schema.optional(Schema.Literal("stop", "tool_calls", "length", "content_filter")),
  /** Pictures, as data URLs. */
  images: Schema.optional(Schema.Array(Schema.String)),
  /** Milliseconds until the answer comes. */
  delay_ms: Schema.optional(Count),
  usage: Schema.optional(
    Schema.Struct({
      prompt: Schema.optional(Count),
      completion: Schema.optional(Count),
      reasoning: Schema.optional(Count),
      cached: Schema.optional(Count),
      cost_usd: Schema.optional(Count)
    })
  )
})
type ScriptedAnswer = typeof ScriptedAnswer.Type

/**
 * What the offline model says: for each prompt, word for word, its answers in order; `default` for every other prompt; and in `asides`
 * by the name of a tool, what the model says to the questions that it asks in a session, the last answer again and again.
 */
export const Script = Schema.Struct({
  prompts: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.Array(ScriptedAnswer) }), {
    default: () => ({})
  }),
  default: Schema.optionalWith(Schema.Array(ScriptedAnswer), { default: () => [] }),
  asides: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.NonEmptyArray(ScriptedAnswer) }))
})
export type Script = typeof Script.Type

/** The script file is missing or not a script; the message names the file and the field that does not fit. */
export class ScriptError extends Schema.TaggedError<ScriptError>()("ScriptError", {
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `--model=scripted: the script ${this.path} ${this.detail}`
  }
}

/** Answers from the script at `scriptFile`; without a file from a built-in one that uses a tool on offer, then answers. */
export const layer = (scriptFile: string | undefined): Layer.Layer<Model, ScriptError> =>
  scriptFile === undefined ? builtIn : Layer.unwrapEffect(Effect.map(read(scriptFile), fromScript))

/** Answers from a script that is at hand. */
export const fromScript = (script: Script): Layer.Layer<Model> => {
  const prompts = new Map(Object.entries(script.prompts))
  const asides = new Map(Object.entries(script.asides ?? {}))
  return Layer.succeed(Model, {
    complete: (ask) =>
      ask.aside === undefined
        ? answer(ask, prompts.get(ask.prompt) ?? script.default)
        : aside(ask, ask.aside, asides.get(ask.aside.tool))
  })
}

const builtIn = Layer.sync(Model, () => ({
  complete: (ask: Ask) => (ask.aside === undefined ? answer(ask, builtInAnswers(ask)) : aside(ask, ask.aside))
}))

const read = Effect.fn("Scripted.read")(function* (path: string) {
  const fails = (detail: string) => new ScriptError({ path, detail })
  const text = yield* Effect.tryPromise({
    try: () => Fs.readFile(path, "utf8"),
    catch: (error) =>
      fails(
        Predicate.isRecord(error) && error.code === "ENOENT"
          ? "does not exist"
          : `cannot be read: ${Predicate.isError(error) ? error.message : String(error)}`
      )
  })
  const json = yield* Effect.try({
    try: (): unknown => JSON.parse(text.replace(/^\uFEFF/, "")),
    catch: (error) => fails(`is not JSON: ${Predicate.isError(error) ? error.message : String(error)}`)
  })
  const script = Schema.decodeUnknownEither(Script, { onExcessProperty: "error" })(json)
  if (Either.isLeft(script)) {
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(script.left)
    const place = issue?.path.join(".") ?? ""
    return yield* fails(
      place === ""
        ? 'is no object of the form {"prompts": {"…": […]}, "default": […]}'
        : `does not fit at ${place}: ${issue?.message.replace(/\s+/g, " ")}`
    )
  }
  return script.right
})

const answer = (ask: Ask, answers: ReadonlyArray<ScriptedAnswer>): Effect.Effect<Answer, ModelError> => {
  const scripted = answers[ask.turn]
  if (scripted === undefined) {
    return Effect.fail(
      new ModelError({
        reason: "NoScript",
        detail:
          answers.length === 0
            ? `The script has no answers for the prompt ${JSON.stringify(shortened(ask.prompt))}, and no default`
            : `The script ends after answer ${answers.length} for the prompt ${JSON.stringify(shortened(ask.prompt))}, but call ${ask.turn + 1} was made`
      })
    )
  }
  return speak(ask, scripted)
}

/** What is said to the question of a tool. */
const aside = (
  ask: Ask,
  asked: Aside,
  answers: ReadonlyArray<ScriptedAnswer> = []
): Effect.Effect<Answer, ModelError> =>
  speak(ask, answers[Math.min(ask.turn, answers.length - 1)] ?? ScriptedAside.answer(ask.messages, asked))

const speak = (ask: Ask, scripted: ScriptedAnswer): Effect.Effect<Answer, ModelError> => {
  const spoken = Effect.suspend(() =>
    Either.mapLeft(
      Wire.decode(ask, toBody(ask, scripted)),
      () => new ModelError({ reason: "BadAnswer", detail: "The script's answer is no answer" })
    )
  )
  return scripted.delay_ms === undefined ? spoken : Effect.delay(spoken, Duration.millis(scripted.delay_ms))
}

const shortened = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

/** The chat completion that an endpoint would have sent, so that a script goes through the same door as any other model. */
const toBody = (ask: Ask, scripted: ScriptedAnswer): object => {
  const calls = (scripted.tool_calls ?? []).map((call) => ({
    id: "",
    type: "function",
    function: {
      name: call.name,
      arguments: Predicate.isString(call.arguments) ? call.arguments : JSON.stringify(call.arguments)
    }
  }))
  const { content, reasoning, images, usage } = scripted
  const made = {
    prompt: tokens(ask.messages.map((message) => (message.role === "answer" ? message.answer : message.content))),
    reasoning: tokens(reasoning ?? ""),
    completion: tokens([content ?? "", reasoning ?? "", calls])
  }
  return {
    choices: [
      {
        finish_reason: scripted.finish_reason ?? null,
        message: {
          role: "assistant",
          content: content ?? null,
          ...(reasoning === undefined ? {} : { reasoning }),
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
          ...(images === undefined ? {} : { images: images.map((url) => ({ image_url: { url } })) })
        }
      }
    ],
    usage: {
      prompt_tokens: usage?.prompt ?? made.prompt,
      completion_tokens: usage?.completion ?? made.completion,
      prompt_tokens_details: { cached_tokens: usage?.cached ?? 0 },
      completion_tokens_details: { reasoning_tokens: usage?.reasoning ?? made.reasoning },
      cost: usage?.cost_usd ?? 0
    }
  }
}

/** About four letters a token; nothing is none. */
const tokens = (what: unknown): number =>
  what === "" ? 0 : Math.ceil((Predicate.isString(what) ? what.length : JSON.stringify(what).length) / 4)

/** The built-in script: a call of the first of these tools that is on offer, then a final answer. */
const builtInCalls: ReadonlyArray<typeof Call.Type> = [
  { name: "terminal", arguments: { command: "uname -s && echo hello" } },
  { name: "search_files", arguments: { pattern: "*", target: "files" } },
  { name: "todo", arguments: {} }
]

const builtInAnswers = (ask: Ask): ReadonlyArray<ScriptedAnswer> => {
  const offered = new Set(ask.tools.map((tool) => tool.function.name))
  const call = builtInCalls.find((one) => offered.has(one.name))
  const last: ScriptedAnswer = {
    reasoning: "I have what I need, so I can answer now.",
    content: "Done. This is the offline model: it answers from a script and knows nothing of your prompt."
  }
  return call === undefined
    ? [last]
    : [{ reasoning: `Let me look around first with ${call.name}.`, content: "", tool_calls: [call] }, last]
}
