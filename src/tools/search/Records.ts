/** Reads what the scripts of a search print, whatever the files are called. */

export interface Line {
  readonly path: string
  readonly line: number
  readonly matches: boolean
  readonly content: string
}

/** A word about the place searched, and what follows it. */
export const heading = (answer: Buffer): { readonly word: string; readonly rest: Buffer } => {
  const start = answer.indexOf(0x1e)
  const end = answer.indexOf(0x0a, start)
  return start === -1 || end === -1
    ? { word: "", rest: Buffer.alloc(0) }
    : { word: answer.toString("utf8", start + 1, end), rest: answer.subarray(end + 1) }
}

/** Path, NUL, number, `:` or `-`, content, newline; groups may have a line `--` between them. */
export const lines = (bytes: Buffer): Array<Line> =>
  pairs(bytes).flatMap(([name, text]) => {
    const parts = /^(\d+)([:-])(.*)$/s.exec(text)
    if (parts === null) return []
    const path = name.startsWith("--\n") ? name.slice(3) : name
    return [{ path, line: Number(parts[1]), matches: parts[2] === ":", content: (parts[3] ?? "").replace(/\r$/, "") }]
  })

/** Path, NUL, number, newline. */
export const counts = (bytes: Buffer): Array<{ readonly path: string; readonly count: number }> =>
  pairs(bytes).map(([path, text]) => ({ path, count: Number(text) }))

/** Each ended by NUL; a rest without it was cut off. */
export const names = (bytes: Buffer): Array<string> => bytes.toString("utf8").split("\0").slice(0, -1)

const pairs = (bytes: Buffer): Array<readonly [name: string, text: string]> => {
  const all: Array<readonly [string, string]> = []
  for (let at = 0; at < bytes.length; ) {
    const nul = bytes.indexOf(0, at)
    const newline = nul === -1 ? -1 : bytes.indexOf(0x0a, nul)
    if (newline === -1) break
    all.push([bytes.toString("utf8", at, nul), bytes.toString("utf8", nul + 1, newline)])
    at = newline + 1
  }
  return all
}
