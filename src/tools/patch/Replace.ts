/** One text put in another's place: an exact match first, then one that forgives white space. */
import { Either } from "effect"
import * as Content from "./Content.ts"
import * as Nearest from "./Nearest.ts"
import * as Renewal from "./Renewal.ts"
import * as Search from "./Search.ts"

export interface Replacement {
  readonly old: string
  readonly new: string
  /** Replace every occurrence; else there must be exactly one. */
  readonly all: boolean
}

/** A part of a text to be replaced. */
interface Splice {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Where the old text stands. Only the parts that get replaced are worked out: places that overlap may be very many. */
interface Found {
  readonly places: ReadonlyArray<number>
  readonly splice: (index: number) => Splice
}

const nowhere: Found = { places: [], splice: () => ({ from: 0, to: 0, text: "" }) }

/** The text after the replacement, or a sentence that tells the model why there is none. Linear in the text's length. */
export const replace = (text: string, wanted: Replacement): Either.Either<string, string> => {
  if (wanted.old === "") return Either.left("old_string: is empty; to write a whole file use write_file")
  if (wanted.old === wanted.new)
    return Either.left("old_string and new_string are the same: there is nothing to change")
  for (const way of [exact, wholeLines, withinLines]) {
    const { places, splice } = way(text, wanted)
    if (places.length === 0) continue
    if (places.length > 1 && !wanted.all) {
      return Either.left(
        `old_string occurs ${places.length} times, on lines ${Content.enumerate(Content.lineNumbers(text, places))}: ` +
          "add surrounding lines to make it unique, or set replace_all"
      )
    }
    const changed = spliced(
      text,
      places.map((_, index) => splice(index))
    )
    return changed === text
      ? Either.left("this changes nothing: the file holds the new text already")
      : Either.right(changed)
  }
  return Either.left(absent(text, wanted))
}

const exact = (text: string, wanted: Replacement): Found => {
  const end = Content.lineEnd(text)
  const fresh = Content.withLineEnd(wanted.new, end)
  const hay = Search.units(text)
  for (const old of new Set([wanted.old, Content.withLineEnd(wanted.old, end)])) {
    const places = Search.occurrences(hay, Search.units(old), wanted.all)
    if (places.length === 0) continue
    return {
      places,
      splice: (index) => {
        const from = places[index] ?? 0
        return { from, to: from + old.length, text: fresh }
      }
    }
  }
  return nowhere
}

const wholeLines = (text: string, wanted: Replacement): Found => {
  const old = withoutCarriage(wanted.old)
  if (old.trim() === "") return nowhere
  const oldLines = Content.lines(old)
  const all = Content.uniform(text)
  const starts = Content.starts(text, all)
  const carriage = Content.lineEnd(text) === "\r\n" ? "\r" : ""
  const closed = old.endsWith("\n")
  for (const { indentation, key } of Search.tolerances) {
    const places = Search.find(Search.number(all, key), oldLines, key, wanted.all)
    if (places.length === 0) continue
    const fresh = withoutCarriage(wanted.new)
    const renewal = Renewal.between(oldLines, closed ? Content.lines(fresh) : fresh.split("\n"))
    return {
      places: places.map((place) => starts[place] ?? 0),
      splice: (index) => {
        const place = places[index] ?? 0
        const next = place + oldLines.length
        const last = next - 1
        const lastEnd = (starts[last] ?? 0) + (all[last]?.replace(/\r$/, "").length ?? 0)
        const to = closed ? (starts[next] ?? text.length) : lastEnd
        const actual = all.slice(place, next)
        const move = indentation ? Search.reindent(oldLines, actual) : (line: string) => line
        const lines = renewal(actual, (line) => move(line) + carriage)
        // Lines take the place of lines: with a newline at the end exactly where the old ones had it.
        const full = closed && text[to - 1] === "\n"
        return { from: starts[place] ?? 0, to, text: full ? lines.map((line) => `${line}\n`).join("") : open(lines) }
      }
    }
  }
  return nowhere
}

const withoutCarriage = (text: string): string => text.replaceAll("\r\n", "\n")

/** Lines of which the last is not ended. */
const open = (lines: ReadonlyArray<string>): string => lines.join("\n").replace(/\r$/, "")

const withinLines = (text: string, wanted: Replacement): Found => {
  const needle = collapse(wanted.old)
  if (needle.units.every((unit) => unit === newline)) return nowhere
  const hay = collapse(text)
  const carriage = Content.lineEnd(text) === "\r\n" ? "\r" : ""
  // White space at the ends of the old text was dropped: it stood for an indentation and a line's end.
  const fromStart = /^[ \t]/.test(wanted.old)
  const toEnd = /[ \t]$/.test(wanted.old)
  const lines = (side: string) => withoutCarriage(fromStart ? side.replace(/^[ \t]+/, "") : side).split("\n")
  const spans = Search.occurrences(hay.units, needle.units, wanted.all)
    .map((at) => ({ at, past: at + needle.units.length }))
    .filter(({ at, past }) => {
      const starts = at === 0 || hay.units[at - 1] === newline
      const ends = past === hay.units.length || hay.units[past] === newline
      return (!fromStart || starts) && (!toEnd || ends)
    })
  if (spans.length === 0) return nowhere
  const renewal = Renewal.between(lines(wanted.old), lines(wanted.new))
  return {
    places: spans.map(({ at }) => hay.places[at] ?? 0),
    splice: (index) => {
      const { at, past } = spans[index] ?? { at: 0, past: 0 }
      const from = hay.places[at] ?? 0
      const to = (hay.places[past - 1] ?? 0) + 1
      const actual = `${text.slice(from, to)}${carriage}`.split("\n")
      return { from, to, text: open(renewal(actual, (line) => line + carriage)) }
    }
  }
}

const newline = 10

/** A text with runs of blanks as one and none at the ends of lines, and where each unit of it stands. */
const collapse = (text: string): { readonly units: Uint16Array; readonly places: Int32Array } => {
  const units = new Uint16Array(text.length)
  const places = new Int32Array(text.length)
  let length = 0
  let blank = -1
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 32 || unit === 9 || (unit === 13 && text.charCodeAt(at + 1) === newline)) {
      blank = at
      continue
    }
    if (blank !== -1 && unit !== newline && length > 0 && units[length - 1] !== newline) {
      units[length] = 32
      places[length++] = blank
    }
    blank = -1
    units[length] = unit
    places[length++] = at
  }
  return { units: units.subarray(0, length), places: places.subarray(0, length) }
}

