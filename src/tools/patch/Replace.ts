/** One text put in another's place: an exact match first, then one that forgives white space. */
import { Either } from "effect"
import * as Content from "./Content.ts"
import * as Nearest from "./Nearest.ts"
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

/** The text after the replacement, or a sentence that tells the model why there is none. Linear in the text's length. */
export const replace = (text: string, wanted: Replacement): Either.Either<string, string> => {
  if (wanted.old === "") return Either.left("old_string: is empty; to write a whole file use write_file")
  if (wanted.old === wanted.new)
    return Either.left("old_string and new_string are the same: there is nothing to change")
  for (const way of [exact, wholeLines, withinLines]) {
    const splices = way(text, wanted)
    if (splices.length === 0) continue
    if (splices.length > 1 && !wanted.all) {
      const places = Content.lineNumbers(
        text,
        splices.map(({ from }) => from)
      )
      return Either.left(
        `old_string occurs ${splices.length} times, on lines ${Content.enumerate(places)}: ` +
          "add surrounding lines to make it unique, or set replace_all"
      )
    }
    const changed = spliced(text, splices)
    return changed === text
      ? Either.left("this changes nothing: the file holds the new text already")
      : Either.right(changed)
  }
  return Either.left(absent(text, wanted))
}

const exact = (text: string, wanted: Replacement): ReadonlyArray<Splice> => {
  const end = Content.lineEnd(text)
  const fresh = Content.withLineEnd(wanted.new, end)
  const hay = Search.units(text)
  for (const old of new Set([wanted.old, Content.withLineEnd(wanted.old, end)])) {
    const places = Search.occurrences(hay, Search.units(old), true)
    if (places.length > 0) return places.map((from) => ({ from, to: from + old.length, text: fresh }))
  }
  return []
}

const wholeLines = (text: string, wanted: Replacement): ReadonlyArray<Splice> => {
  const old = wanted.old.replaceAll("\r\n", "\n")
  if (old.trim() === "") return []
  const oldLines = Content.lines(old)
  const all = Content.lines(text)
  const starts = Content.starts(text, all)
  const end = Content.lineEnd(text)
  const closed = old.endsWith("\n")
  for (const { indentation, key } of Search.tolerances) {
    const places = Search.find(Search.number(all, key), oldLines, key, true)
    if (places.length === 0) continue
    return places.map((place): Splice => {
      const next = place + oldLines.length
      const last = next - 1
      const from = starts[place] ?? 0
      const lastEnd = (starts[last] ?? 0) + (all[last]?.replace(/\r$/, "").length ?? 0)
      const to = closed ? (starts[next] ?? text.length) : lastEnd
      const move = indentation ? Search.reindent(oldLines, all.slice(place, next)) : (line: string) => line
      const fresh = wanted.new.replaceAll("\r\n", "\n").split("\n").map(move).join("\n")
      const fits = closed ? asLines(fresh, text[to - 1] === "\n") : fresh
      return { from, to, text: Content.withLineEnd(fits, end) }
    })
  }
  return []
}

/** Lines take the place of lines: with a newline at the end exactly where the old ones had it. */
const asLines = (fresh: string, closed: boolean): string => {
  if (!closed) return fresh.replace(/\n$/, "")
  return fresh === "" || fresh.endsWith("\n") ? fresh : `${fresh}\n`
}

const withinLines = (text: string, wanted: Replacement): ReadonlyArray<Splice> => {
  const needle = collapse(wanted.old)
  if (needle.units.every((unit) => unit === newline)) return []
  const hay = collapse(text)
  const end = Content.lineEnd(text)
  // White space at the ends of the old text was dropped: it stood for an indentation and a line's end.
  const fromStart = /^[ \t]/.test(wanted.old)
  const toEnd = /[ \t]$/.test(wanted.old)
  const fresh = fromStart ? wanted.new.replace(/^[ \t]+/, "") : wanted.new
  return Search.occurrences(hay.units, needle.units, true)
    .map((at) => ({ at, past: at + needle.units.length }))
    .filter(({ at, past }) => {
      const starts = at === 0 || hay.units[at - 1] === newline
      const ends = past === hay.units.length || hay.units[past] === newline
      return (!fromStart || starts) && (!toEnd || ends)
    })
    .map(({ at, past }) => ({
      from: hay.places[at] ?? 0,
      to: (hay.places[past - 1] ?? 0) + 1,
      text: Content.withLineEnd(fresh, end)
    }))
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
  const done = wanted.new.trim() !== "" && exact(text, { ...wanted, old: wanted.new }).length > 0
  const near = Nearest.show(text, wanted.old)
  return [
    "old_string is not in the file, not even with other white space",
    done ? "; new_string is there already: the change may have been made before" : "",
    near === "" ? "; read the file again" : `. The nearest lines are:\n${near}`
  ].join("")
}
