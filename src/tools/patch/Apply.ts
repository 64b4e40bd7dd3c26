/** Puts the hunks of a patch into a file's text, wherever their lines have moved to. */
import { Either } from "effect"
import type { Hunk } from "./Change.ts"
import * as Content from "./Content.ts"
import * as Nearest from "./Nearest.ts"
import * as Renewal from "./Renewal.ts"
import * as Search from "./Search.ts"

/** Lines of a file times hunks: beyond this the search could hold up the whole runner. */
const maxWork = 50_000_000

/** A run of the file's lines and what takes its place. */
interface Edit {
  readonly at: number
  readonly count: number
  readonly lines: ReadonlyArray<string>
}

/** A file's lines with their numbers under each tolerance, worked out when first needed. */
interface Page {
  readonly text: string
  readonly lines: ReadonlyArray<string>
  readonly numbered: Map<number, Search.Numbered>
}

/** The text with all hunks applied, or a sentence on the first one that does not fit. */
export const apply = (text: string, hunks: ReadonlyArray<Hunk>): Either.Either<string, string> =>
  Either.gen(function* () {
    const page: Page = { text, lines: Content.uniform(text), numbered: new Map() }
    const steps = hunks.reduce((sum, hunk) => sum + 1 + hunk.contexts.length, 0)
    if (steps * page.lines.length > maxWork) {
      return yield* Either.left("the patch has too many hunks for a file of this size; split it")
    }
    const edits: Array<Edit> = []
    let cursor = 0
    for (const [index, hunk] of hunks.entries()) {
      const edit = yield* Either.mapLeft(place(page, hunk, cursor), (why) => `hunk ${index + 1}: ${why}`)
      edits.push(edit)
      cursor = edit.at + edit.count
    }
    edits.sort((a, b) => a.at - b.at)
    const overlap = edits.findIndex((edit, at) => at > 0 && edit.at < end(edits[at - 1]))
    if (overlap !== -1) {
      return yield* Either.left(`two hunks change the same lines, near line ${(edits[overlap]?.at ?? 0) + 1}`)
    }
    return joined(text, page.lines, edits, hunks)
  })

const end = (edit: Edit | undefined): number => (edit === undefined ? 0 : edit.at + edit.count)

const place = (page: Page, hunk: Hunk, cursor: number): Either.Either<Edit, string> =>
  Either.gen(function* () {
    const from = yield* afterContexts(page, hunk.contexts, cursor)
    const old = hunk.lines.filter(({ mark }) => mark !== "+").map(({ text }) => text)
    const carriage = Content.lineEnd(page.text) === "\r\n" ? "\r" : ""
    if (old.length === 0) {
      const fresh = hunk.lines.map(({ text }) => text + carriage)
      return { at: insertionPoint(page, hunk, from), count: 0, lines: fresh }
    }
    for (const [level, tolerance] of Search.tolerances.entries()) {
      const places = Search.find(numbered(page, level), old, tolerance.key, false)
      const at = yield* choose(places, hunk, from, old.length, page.lines.length)
      if (at === null) continue
      const actual = page.lines.slice(at, at + old.length)
      const move = tolerance.indentation ? Search.reindent(old, actual) : (line: string) => line
      return { at, count: old.length, lines: renewed(hunk, actual, (line) => move(line) + carriage) }
    }
    const near = Nearest.show(page.text, old.join("\n"))
    return yield* Either.left(
      `its lines are not in the file, beginning with ${quoted(old.find((line) => line.trim() !== "") ?? "")}${
        near === "" ? "" : `. The nearest lines are:\n${near}`
      }`
    )
  })

/** The hunk's new lines: those of its context, and those that it both takes out and puts in, are the file's own. */
const renewed = (hunk: Hunk, actual: ReadonlyArray<string>, make: (line: string) => string): ReadonlyArray<string> => {
  const parts: Array<ReadonlyArray<string>> = []
  let next = 0
  let out: Array<string> = []
  let put: Array<string> = []
  const settle = () => {
    parts.push(Renewal.between(out, put)(actual.slice(next, next + out.length), make))
    next += out.length
    out = []
    put = []
  }
  for (const { mark, text } of hunk.lines) {
    if (mark === "-") out.push(text)
    else if (mark === "+") put.push(text)
    else {
      settle()
      parts.push(actual.slice(next, ++next))
    }
  }
  settle()
  return parts.flat()
}

const insertionPoint = (page: Page, hunk: Hunk, from: number): number => {
  if (hunk.atEnd) return page.lines.length
  if (hunk.contexts.length > 0) return Math.min(from + 1, page.lines.length)
  return hunk.line === null ? page.lines.length : Math.min(Math.max(hunk.line - 1, 0), page.lines.length)
}

/** Which of the places is meant: null for none of them, an error when that is open. */
const choose = (
  places: ReadonlyArray<number>,
  hunk: Hunk,
  from: number,
  length: number,
  total: number
): Either.Either<number | null, string> => {
  if (hunk.atEnd && places.at(-1) === total - length) return Either.right(total - length)
  const later = places.filter((at) => at >= from)
  const open = later.length === 0 && hunk.contexts.length === 0 ? places : later
  const [first] = open
  if (first === undefined) return Either.right(null)
  if (open.length === 1 || hunk.contexts.length > 0) return Either.right(first)
  if (hunk.line !== null) {
    const meant = hunk.line - 1
    return Either.right(open.reduce((best, at) => (Math.abs(at - meant) < Math.abs(best - meant) ? at : best), first))
  }
  return Either.left(
    `its lines occur ${open.length} times, on lines ${Content.enumerate(open.map((at) => at + 1))}: ` +
      "add more lines around the change, or a line @@ with the function or class it stands in"
  )
}

/** The line of the innermost context. */
const afterContexts = (page: Page, contexts: ReadonlyArray<string>, cursor: number): Either.Either<number, string> => {
  let from = cursor
  for (const [depth, context] of contexts.entries()) {
    const wanted = context.trim()
    const start = depth === 0 ? from : from + 1
    const isIt = [(line: string) => line.trim() === wanted, (line: string) => line.trim().startsWith(wanted)]
    const found = isIt
      .map((test) => page.lines.findIndex((line, at) => at >= start && test(line)))
      .find((at) => at !== -1)
    if (found === undefined) {
      const place = start === 0 ? "" : ` after line ${start}`
      return Either.left(`the line of its @@, ${quoted(wanted)}, is not in the file${place}`)
    }
    from = found
  }
  return Either.right(from)
}

const numbered = (page: Page, level: number): Search.Numbered => {
  const known = page.numbered.get(level)
  if (known !== undefined) return known
  const fresh = Search.number(page.lines, Search.tolerances[level]?.key ?? ((line) => line))
  page.numbered.set(level, fresh)
  return fresh
}

const joined = (
  text: string,
  lines: ReadonlyArray<string>,
  edits: ReadonlyArray<Edit>,
  hunks: ReadonlyArray<Hunk>
): string => {
  const parts: Array<ReadonlyArray<string>> = []
  let at = 0
  for (const edit of edits) {
    parts.push(lines.slice(at, edit.at), edit.lines)
    at = end(edit)
  }
  parts.push(lines.slice(at))
  const all = parts.flat()
  const asked = hunks.map((hunk) => hunk.finalNewline).findLast((one) => one !== null)
  const closed = asked ?? (text === "" || text.endsWith("\n"))
  if (all.length === 0) return ""
  return closed ? `${all.join("\n")}\n` : all.join("\n").replace(/\r$/, "")
}

const quoted = (line: string): string => JSON.stringify(line.trim().slice(0, 100).toWellFormed())
