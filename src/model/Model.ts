/** The language model behind an agent: a conversation in, one answer out. */
import { Context, type Duration, type Effect, Schema } from "effect"
import type { ToolDefinition } from "../tools/Tool.ts"

/** A call of a tool as the model wrote it; `arguments` is JSON text, or what the model took for it. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** One message of a conversation on its way to the model. */
export type Message =
  | { readonly role: "system"; readonly content: string }
  /** `images` are data URLs, shown with the text. */
  | { readonly role: "user"; readonly content: string; readonly images?: ReadonlyArray<string> }
  /** A message of the user's own prefill file. */
  | { readonly role: "assistant"; readonly content: string }
  /** An earlier answer, handed back the way the endpoint gave it. */
  | { readonly role: "answer"; readonly answer: Answer }
  | { readonly role: "tool"; readonly callId: string; readonly name: string; readonly content: string }

/** What one call asks of the model. */
export interface Ask {
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolDefinition>
  /** The prompt of this session, word for word, and the place of this call in it: what an offline model answers by. */
  readonly prompt: string
  readonly turn: number
  /** Which of the prompt's samples this session is, from 0. */
  readonly sample: number
  /** Place of the prompt in the data set. */
  readonly place: number
  /** Which of several equal prompts it is, from 0. */
  readonly occurrence: number
  /** Present when a tool asks, beside the session's own conversation. */
  readonly aside?: Aside
}

/** How a question that a tool asks differs from those of the session. */
export interface Aside {
  /** Name of the tool that asks. */
  readonly tool: string
  /** Model id as the endpoint knows it; the run's own when absent. */
  readonly model?: string | undefined
  /** Whether the answer is to hold a picture. */
  readonly picture?: boolean
  /** Sampling temperature; the model's own when absent. */
  readonly temperature?: number | undefined
}

/** Tokens and money of a call; zero where the endpoint reports nothing. */
export const Usage = Schema.Struct({
  prompt: Schema.Number,
  completion: Schema.Number,
  reasoning: Schema.Number,
  /** Of the prompt, what the endpoint had kept from an earlier call. */
  cached: Schema.Number,
  total: Schema.Number,
  /** US dollars. */
  cost_usd: Schema.Number
})
export type Usage = typeof Usage.Type

export const noUsage: Usage = { prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0, cost_usd: 0 }

export const addUsage = (a: Usage, b: Usage): Usage => ({
  prompt: a.prompt + b.prompt,
  completion: a.completion + b.completion,
  reasoning: a.reasoning + b.reasoning,
  cached: a.cached + b.cached,
  total: a.total + b.total,
  cost_usd: a.cost_usd + b.cost_usd
})

/** What is left of one limit of an endpoint, as the headers of an answer tell it. */
export const RateLimit = Schema.Struct({
  of: Schema.Literal("requests", "tokens"),
  remaining: Schema.Number,
  /** Milliseconds since the epoch when the limit is whole again. */
  resetAt: Schema.Number
})
export type RateLimit = typeof RateLimit.Type

/** Why an answer ended: of itself, to call tools, at its length limit, or by a filter. */
export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter"

/** One answer of the model. */
export interface Answer {
  /** The text without its reasoning. */
  readonly content: string
  /** All reasoning that came with it, once, without tags; empty for none. */
  readonly reasoning: string
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly finishReason: FinishReason
  /** Pictures that came with it: data URLs or addresses. */
  readonly images?: ReadonlyArray<string>
  readonly usage: Usage
  /** False when nothing tells what it cost. */
  readonly priced?: boolean
  /** What the endpoint says is left of its limits. */
  readonly limits?: ReadonlyArray<RateLimit>
  /** The assistant message to hand back on the next call, with the endpoint's own reasoning fields unchanged. */
  readonly echo: Readonly<Record<string, unknown>>
}

/** Reasons for which the same call may succeed later. */
const passing = [
  /** HTTP 429. */
  "RateLimited",
  /** HTTP 408, 409, 5xx, or an error inside HTTP 200. */
  "Overloaded",
  /** No connection could be made. */
  "NotConnected",
  /** A connection that broke. */
  "Unreachable",
  /** No answer within the limit of one call. */
  "TimedOut",
  /** A body that is no chat completion. */
  "BadAnswer"
] as const

