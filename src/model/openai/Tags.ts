/** Cuts the blocks that stand in `<think>` or `<REASONING_SCRATCHPAD>` tags out of a text. Pure, and linear in the text's length. */
import * as Code from "./Code.ts"

const tag = /<(\/?)(?:think|reasoning_scratchpad)>/gi
const someTag = /<\/?(?:think|reasoning_scratchpad)>/i
const tags = ["<think>", "</think>", "<reasoning_scratchpad>", "</reasoning_scratchpad>"].map((text) =>
  Uint16Array.from(text, (letter) => letter.charCodeAt(0))
)

/** Whether a text holds a tag. */
export const some = (text: string): boolean => someTag.test(text)

/** Whether a text begins with an opening tag. */
export const opens = (text: string): boolean => /^\s*<(?:think|reasoning_scratchpad)>/i.test(text)

/** The text in front of the first closing tag; empty without one. */
export const beforeClosing = (text: string): string =>
  text.slice(0, Math.max(0, text.search(/<\/(?:think|reasoning_scratchpad)>/i)))

interface Tag {
  readonly start: number
  readonly end: number
  readonly closes: boolean
}

/** Stands for the bracket of a tag that stays while others go: a lone surrogate, which well-formed text does not have. */
const mark = "\ud800"
const unmarked = (text: string): string => text.replace(/\ud800/gu, "<")

/**
 * Cuts the tagged blocks out of a well-formed text. A tag in code is text. An opening tag that is never closed makes reasoning of
 * the rest, unless it stands in the middle of a text that came to its own end: then it is text. A closing tag that was never
 * opened makes reasoning of all text before it, as chat templates that open the block in the prompt need it.
 */
export const split = (
  text: string,
  ended: boolean
): { readonly content: string; readonly blocks: ReadonlyArray<string> } => {
  const found: ReadonlyArray<Tag> = Array.from(text.matchAll(tag), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
    closes: match[1] === "/"
  }))
  const runs = Code.runs(text)
  const inCode = reader(runs)
  const anywhere = reader(runs)
  const coded = found.map((one) => anywhere(one, 0))
  const lastClosing = found.findLastIndex((one, place) => one.closes && coded[place] === false)
  const partners = closingTags(found, (one) => text[one.start - 1] === "`" && text[one.end] === "`")
  const blocks: Array<string> = []
  let visible: Array<string> = []
  let piece = ""
  let from = 0
  // Where the last block ended: code is read afresh from there.
  let seam = 0
  let spoken = false
  for (let place = 0; place < found.length; place++) {
    const one = found[place]
    if (one === undefined) {
      break
    }
    const before = text.slice(from, one.start)
    spoken ||= before.trim() !== ""
    piece += before
    from = one.end
    // Without a partner the model speaks of tags inside its reasoning: the last closing tag of the text ends it.
    const partner = partners[place] ?? (lastClosing > place ? lastClosing : found.length)
    if (inCode(one, seam) || (!one.closes && partner === found.length && ended && spoken)) {
      piece += `${mark}${text.slice(one.start + 1, one.end)}`
      spoken = true
      continue
    }
    visible.push(piece)
    piece = ""
    if (one.closes) {
      blocks.push(unmarked(visible.join("")))
      // The empty piece stands for the block, so that what follows begins at a seam.
      visible = [""]
      spoken = false
    } else {
      const closing = found[partner]
      blocks.push(text.slice(one.end, closing?.start ?? text.length))
      from = closing?.end ?? text.length
      place = partner
    }
    seam = from
  }
  visible.push(piece + text.slice(from))
  return { content: unmarked(without(sew(visible))), blocks }
}

/** Tells of one tag after the other whether it stands in code that begins at `seam` or later. */
const reader = (runs: ReadonlyArray<Code.Run>) => {
  const none = (at: number): Code.Run => ({ start: at, end: at, until: at, certain: false })
  let code = none(0)
  let place = 0
  let opened = 0
  return (one: Tag, seam: number): boolean => {
    code = code.start < seam ? none(seam) : code
    for (let run = runs[place]; run !== undefined && run.start < one.start; run = runs[++place]) {
      if (run.start >= code.until) {
        code = run
        opened = 0
      }
    }
    if (one.start >= code.until) {
      return false
    }
    if (!one.closes) {
      opened++
      return true
    }
    // Backticks that reasoning left open must not hide its end.
    const spokenOf = code.certain || one.start === code.end || opened > 0
    opened = Math.max(0, opened - 1)
    return spokenOf
  }
}

/** For each opening tag the place of the closing tag that balances it; those that stand in backticks of their own do not count. */
const closingTags = (found: ReadonlyArray<Tag>, quoted: (one: Tag) => boolean): ReadonlyArray<number | undefined> => {
  const partners: Array<number | undefined> = found.map(() => undefined)
  const open: Array<number> = []
  found.forEach((one, place) => {
    if (quoted(one)) {
      return
    }
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
export const without = (text: string): string => {
  if (!some(text)) {
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
