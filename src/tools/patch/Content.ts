/** A file's text as patches see it: its lines, its line end, and what must stay as it was. */

/** The line end that most lines of a text have. */
export const lineEnd = (text: string): "\n" | "\r\n" => {
  let all = 0
  let carriage = 0
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    all++
    if (at > 0 && text.charCodeAt(at - 1) === 13) carriage++
  }
  return carriage * 2 > all ? "\r\n" : "\n"
}

/** `text` with the file's own line end, where that is CRLF; a file of LF takes any text as it is. */
export const withLineEnd = (text: string, end: "\n" | "\r\n"): string =>
  end === "\r\n" ? text.replaceAll("\r\n", "\n").replaceAll("\n", "\r\n") : text

/** Lines without their newline (a CR stays); a newline at the end of the text ends the last line, it begins none. */
export const lines = (text: string): Array<string> => {
  const all = text.split("\n")
  if (all.at(-1) === "") all.pop()
  return all
}

/** The same lines, of which the last has its CR too when those of the file do: it may not stay the last. */
export const uniform = (text: string): ReadonlyArray<string> => {
  const all = lines(text)
  const last = all.at(-1)
  if (last !== undefined && !text.endsWith("\n") && lineEnd(text) === "\r\n") all[all.length - 1] = `${last}\r`
  return all
}

/** Places in a text where its lines start, and its length at the end. */
export const starts = (text: string, all: ReadonlyArray<string>): Int32Array => {
  const places = new Int32Array(all.length + 1)
  let at = 0
  for (const [index, line] of all.entries()) {
    places[index] = at
    at += line.length + 1
  }
  places[all.length] = text.length
  return places
}

/** The number, from 1, of the line that holds each place; the places ascend. */
export const lineNumbers = (text: string, places: ReadonlyArray<number>): Array<number> => {
  let line = 1
  let newline = text.indexOf("\n")
  return places.map((place) => {
    while (newline !== -1 && newline < place) {
      line++
      newline = text.indexOf("\n", newline + 1)
    }
    return line
  })
}

/** "3, 8 and 12", at most ten. */
export const enumerate = (numbers: ReadonlyArray<number>): string => {
  const shown = numbers.slice(0, 10).map(String)
  if (numbers.length > 10) return `${shown.join(", ")}, …`
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`
}
