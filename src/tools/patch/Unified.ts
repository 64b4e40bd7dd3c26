/** Reads unified diffs, as `diff -u` and git write them. */
import { parsePatch, type StructuredPatch } from "diff"
import { Either } from "effect"
import type { Change, Hunk, HunkLine } from "./Change.ts"

/** The changes of a unified diff, or a sentence on what is wrong with it. */
export const parse = (patch: string): Either.Either<ReadonlyArray<Change>, string> =>
  Either.gen(function* () {
    const files = yield* Either.try({
      try: () => parsePatch(patch.replaceAll("\r\n", "\n")),
      catch: (error) =>
        `the patch is no valid unified diff: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}. ` +
        "The form between *** Begin Patch and *** End Patch needs no line counts"
    })
    const changes: Array<Change> = []
    for (const file of files) changes.push(yield* change(file))
    if (changes.length === 0) return yield* Either.left("the patch holds no change")
    return changes
  })

const change = (file: StructuredPatch): Either.Either<Change, string> => {
  const { from, to } = names(file)
  if (file.isBinary === true) return Either.left("the patch holds a binary change, which cannot be applied")
  if (from === undefined || to === undefined)
    return Either.left("the patch has hunks before its first --- and +++ lines")
  if (from === none && to === none) return Either.left("the patch names no file: both sides are /dev/null")
  if (to === none || file.isDelete === true) return Either.right({ _tag: "Delete", path: from })
  if (from === none || file.isCreate === true) {
    return Either.right({ _tag: "Add", path: to, content: added(file.hunks.flatMap(({ lines }) => lines)) })
  }
  if (file.hunks.length === 0 && from === to) return Either.left(`the patch changes nothing in ${to}`)
  return Either.right({ _tag: "Update", path: from, moveTo: from === to ? null : to, hunks: file.hunks.map(hunk) })
}

const none = "/dev/null"

/** File names without the a/ and b/ that git puts in front of both. */
const names = ({ oldFileName: from, newFileName: to }: StructuredPatch) => {
  const prefixed = (name: string | undefined, prefix: string) => name === none || name?.startsWith(prefix) === true
  if (!prefixed(from, "a/") || !prefixed(to, "b/")) return { from, to }
  const bare = (name: string | undefined) => (name === none ? name : name?.slice(2))
  return { from: bare(from), to: bare(to) }
}

const added = (lines: ReadonlyArray<string>): string => {
  const text = lines
    .filter((line) => line.startsWith("+"))
    .map((line) => `${line.slice(1)}\n`)
    .join("")
  return lines.at(-1)?.startsWith("\\") ? text.slice(0, -1) : text
}

const hunk = ({ oldStart, oldLines, lines }: StructuredPatch["hunks"][number]): Hunk => {
  const kept: Array<HunkLine> = []
  const open = { old: false, new: false }
  for (const line of lines) {
    const mark = line === "" ? " " : line[0]
    if (mark === "\\") {
      const last = kept.at(-1)?.mark
      if (last !== "+") open.old = true
      if (last !== "-") open.new = true
    } else if (mark === " " || mark === "+" || mark === "-") kept.push({ mark, text: line.slice(1) })
  }
  return {
    contexts: [],
    lines: kept,
    atEnd: false,
    // The format counts a hunk without old lines from the line before it.
    line: oldLines === 0 ? oldStart + 1 : oldStart,
    finalNewline: open.old === open.new ? null : !open.new
  }
}
