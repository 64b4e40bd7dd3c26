/** Reads the patch form that opens with `*** Begin Patch`. */
import { Either } from "effect"
import type { Change, Hunk, HunkLine } from "./Change.ts"

interface OpenHunk {
  readonly contexts: Array<string>
  readonly lines: Array<HunkLine>
  atEnd: boolean
  line: number | null
}

type Open =
  | { readonly _tag: "Add"; readonly path: string; readonly lines: Array<string> }
  | { readonly _tag: "Delete"; readonly path: string }
  | { readonly _tag: "Update"; readonly path: string; moveTo: string | null; readonly hunks: Array<OpenHunk> }

/** The changes of a patch text, or a sentence that names the line that cannot be read. Begin and end lines may be absent. */
export const parse = (patch: string): Either.Either<ReadonlyArray<Change>, string> => {
  const all: Array<Open> = []
  const source = patch.split("\n")
  for (const [at, raw] of source.entries()) {
    const line = raw.replace(/\r$/, "")
    const word = line.trimEnd()
    if (word === "*** End Patch") break
    if (word === "*** Begin Patch") continue
    const header = /^\*\*\* (Add|Delete|Update) File:(.*)$/.exec(word)
    if (header !== null) {
      const path = header[2]?.trim() ?? ""
      if (path === "") return Either.left(`line ${at + 1} of the patch names no file`)
      all.push(opened(header[1] ?? "", path))
      continue
    }
    const fault = take(all.at(-1), line)
    if (fault !== null) return Either.left(`line ${at + 1} of the patch, ${quoted(line)}: ${fault}`)
  }
  if (all.length === 0)
    return Either.left("the patch holds no change: no *** Update File, *** Add File or *** Delete File line")
  for (const one of all) {
    if (one._tag === "Update" && one.moveTo === null && one.hunks.every((hunk) => hunk.lines.length === 0)) {
      return Either.left(`the patch changes nothing in ${one.path}: no line begins with + or -`)
    }
  }
  return Either.right(all.map(closed))
}

const opened = (kind: string, path: string): Open =>
  kind === "Add"
    ? { _tag: "Add", path, lines: [] }
    : kind === "Delete"
      ? { _tag: "Delete", path }
      : { _tag: "Update", path, moveTo: null, hunks: [] }

/** Puts a line into the change that is open; what is wrong with it, or null. */
const take = (open: Open | undefined, line: string): string | null => {
  if (open === undefined)
    return line.trim() === "" || /^(```|<<|EOF)/.test(line) ? null : "expected a line such as *** Update File: path"
  if (open._tag === "Delete") return line.trim() === "" ? null : "a file to delete takes no further lines"
  if (open._tag === "Add") {
    if (line.startsWith("+")) open.lines.push(line.slice(1))
    else if (line.trim() !== "") return "each line of a file to add begins with +"
    return null
  }
  return takeHunkLine(open, line)
}

const takeHunkLine = (open: Extract<Open, { _tag: "Update" }>, line: string): string | null => {
  const move = /^\*\*\* Move to:(.*)$/.exec(line)
  if (move !== null) {
    open.moveTo = move[1]?.trim() || null
    return open.moveTo === null ? "names no file" : null
  }
  const last = open.hunks.at(-1)
  if (line.trimEnd() === "*** End of File") {
    if (last !== undefined) last.atEnd = true
    return null
  }
  if (line.startsWith("@@")) return takeContext(open.hunks, line)
  const mark = line === "" ? " " : line[0]
  if (mark !== " " && mark !== "+" && mark !== "-") {
    return line.startsWith("\\ No newline") ? null : "a line of a hunk begins with a space, + or -"
  }
  const hunk = last === undefined || last.atEnd ? openedHunk(open.hunks) : last
  hunk.lines.push({ mark, text: line.slice(1) })
  return null
}

const openedHunk = (hunks: Array<OpenHunk>): OpenHunk => {
  const hunk: OpenHunk = { contexts: [], lines: [], atEnd: false, line: null }
  hunks.push(hunk)
  return hunk
}

const takeContext = (hunks: Array<OpenHunk>, line: string): null => {
  const last = hunks.at(-1)
  const hunk = last !== undefined && last.lines.length === 0 && !last.atEnd ? last : openedHunk(hunks)
  const numbers = /^@@ -(\d{1,9})(?:,\d+)? \+\d+(?:,\d+)? @@/.exec(line)
  if (numbers !== null) {
    hunk.line = Number(numbers[1])
    return null
  }
  const context = line.replace(/^@@ ?/, "").replace(/ ?@@$/, "")
  if (context.trim() !== "") hunk.contexts.push(context)
  return null
}

const closed = (open: Open): Change => {
  if (open._tag === "Add") {
    return { _tag: "Add", path: open.path, content: open.lines.map((line) => `${line}\n`).join("") }
  }
  if (open._tag === "Delete") return open
  return { ...open, hunks: open.hunks.filter((hunk) => hunk.lines.length > 0).map(closedHunk) }
}

/** Empty lines at the end of a hunk are layout of the patch, not lines of the file. */
const closedHunk = (hunk: OpenHunk): Hunk => {
  let end = hunk.lines.length
  while (end > 1 && hunk.lines[end - 1]?.mark === " " && hunk.lines[end - 1]?.text === "") end--
  return { ...hunk, lines: hunk.lines.slice(0, end), finalNewline: null }
}

const quoted = (line: string): string => JSON.stringify(line.slice(0, 80))