const spliced = (text: string, splices: ReadonlyArray<Splice>): string => {
  const parts: Array<string> = []
  let at = 0
  for (const splice of splices) {
    parts.push(text.slice(at, splice.from), splice.text)
    at = splice.to
  }
  parts.push(text.slice(at))
  return parts.join("")
}

const absent = (text: string, wanted: Replacement): string => {
  const done = holds(text, wanted.new.trim())
  const near = Nearest.show(text, wanted.old)
  return [
    "old_string is not in the file, not even with other white space",
    done ? "; new_string is there already: the change may have been made before" : "",
    near === "" ? "; read the file again" : `. The nearest lines are:\n${near}`
  ].join("")
}

/** Whether the text is likely to hold these words on purpose: as whole lines, or at some length and between word borders. */
const holds = (text: string, words: string): boolean => {
  const wanted = Content.withLineEnd(words, Content.lineEnd(text))
  if (!/[\p{L}\p{N}]/u.test(wanted)) return false
  return Search.occurrences(Search.units(text), Search.units(wanted), false).some((from) => {
    const to = from + wanted.length
    const whole = bare(text, from - 1, -1) && bare(text, to, 1)
    return whole || (wanted.length >= 8 && border(text, from) && border(text, to))
  })
}

/** Nothing but blanks lie between here and the line's end, or with a step of -1 its start. */
const bare = (text: string, from: number, step: 1 | -1): boolean => {
  let at = from
  while (text[at] === " " || text[at] === "\t" || text[at] === "\r") at += step
  return text[at] === undefined || text[at] === "\n"
}

const border = (text: string, at: number): boolean =>
  !/^[\p{L}\p{N}_]{2}$/u.test(text.slice(Math.max(0, at - 1), at + 1))
