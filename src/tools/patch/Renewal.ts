/** New lines in the place of old ones: those that both have stay as they stand in the file. */
import { diffArrays } from "diff"

/** Shared lines that may have changed places; with more only those at the beginning and the end are told, to keep this quick. */
const maxEditLength = 100

/** Gives the new lines for one place: `actual` are the file's lines there, as many as the old ones; `make` fits a new line in. */
export type Renewal = (actual: ReadonlyArray<string>, make: (line: string) => string) => ReadonlyArray<string>

/** Compares old and new lines once, for any number of places. */
export const between = (old: ReadonlyArray<string>, fresh: ReadonlyArray<string>): Renewal => {
  const origins = align(old, fresh)
  return (actual, make) => fresh.map((line, at) => actual[origins[at] ?? -1] ?? make(line))
}

/** For each new line the place of the old line that it is, or -1. */
const align = (old: ReadonlyArray<string>, fresh: ReadonlyArray<string>): Int32Array => {
  const origins = new Int32Array(fresh.length).fill(-1)
  const most = Math.min(old.length, fresh.length)
  let start = 0
  for (; start < most && old[start] === fresh[start]; start++) origins[start] = start
  let end = 0
  for (; end < most - start && old.at(-1 - end) === fresh.at(-1 - end); end++) {
    origins[fresh.length - 1 - end] = old.length - 1 - end
  }
  // Lines that only one side has match nothing: without them the comparison is as good, and short.
  const oldPart = shared(old, start, old.length - end, fresh)
  const freshPart = shared(fresh, start, fresh.length - end, old)
  const line = (side: ReadonlyArray<string>) => (at: number) => side[at] ?? ""
  let from = 0
  let to = 0
  const steps = diffArrays(oldPart.map(line(old)), freshPart.map(line(fresh)), { maxEditLength }) ?? []
  for (const { count, added, removed } of steps) {
    if (!added && !removed) {
      for (let at = 0; at < count; at++) origins[freshPart[to + at] ?? 0] = oldPart[from + at] ?? -1
    }
    if (!added) from += count
    if (!removed) to += count
  }
  return origins
}

/** Places from `start` to `end` whose line the other side has within its own part too. */
const shared = (
  side: ReadonlyArray<string>,
  start: number,
  end: number,
  other: ReadonlyArray<string>
): ReadonlyArray<number> => {
  const known = new Set(other.slice(start, other.length - (side.length - end)))
  const places: Array<number> = []
  for (let at = start; at < end; at++) if (known.has(side[at] ?? "")) places.push(at)
  return places
}
