/** What one attempt at a prompt came to. */
import { Data, Schema } from "effect"
import { Usage } from "../model/Model.ts"
import { Row, Turn } from "./Trajectory.ts"

/** A row set aside, with the reason; its keys are those of a kept row and one more. */
export const DiscardedRow = Schema.Struct({ ...Row.fields, reason: Schema.String })
export type DiscardedRow = typeof DiscardedRow.Type

/** The one reason so far. */
export const noReasoning = "no_reasoning"

/** A failed attempt: the prompt is still to do. */
export const Failure = Schema.Struct({
  prompt_index: Schema.Int,
  sample: Schema.Int,
  /** Which of several equal prompts this is, and a digest of their content, by which it is found in another data set. */
  occurrence: Schema.Int,
  prompt_key: Schema.String,
  batch_num: Schema.Int,
  /** Which attempt at this session it was, from 1. */
  attempt: Schema.Int,
  /** What went wrong, in the word that `--retry_failed` selects by. */
  kind: Schema.String,
  /** The error's tag, and which of its closed reasons. */
  error: Schema.String,
  reason: Schema.String,
  message: Schema.String,
  /** Whether another attempt can succeed with nothing changed. */
  retryable: Schema.Boolean,
  timestamp: Schema.String,
  api_calls: Schema.Int,
  usage: Usage,
  /** The session as far as it got; empty where nothing was answered. */
  conversations: Schema.Array(Turn)
})
export type Failure = typeof Failure.Type

export type Outcome = Data.TaggedEnum<{
  Kept: { readonly row: Row }
  Discarded: { readonly row: DiscardedRow }
  Failed: { readonly failure: Failure }
}>

export const Outcome = Data.taggedEnum<Outcome>()

/** Whether the prompt is done with: resume does not pay for it again. */
export const isDone = (outcome: Outcome): boolean => outcome._tag !== "Failed"

/** Kinds of failures that another attempt at the same prompt meets again. */
const lasting = new Set(["context_too_long", "content_refused"])

/** Whether a prompt that failed so runs again on resume: where `chosen` names its kind or `all`, or when it may go better. */
export const runsAgain = (kind: string, chosen: ReadonlyArray<string> | null): boolean =>
  chosen === null ? !lasting.has(kind) : chosen.includes(kind) || chosen.includes("all")
