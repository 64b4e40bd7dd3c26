/** Finds the code spans and code fences of a Markdown text. Pure, and linear in the text's length. */

/** A run of backticks, read as the start of code. */
export interface Run {
  readonly start: number
  readonly end: number
  /** Where its code ends, closing backticks included; `end` itself when it opens none. */
  readonly until: number
  /** Whether no other reading is likely: a span on one line, or a fence without another of its length in it. */
  readonly certain: boolean
}

interface Backticks {
  readonly start: number
  readonly end: number
  readonly line: number
  readonly paragraph: number
  readonly lineEnd: number
}

/** All runs of backticks of a text in their order. Which of them lie in the code of an earlier one depends on where reading begins. */
export const runs = (text: string): ReadonlyArray<Run> => {
  if (!text.includes("`")) {
    return []
  }
  const all = backticks(text)
  const out: Array<Run> = []
  const spans = new Map<number, Backticks>()
  const fences = new Map<number, Backticks>()
  const closingFences = new Map<number, Backticks>()
  let next: Backticks | undefined
  for (const one of all.toReversed()) {
    const { start, end, line } = one
    const size = end - start
    const fence = size >= 3 && startsLine(text, start)
    const closing = fence && next?.line !== line ? closingFences.get(size) : undefined
    const span = spans.get(size)
    if (closing !== undefined) {
      out.push({ start, end, until: closing.end, certain: closing === fences.get(size) })
    } else if (span !== undefined && span.paragraph === one.paragraph) {
      out.push({ start, end, until: span.end, certain: span.line === line })
    } else if (fence && next?.line !== line) {
      out.push({ start, end, until: text.length, certain: false })
    } else {
      // Whoever writes a tag right behind it means code, but forgot the end of it.
      out.push({ start, end, until: text[end] === "<" ? one.lineEnd : end, certain: false })
    }
    next = one
    spans.set(size, one)
    if (fence) {
      fences.set(size, one)
      if (endsLine(text, end)) {
        closingFences.set(size, one)
      }
    }
  }
  return out.toReversed()
}

/** Backticks with the lines and paragraphs that they stand in: a span ends with its paragraph. */
const backticks = (text: string): ReadonlyArray<Backticks> => {
  const out: Array<Backticks> = []
  let line = 0
  let paragraph = 0
  let lineEnd = -1
  for (const { 0: found, index } of text.matchAll(/`+|\n(?:[ \t\r]*(?=\n))?/g)) {
    if (found.startsWith("\n")) {
      line++
      paragraph += text[index + found.length] === "\n" ? 1 : 0
      continue
    }
    if (lineEnd < index) {
      const at = text.indexOf("\n", index)
      lineEnd = at < 0 ? text.length : at
    }
    out.push({ start: index, end: index + found.length, line, paragraph, lineEnd })
  }
  return out
}

const isBlank = (letter: string | undefined): boolean => letter === " " || letter === "\t" || letter === "\r"

/** A quote's mark or a tag may stand in front of a fence. */
const startsLine = (text: string, start: number): boolean => {
  let at = start - 1
  while (isBlank(text[at])) at--
  return at < 0 || text[at] === "\n" || text[at] === ">"
}

/** A tag may stand behind a fence. */
const endsLine = (text: string, end: number): boolean => {
  let at = end
  while (isBlank(text[at])) at++
  return at >= text.length || text[at] === "\n" || text[at] === "<"
}
