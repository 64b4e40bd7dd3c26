/** The row of a data set that one session becomes: the same keys in the same order and the same types, whatever happened. */
import { Schema } from "effect"
import { Usage } from "../model/Model.ts"

const Call = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function"),
  function: Schema.Struct({ name: Schema.String, arguments: Schema.String })
})

/** One turn of a conversation; what does not apply is empty. */
export const Turn = Schema.Struct({
  from: Schema.Literal("human", "gpt", "tool"),
  value: Schema.String,
  tool_calls: Schema.Array(Call),
  tool_call_id: Schema.String,
  name: Schema.String
})
export type Turn = typeof Turn.Type

export const ToolCount = Schema.Struct({ count: Schema.Number, success: Schema.Number, failure: Schema.Number })
export type ToolCount = typeof ToolCount.Type

export const Row = Schema.Struct({
  /** Place among the valid rows of the data set. */
  prompt_index: Schema.Int,
  conversations: Schema.Array(Turn),
  metadata: Schema.Struct({
    batch_num: Schema.Int,
    /** UTC, `2026-01-15T10:30:00`. */
    timestamp: Schema.String,
    model: Schema.String,
    image: Schema.String,
    cwd: Schema.String,
    /** Whether image and cwd are the run's defaults rather than the prompt's own: equal prompts are found without them. */
    default_image: Schema.Boolean,
    default_cwd: Schema.Boolean,
    sample: Schema.Int,
    /** Which of several equal prompts this is, from 0. */
    occurrence: Schema.Int,
    /** Tool results that were shortened after the model had read them, to make room. */
    shortened: Schema.Int,
    usage: Usage
  }),
  completed: Schema.Boolean,
  partial: Schema.Boolean,
  /** Answers received. */
  api_calls: Schema.Int,
  toolsets_used: Schema.Array(Schema.String),
  tool_stats: Schema.Record({ key: Schema.String, value: ToolCount }),
  tool_error_counts: Schema.Record({ key: Schema.String, value: Schema.Number }),
  /** JSON text of the definitions that the model was offered. */
  tools: Schema.String,
  system: Schema.String,
  /** JSON text of the data set row's other fields. */
  source: Schema.String
})
export type Row = typeof Row.Type

/** Seconds of a moment, UTC, as rows and records write it. */
export const timestamp = (millis: number): string => new Date(millis).toISOString().slice(0, 19)

// JSON.stringify writes a lone surrogate as an escape, which readers of other languages refuse.
const loneSurrogate = /\\u[dD][89a-fA-F]/
// Python's splitlines takes these three for line ends, and JSON.stringify leaves them as they are.
const lineSeparators = ["\u0085", "\u2028", "\u2029"]
const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`

/** One line of a JSONL file, without its line end: well-formed Unicode, and no character that any reader takes for a line end. */
export const encodeLine = (value: unknown): string => {
  const json = JSON.stringify(value)
  const line = loneSurrogate.test(json) ? JSON.stringify(wellFormed(value)) : json
  // One search for each costs a tenth of what a pattern of all three does.
  return lineSeparators.reduce(
    (text, char) => (text.includes(char) ? text.replaceAll(char, escapeOf(char)) : text),
    line
  )
}

/** `encodeLine` for the rows of one run: the tools on offer are few texts and long ones, so each is written once. */
export const rowEncoder = (): ((row: Row) => string) => {
  const written = new Map<string, string>()
  const once = (text: string): string => {
    const json = written.get(text) ?? encodeLine(text)
    written.set(text, json)
    return json
  }
  return (row) => {
    const members = Object.entries(row).map(([key, value]) =>
      key === "tools" ? `"${key}":${once(row.tools)}` : `"${key}":${encodeLine(value)}`
    )
    return `{${members.join(",")}}`
  }
}

const wellFormed = (value: unknown): unknown => {
  if (typeof value === "string") return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key.toWellFormed(), wellFormed(part)]))
}
