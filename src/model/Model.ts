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
  | { readonly role: "system" | "user"; readonly content: string }
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
}

/** Tokens and money of a call; zero where the endpoint reports nothing. */
export interface Usage {
  readonly prompt: number
  readonly completion: number
  readonly reasoning: number
  readonly cached: number
  readonly total: number
  /** US dollars. */
  readonly cost_usd: number
}

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
  readonly usage: Usage
  /** The assistant message to hand back on the next call, with the endpoint's own reasoning fields unchanged. */
  readonly echo: Readonly<Record<string, unknown>>
}

/** A call that brought no answer. `message` says why, with the HTTP status where there was one; it never holds a key. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", {
  reason: Schema.Literal(
    /** HTTP 429. */
    "RateLimited",
    /** HTTP 408, 409, 5xx, or an error inside HTTP 200. */
    "Overloaded",
    /** No connection, or one that broke. */
    "Unreachable",
    /** No answer within the limit of one call. */
    "TimedOut",
    /** A body that is no chat completion. */
    "BadAnswer",
    /** HTTP 401, 402, 403. */
    "Refused",
    /** Any other 4xx: this request cannot succeed. */
    "BadRequest",
    /** The offline script has no answer for this call. */
    "NoScript"
  ),
  detail: Schema.String,
  /** HTTP status; 0 where there was none. */
  status: Schema.optionalWith(Schema.Number, { default: () => 0 }),
  /** The shortest wait that the endpoint asks for. */
  retryAfter: Schema.optional(Schema.DurationFromSelf)
}) {
  override get message(): string {
    return this.detail
  }
  /** Whether the same call may succeed later. */
  get transient(): boolean {
    return (
      this.reason === "RateLimited" ||
      this.reason === "Overloaded" ||
      this.reason === "Unreachable" ||
      this.reason === "TimedOut" ||
      this.reason === "BadAnswer"
    )
  }
}

export interface ModelService {
  readonly complete: (ask: Ask) => Effect.Effect<Answer, ModelError>
}

/** The model of a run. */
export class Model extends Context.Tag("batch-runner/Model")<Model, ModelService>() {}

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
}
