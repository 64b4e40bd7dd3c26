/** What a change did to a file, as a unified diff. */
import { structuredPatch } from "diff"
import * as Text from "../Text.ts"

const context = 3
const diffBytes = 20_000
/** Beyond these the difference is shown as one block: finding a small one could take long. */
const maxLines = 5000
const patience = { timeout: 200, maxEditLength: 2000 }

/** A diff of at most about 20 KB; null stands for a file that is not there. */
export const unified = (path: string, before: string | null, after: string | null, from = path): string => {
  const name = (side: string, file: string) => (file.startsWith("/") ? side + file : `${side}/${file}`)
  const head = [
    `--- ${before === null ? "/dev/null" : name("a", from)}`,
    `+++ ${after === null ? "/dev/null" : name("b", path)}`
  ]
  return Text.bound([...head, ...hunks(before ?? "", after ?? ""), ""].join("\n"), diffBytes)
}

const hunks = (before: string, after: string): ReadonlyArray<string> => {
  const old = pieces(before)
  const fresh = pieces(after)
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  const most = Math.min(old.length, fresh.length) - start
  while (end < most && old[old.length - 1 - end] === fresh[fresh.length - 1 - end]) end++
  const first = Math.max(0, start - context)
  const oldPart = old.slice(first, Math.min(old.length, old.length - end + context))
  const freshPart = fresh.slice(first, Math.min(fresh.length, fresh.length - end + context))
  if (oldPart.length === freshPart.length && start === old.length) return []
  const small = oldPart.length <= maxLines && freshPart.length <= maxLines
  const found = small
    ? structuredPatch("", "", oldPart.join(""), freshPart.join(""), "", "", { context, ...patience })
    : undefined
  if (found === undefined) {
    const lead = start - first
    const trail = Math.min(end, context)
    return block(first, lead, oldPart.slice(0, oldPart.length - trail), freshPart, trail)
  }
  return found.hunks.flatMap((hunk) => [
    header(hunk.oldStart + first, hunk.oldLines, hunk.newStart + first, hunk.newLines),
    ...hunk.lines
  ])
}

/** All old lines out, all new lines in. */
const block = (
  first: number,
  lead: number,
  old: ReadonlyArray<string>,
  fresh: ReadonlyArray<string>,
  trail: number
): ReadonlyArray<string> => [
  header(first + 1, old.length + trail, first + 1, fresh.length),
  ...marked(" ", fresh.slice(0, lead)),
  ...marked("-", old.slice(lead)),
  ...marked("+", fresh.slice(lead, fresh.length - trail)),
  ...marked(" ", fresh.slice(fresh.length - trail))
]

const marked = (mark: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.flatMap((line) =>
    line.endsWith("\n") ? [mark + line.slice(0, -1)] : [mark + line, "\\ No newline at end of file"]
  )

// The format counts an empty side from the line before it.
const header = (oldStart: number, oldLines: number, newStart: number, newLines: number): string =>
  `@@ -${oldLines === 0 ? oldStart - 1 : oldStart},${oldLines} +${newLines === 0 ? newStart - 1 : newStart},${newLines} @@`

/** Lines with their newlines. */
const pieces = (text: string): Array<string> => {
  const all: Array<string> = []
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf("\n", at)
    const next = newline === -1 ? text.length : newline + 1
    all.push(text.slice(at, next))
    at = next
  }
  return all
}
