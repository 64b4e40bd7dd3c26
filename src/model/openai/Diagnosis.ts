/** What an endpoint's error means for its call, its prompt and the run. Pure. */
import { Predicate } from "effect"
import type { ModelError } from "../Model.ts"
import * as Failure from "./Failure.ts"

type Reason = ModelError["reason"]
type Json = Readonly<Record<string, unknown>>

/** An HTTP error, or one inside HTTP 200 with `status` as its own code, 0 for none; `model` is the one that was asked for. */
export interface Told {
  readonly status: number
  readonly body: unknown
  readonly model: string
}

/**
 * The kind of failure. What stops a whole run must be certain: a status of 401, 402 or 404, a code of its own, or a sentence about
 * the very model. Words alone never do it, for an error may repeat what the prompt says.
 */
export const reasonOf = ({ status, body, model }: Told): Reason => {
  const error = errorOf(body)
  const codes = codesOf(error)
  if (status < 500 && codes.includes("insufficient_quota")) return "NoCredit"
  if (status < 500 && codes.includes("model_not_found")) return "ModelMissing"
  switch (status) {
    case 0:
      return byCode(codes)
    case 401:
      return "Unauthorized"
    case 402:
      return "NoCredit"
    case 403:
      return refusesContent(error, codes, body) ? "ContentRefused" : "Forbidden"
    case 404:
      return "ModelMissing"
    case 408:
    case 409:
      return "Overloaded"
    case 429:
      return "RateLimited"
    case 400:
      if (lacksModel(string(error.message), model)) return "ModelMissing"
      return lasting(codes, body)
    case 413:
    case 422:
      return lasting(codes, body)
    default:
      // An address that has moved knows no model.
      if (status >= 300 && status < 400) return "ModelMissing"
      return status >= 500 ? "Overloaded" : "BadRequest"
  }
}

const byCode = (codes: ReadonlyArray<string>): Reason => {
  if (codes.some((code) => tooLong.has(code))) return "ContextTooLong"
  if (codes.some((code) => refused.test(code))) return "ContentRefused"
  return codes.includes("rate_limit_exceeded") ? "RateLimited" : "Overloaded"
}

const lasting = (codes: ReadonlyArray<string>, body: unknown): Reason => {
  if (codes.some((code) => refused.test(code))) return "ContentRefused"
  if (codes.some((code) => tooLong.has(code))) return "ContextTooLong"
  const words = Failure.words(body)
  if (tooLongWords.some((pattern) => pattern.test(words))) return "ContextTooLong"
  return refusedWords.test(words) ? "ContentRefused" : "BadRequest"
}

/** The error itself: under `error`, or the body as a whole; Google's servers put a list around it. */
const errorOf = (body: unknown): Json => {
  const one: unknown = Array.isArray(body) ? body[0] : body
  if (!Predicate.isRecord(one)) return {}
  return Predicate.isRecord(one.error) ? one.error : one
}

/** Codes as words, in the fields where servers put them. */
const codesOf = (error: Json): ReadonlyArray<string> =>
  [error.code, error.type].flatMap((code) => (Predicate.isString(code) ? [code.slice(0, 100).toLowerCase()] : []))

const tooLong: ReadonlySet<string> = new Set([
  "context_length_exceeded",
  "exceed_context_size_error",
  "model_max_prompt_tokens_exceeded",
  "string_above_max_length"
])

/** Each with servers that say it so. */
const tooLongWords: ReadonlyArray<RegExp> = [
  // OpenAI, DeepSeek, vLLM, OpenRouter, Mistral, xAI.
  /context[_ ]length[_ ]exceeded|maximum (?:context|prompt|input) length|exceeds? (?:the|this) (?:model's )?context (?:window|length)/i,
  // Anthropic, Bedrock, Fireworks; Anthropic with max_tokens.
  /(?:prompt|input) is too long|exceed context limit/i,
  // llama.cpp, Ollama, LM Studio, SGLang, MiniMax.
  /exceeds the (?:available )?context (?:size|length)|(?:greater|longer) than the (?:model's )?context length|context window exceeds limit/i,
  // Gemini, Copilot, Kimi.
  /exceeds the maximum number of (?:input )?tokens|prompt token count of \d+ exceeds|exceeded model token limit/i,
  // Groq, Cerebras; Together, TGI; Cohere; Qwen.
  /reduce the length of the (?:messages|prompt|input)|`?inputs`? (?:tokens \+ `?max_new_tokens`? )?must (?:be <=|have less than) \d+/i,
  /number of tokens in the prompt cannot exceed|range of input length should be/i
]

const refused =
  /^(?:content_policy_violation|content_filter(?:ed)?|moderation_blocked|data_?inspection_?failed|[a-z_]*flagged[a-z_]*)$/

/** Azure, OpenAI, Anthropic, DeepSeek, Moonshot, Qwen, when no code says it. */
const refusedWords =
  /content management policy|flagged as potentially violating|blocked by content filtering policy|content exists risk|considered high risk|inappropriate content/i

const forbiddenWords = /\bmoderation\b|\bflagged\b|\bsafety\b|content[_ ](?:policy|filter)|usage (?:guidelines|polic)/i
const ofAccount = /\b(?:account|organization|api key)\b/i

/** OpenRouter names the reasons of a moderation; others only speak of it, and some of an account rather than a text. */
const refusesContent = ({ metadata }: Json, codes: ReadonlyArray<string>, body: unknown): boolean => {
  if (Predicate.isRecord(metadata) && (Array.isArray(metadata.reasons) || metadata.flagged_input !== undefined)) {
    return true
  }
  if (codes.some((code) => refused.test(code))) return true
  const words = Failure.words(body)
  return forbiddenWords.test(words) && !ofAccount.test(words)
}

/** OpenRouter, vLLM, Mistral, LiteLLM, xAI; DeepSeek, which names no model. */
const modelWords =
  /^(?:MODEL is not a valid model ID|(?:The )?model:? MODEL (?:does not exist|not found|is not found)|Model not found:? MODEL|(?:\/chat\/completions: )?Invalid model(?: name passed in model=|: ?)MODEL)\b|^Model not (?:found|exist)\.?$/i

const lacksModel = (message: string, model: string): boolean => {
  if (message.length > 500 || model === "") return false
  return modelWords.test(message.replaceAll(model, "MODEL").replaceAll(/["'`]/g, "").trim())
}

const string = (value: unknown): string => (Predicate.isString(value) ? value : "")
