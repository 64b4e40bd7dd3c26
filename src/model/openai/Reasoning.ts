/** Finds a model's reasoning wherever an endpoint puts it, and parts it from the text. Pure, and linear in the text's length. */
import { Predicate } from "effect"
import * as Tags from "./Tags.ts"

/** What one assistant message holds, as the endpoint gave it; fields of other shapes are taken for absent. */
export interface Source {
  readonly text: string
  /** Whether the text came to its own end: then a tag in the middle that nothing closes is no reasoning that was cut. */
  readonly ended?: boolean
  readonly reasoning?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning_details?: unknown
  /** Reasoning that came as parts of the content. */
  readonly parts?: ReadonlyArray<string>
}

/** A message's text without its reasoning, and all reasoning once, without our tags. The text keeps those that it only speaks of. */
export interface Parted {
  readonly content: string
  readonly reasoning: string
}

/** Parts `source` into content and reasoning. */
export const part = (source: Source): Parted => {
  const native = nativeTexts(source)
  // Where reasoning has a field of its own, the endpoint has parted it from the text: only a copy in front of that is not text.
  const copied = (): boolean => Tags.opens(source.text) || isOneOf(Tags.beforeClosing(source.text), native)
  if (!Tags.some(source.text) || (native.length > 0 && !copied())) {
    return { content: source.text, reasoning: once(native, []) }
  }
  const { content, blocks } = Tags.split(source.text.toWellFormed(), source.ended === true)
  return { content, reasoning: once(native, blocks) }
}

const isOneOf = (text: string, native: ReadonlyArray<ReadonlyArray<string>>): boolean =>
  native.some((field) => field.join("\n\n").trim() === text.trim())

/** The texts of the endpoint's own fields, one list a field. */
const nativeTexts = (source: Source): ReadonlyArray<ReadonlyArray<string>> =>
  [
    [textOf(source.reasoning)],
    [textOf(source.reasoning_content)],
    detailTexts(source.reasoning_details),
    source.parts ?? []
  ]
    .map((field) => field.filter(Predicate.isString).filter((text) => text.trim() !== ""))
    .filter((field) => field.length > 0)

/** Some endpoints wrap the text into an object. */
const textOf = (field: unknown): unknown =>
  Predicate.isRecord(field)
    ? [field.text, field.content].find((text) => Predicate.isString(text) && text.trim() !== "")
    : field

/** `reasoning.text` entries hold a text, `reasoning.summary` ones a summary, encrypted ones neither. */
const detailTexts = (details: unknown): ReadonlyArray<unknown> =>
  Array.isArray(details)
    ? details.map((entry: unknown) => {
        if (!Predicate.isRecord(entry)) {
          return undefined
        }
        return entry.type === "reasoning.summary" ? entry.summary : entry.text
      })
    : []

/** Joins what is new: a text that an earlier field already holds, at the place where it would stand, is left out. */
const once = (native: ReadonlyArray<ReadonlyArray<string>>, blocks: ReadonlyArray<string>): string => {
  const fields = [...native, blocks].map((field) => field.map(clean).filter((text) => text !== ""))
  const seen: Array<{ readonly text: string; at: number }> = []
  const known = (text: string): boolean => {
    for (const earlier of seen) {
      if (earlier.text.startsWith(text, earlier.at)) {
        earlier.at += text.length
        return true
      }
    }
    return false
  }
  // Comparing costs a copy without white space, so a single field, the usual case, is not compared.
  const compare = fields.filter((field) => field.length > 0).length > 1
  const kept = fields.flatMap((field) => {
    if (!compare) {
      return field
    }
    const squeezed = field.map((text) => text.replace(/\s+/g, ""))
    const fresh = field.filter((_, place) => !known(squeezed[place] ?? ""))
    seen.push({ text: squeezed.join(""), at: 0 })
    return fresh
  })
  return kept.join("\n\n")
}

const clean = (text: string): string => Tags.without(text).toWellFormed().trim()
