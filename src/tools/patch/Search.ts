/** Finds sequences in linear time, whatever the input: characters in a text, or lines that are equal up to white space. */

/** Places in `hay` where `needle` stands, ascending; with `apart` those that overlap an earlier one are left out. */
export const occurrences = (hay: ArrayLike<number>, needle: ArrayLike<number>, apart: boolean): Array<number> => {
  const found: Array<number> = []
  const length = needle.length
  if (length === 0 || length > hay.length) return found
  // Knuth, Morris and Pratt: the engine's own indexOf is quadratic on input made for it.
  const border = new Int32Array(length)
  for (let at = 1, fit = 0; at < length; at++) {
    while (fit > 0 && needle[at] !== needle[fit]) fit = border[fit - 1] ?? 0
    if (needle[at] === needle[fit]) fit++
    border[at] = fit
  }
  for (let at = 0, fit = 0; at < hay.length; at++) {
    while (fit > 0 && hay[at] !== needle[fit]) fit = border[fit - 1] ?? 0
    if (hay[at] === needle[fit]) fit++
    if (fit === length) {
      found.push(at - length + 1)
      fit = apart ? 0 : (border[fit - 1] ?? 0)
    }
  }
  return found
}

/** The UTF-16 units of a text. */
export const units = (text: string): Uint16Array => {
  const all = new Uint16Array(text.length)
  for (let at = 0; at < text.length; at++) all[at] = text.charCodeAt(at)
  return all
}

/** What two lines may differ in and still be taken as equal, strictest first. */
export const tolerances: ReadonlyArray<{ readonly indentation: boolean; readonly key: (line: string) => string }> = [
  { indentation: false, key: (line) => line.replace(/\r$/, "") },
  { indentation: false, key: (line) => line.trimEnd() },
  { indentation: true, key: (line) => line.trim() },
  { indentation: true, key: (line) => line.trim().replace(/[ \t]+/g, " ") }
]

/** Lines as numbers, equal for lines with the same key. */
export interface Numbered {
  readonly numbers: Int32Array
  readonly byKey: ReadonlyMap<string, number>
}

/** Numbers the lines of a file once, for any number of searches. */
export const number = (lines: ReadonlyArray<string>, key: (line: string) => string): Numbered => {
  const byKey = new Map<string, number>()
  const numbers = new Int32Array(lines.length)
  lines.forEach((line, at) => {
    const name = key(line)
    let known = byKey.get(name)
    if (known === undefined) {
      known = byKey.size
      byKey.set(name, known)
    }
    numbers[at] = known
  })
  return { numbers, byKey }
}

/** Places where the wanted lines stand one after another. */
export const find = (
  { numbers, byKey }: Numbered,
  wanted: ReadonlyArray<string>,
  key: (line: string) => string,
  apart: boolean
): Array<number> => {
  const needle = new Int32Array(wanted.length)
  for (const [at, line] of wanted.entries()) {
    const known = byKey.get(key(line))
    if (known === undefined) return []
    needle[at] = known
  }
  return occurrences(numbers, needle, apart)
}

/** Moves new lines from the indentation that the old lines were given with to the one that they have in the file. */
export const reindent = (given: ReadonlyArray<string>, actual: ReadonlyArray<string>): ((line: string) => string) => {
  const moves = new Map<string, string>()
  for (const [at, line] of given.entries()) {
    if (moves.size === 50) break
    const from = indent(line)
    if (line.trim() !== "" && !moves.has(from)) moves.set(from, indent(actual[at] ?? ""))
  }
  const [first] = moves
  if (first === undefined || [...moves].every(([from, to]) => from === to)) return (line) => line
  const [firstFrom, firstTo] = first
  const known = [...moves].sort(([a], [b]) => b.length - a.length)
  return (line) => {
    if (line.trim() === "") return line
    const own = indent(line)
    const base = known.find(([from]) => own.startsWith(from))
    if (base !== undefined) return base[1] + line.slice(base[0].length)
    const less = firstFrom.slice(own.length)
    return firstTo.endsWith(less) ? firstTo.slice(0, firstTo.length - less.length) + line.slice(own.length) : line
  }
}

const indent = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? ""