/** Reasons for which this conversation cannot go on, while others may. */
const lasting = [
  /** The conversation is longer than the model takes. */
  "ContextTooLong",
  /** A filter of the endpoint refuses the conversation. */
  "ContentRefused",
  /** HTTP 403, where others are answered. */
  "Forbidden",
  /** Any other 4xx: this request cannot succeed. */
  "BadRequest",
  /** The offline script has no answer for this call. */
  "NoScript",
  /** The next call could pass the budget of the run; nothing was asked. */
  "BudgetReached"
] as const

/** Reasons for which no call of the run can succeed. */
const stopping = [
  /** HTTP 401. */
  "Unauthorized",
  /** HTTP 403 for every prompt. */
  "AllForbidden",
  /** HTTP 402. */
  "NoCredit",
  /** HTTP 404, an endpoint that has moved (3xx), or one that does not know the model. */
  "ModelMissing",
  /** The endpoint has not been reached even once. */
  "NeverReached",
  /** The endpoint has been down for longer than the run waits. */
  "DownTooLong",
  /** A budget in money, and nothing tells what calls cost. */
  "CostUnknown"
] as const

const reasons = [...passing, ...lasting, ...stopping] as const

/** The reasons for which a prompt fails: what stops the run fails none, and its budget neither. */
export const failing: ReadonlyArray<string> = [...passing, ...lasting].filter((reason) => reason !== "BudgetReached")

/** A reason in the word that people select failures by: `rate_limited`. */
export const kindOf = (reason: string): string => reason.replace(/(?<!^)[A-Z]/g, "_$&").toLowerCase()

const isPassing: (reason: string) => boolean = Schema.is(Schema.Literal(...passing))
const isStopping: (reason: string) => boolean = Schema.is(Schema.Literal(...stopping))

/** A call that brought no answer. `message` says why, with the HTTP status where there was one; it never holds a key. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", {
  reason: Schema.Literal(...reasons),
  detail: Schema.String,
  /** HTTP status; 0 where there was none. */
  status: Schema.optionalWith(Schema.Number, { default: () => 0 }),
  /** The shortest wait that the endpoint asks for. */
  retryAfter: Schema.optional(Schema.DurationFromSelf),
  /** What was spent all the same, by earlier tries of the call too. */
  usage: Schema.optionalWith(Usage, { default: () => noUsage }),
  /** What the endpoint says is left of its limits. */
  limits: Schema.optionalWith(Schema.Array(RateLimit), { default: () => [] })
}) {
  override get message(): string {
    return this.detail
  }
  /** Whether the same call may succeed later. */
  get transient(): boolean {
    return isPassing(this.reason)
  }
  /** Whether no other call of the run can succeed either. */
  get fatal(): boolean {
    return isStopping(this.reason)
  }
  /** The same error with other words, another reason or more that was spent. */
  amended(changes: Partial<Pick<ModelError, "reason" | "detail" | "usage">>): ModelError {
    const { reason, detail, status, retryAfter, usage, limits } = this
    return new ModelError({
      ...{ reason, detail, status, usage, limits },
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...changes
    })
  }
}

export interface ModelService {
  readonly complete: (ask: Ask) => Effect.Effect<Answer, ModelError>
}

/** The model of a run. */
export class Model extends Context.Tag("batch-runner/Model")<Model, ModelService>() {}

/** US dollars per million tokens; kept prompt tokens cost as others where `cached` is absent. */
export interface Price {
  readonly prompt: number
  readonly completion: number
  readonly cached?: number | undefined
}

/** What every call of a run carries beside its conversation. */
export interface Request {
  /** Model id as the endpoint knows it. */
  readonly model: string
  /** Address of the chat-completions API, up to and without `/chat/completions`. */
  readonly baseUrl: string
  readonly maxTokens: number | undefined
  readonly provider: Readonly<Record<string, unknown>> | undefined
  /** `{ effort: … }`, or undefined to send none. */
  readonly reasoning: { readonly effort: string } | undefined
  /** The longest wait for one answer. */
  readonly callLimit: Duration.Duration
  /** Texts of the user's that no message shows, even where the endpoint repeats them. */
  readonly hidden?: ReadonlyArray<string>
  /** Whether models that want it are told what of a request to keep for the next. */
  readonly promptCache: boolean
  /** What calls cost where the endpoint does not say, US dollars per million tokens, by model id; `*` stands for every other model. */
  readonly prices: Readonly<Record<string, Price>>
}
