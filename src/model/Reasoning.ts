/** Finds a model's reasoning wherever an endpoint puts it, and parts it from the text. Pure, and linear in the text's length. */
import { Predicate } from "effect"

/** What one assistant message holds, as the endpoint gave it; fields of other shapes are taken for absent. */
export interface Source {
  readonly text: string
  readonly reasoning?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning_details?: unknown
  /** Reasoning that came as parts of the content. */
  readonly parts?: ReadonlyArray<string>
}

/** A message's text without its reasoning, and all reasoning once: neither holds one of our tags. */
export interface Parted {
  readonly content: string
  readonly reasoning: string
}

const tag = /<(\/?)(?:think|reasoning_scratchpad)>/gi
const someTag = /<\/?(?:think|reasoning_scratchpad)>/i
const tags = ["<think>", "</think>", "<reasoning_scratchpad>", "</reasoning_scratchpad>"].map((text) =>
  Uint16Array.from(text, (letter) => letter.charCodeAt(0))
)

/** Parts `source` into content and reasoning. */
export const part = (source: Source): Parted => {
  const native = nativeTexts(source)
  if (!someTag.test(source.text)) {
    return { content: source.text, reasoning: once(native, []) }
  }
  const { content, blocks } = split(source.text)
  return { content: withoutTags(content), reasoning: once(native, blocks) }
}

/** The texts of the endpoint's own fields, one list a field. */
const nativeTexts = (source: Source): ReadonlyArray<ReadonlyArray<string>> =>
  [[source.reasoning], [source.reasoning_content], detailTexts(source.reasoning_details), source.parts ?? []]
    .map((field) => field.filter(Predicate.isString).filter((text) => text.trim() !== ""))
    .filter((field) => field.length > 0)

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

const clean = (text: string): string => withoutTags(text).toWellFormed().trim()

/**
 * Cuts the tagged blocks out of a text. An opening tag that is never closed makes reasoning of the rest; a closing tag that
 * was never opened makes reasoning of all text before it, as chat templates that open the block in the prompt need it.
 */
const split = (text: string): { readonly content: string; readonly blocks: ReadonlyArray<string> } => {
  const found = Array.from(text.matchAll(tag), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
    closes: match[1] === "/"
  }))
  const lastClosing = found.findLastIndex((one) => one.closes)
  const partners = closingTags(found)
  const blocks: Array<string> = []
  let visible: Array<string> = []
  let from = 0
  for (let place = 0; place < found.length; place++) {
    const one = found[place]
    if (one === undefined) {
      break
    }
    visible.push(text.slice(from, one.start))
    if (one.closes) {
      blocks.push(visible.join(""))
      // The empty piece stands for the block, so that what follows begins at a seam.
      visible = [""]
      from = one.end
      continue
    }
    // Without a partner the model speaks of tags inside its reasoning: the last closing tag of the text ends it.
    const partner = partners[place] ?? (lastClosing > place ? lastClosing : found.length)
    const closing = found[partner]
    blocks.push(text.slice(one.end, closing?.start ?? text.length))
    from = closing?.end ?? text.length
    place = partner
  }
  visible.push(text.slice(from))
  return { content: sew(visible), blocks }
}

/** For each opening tag the place of the closing tag that balances it. */
const closingTags = (found: ReadonlyArray<{ readonly closes: boolean }>): ReadonlyArray<number | undefined> => {
  const partners: Array<number | undefined> = found.map(() => undefined)
  const open: Array<number> = []
  found.forEach((one, place) => {
    if (!one.closes) {
      open.push(place)
      return
    }
    const opening = open.pop()
    if (opening !== undefined) {
      partners[opening] = place
    }
  })
  return partners
}

/** Joins the pieces around blocks: of the white space on both sides of a seam the longer run stays, at the text's own ends none. */
const sew = (pieces: ReadonlyArray<string>): string => {
  const last = pieces.length - 1
  const out: Array<string> = []
  let gap = ""
  pieces.forEach((piece, place) => {
    const left = place === 0 ? piece : piece.trimStart()
    const body = place === last ? left : left.trimEnd()
    const leading = piece.slice(0, piece.length - left.length)
    const seam = leading.length > gap.length ? leading : gap
    if (body === "") {
      gap = piece.length > seam.length ? piece : seam
      return
    }
    if (out.length > 0) {
      out.push(seam)
    }
    out.push(body)
    gap = left.slice(body.length)
  })
  return out.join("")
}

/**
 * Takes every tag out of a text, also one that forms when another goes (`<thi<think>nk>`).
 * A buffer with a write mark keeps this linear: each letter is written and taken back once at most.
 */
export const withoutTags = (text: string): string => {
  if (!someTag.test(text)) {
    return text
  }
  const out = new Uint16Array(text.length)
  let length = 0
  for (let place = 0; place < text.length; place++) {
    const code = text.charCodeAt(place)
    out[length++] = code
    if (code === 62) {
      length -= tags.find((one) => endsWith(out, length, one))?.length ?? 0
    }
  }
  return Buffer.from(out.buffer, 0, length * 2).toString("utf16le")
}

const endsWith = (buffer: Uint16Array, length: number, end: Uint16Array): boolean => {
  const from = length - end.length
  return from >= 0 && end.every((code, place) => lower(buffer[from + place] ?? 0) === code)
}

const lower = (code: number): number => (code >= 65 && code <= 90 ? code + 32 : code)
