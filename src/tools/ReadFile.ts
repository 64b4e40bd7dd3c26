/** The tool `read_file`: numbered lines of a text file, of which only the part asked for leaves the sandbox. */
import { Effect, Schema } from "effect"
import * as Arguments from "./Arguments.ts"
import * as Shell from "./Shell.ts"
import * as Similar from "./Similar.ts"
import * as Text from "./Text.ts"
import * as Tool from "./Tool.ts"

const defaultLines = 500
const maxLines = 2000
/** Bytes of one line that are shown. */
const lineBytes = 4000
/** Bytes that leave the sandbox: what can be shown, and names for a missing file. */
const fetched = 200_000

/** Reads a part of a file. */
export const readFile: Tool.Tool = Tool.make({
  name: "read_file",
  description:
    "Read a text file. Gives {content, total_lines, file_size, truncated}; content has its lines numbered, as `     1|text`. " +
    "Long files are read in parts with offset and limit; very long lines are cut. Binary files are refused.",
  parameters: Schema.Struct({
    path: Arguments.text("Path of the file, absolute or from the working directory"),
    offset: Schema.optional(Arguments.whole("First line to read, counted from 1; 1 by default", 1)),
    limit: Schema.optional(Arguments.whole(`Lines to read; ${defaultLines} by default, ${maxLines} at most`, 1))
  }),
  run: Effect.fn("read_file.run")(function* ({ path, offset, limit }) {
    const place = yield* Shell.path("path", path)
    const first = offset ?? 1
    const count = Math.min(limit ?? defaultLines, maxLines)
    const answer = yield* Shell.run(script(place, first, count), 3 * fetched)
    const start = answer.indexOf(0x1e)
    const end = answer.indexOf(0x0a, start)
    const [kind = "", size = "", newlines = "", last = ""] = answer.toString("utf8", start + 1, end).split(" ")
    const rest = answer.subarray(end + 1)
    if (kind !== "file") return yield* refused(path, kind, rest.toString("utf8"))
    const total = Number(newlines) + (Number(size) > 0 && last === "0" ? 1 : 0)
    if (first > total && first > 1) {
      return yield* new Tool.ToolFailure({
        error: `offset: line ${first} is beyond the end, ${path} has ${total} line${total === 1 ? "" : "s"}`,
        result: { total_lines: total, file_size: Number(size) }
      })
    }
    const { content, next } = numbered(rest, first, Math.min(count, total - first + 1))
    const more = next <= total
    return {
      content: more ? `${content}\n[lines ${next} to ${total} are not shown; go on with offset=${next}]` : content,
      total_lines: total,
      file_size: Number(size),
      truncated: more
    }
  })
})

/** Writes a line about the file after a record separator, then its lines, the names beside a missing file, or where a link points. */
const script = (path: string, first: number, count: number): string => `
LC_ALL=C; export LC_ALL; exec 2>/dev/null
${Shell.pathVariable(path)}
if [ -d "$p" ]; then printf '\\036directory\\n'; exit; fi
if [ ! -e "$p" ] && [ -L "$p" ]; then printf '\\036dangling\\n'; readlink "$p" | head -c 4096; exit; fi
if [ ! -e "$p" ]; then
  d=\${p%/*}; d=\${d:-/}
  if [ -d "$d" ]; then printf '\\036missing\\n'; ls -a "$d" | head -c ${fetched}; else printf '\\036nowhere\\n'; fi
  exit
fi
if [ ! -f "$p" ]; then printf '\\036special\\n'; exit; fi
if [ ! -r "$p" ]; then printf '\\036locked\\n'; exit; fi
a=$(head -c 8192 <"$p" | wc -c); b=$(head -c 8192 <"$p" | tr -d '\\000' | wc -c)
if [ $((a)) -ne $((b)) ]; then printf '\\036binary\\n'; exit; fi
s=$(wc -c <"$p"); n=$(wc -l <"$p"); l=$(tail -c 1 <"$p" | wc -l)
printf '\\036file %d %d %d\\n' $s $n $l
tail -n +${first} <"$p" | head -n ${count} | cut -b 1-${lineBytes + 1} | head -c ${fetched}
`

/** `found` goes with the kind: the names beside a missing file, or where a link points. */
const refused = (path: string, kind: string, found: string): Effect.Effect<never, Tool.ToolFailure> => {
  const why: Record<string, string> = {
    directory: "is a directory; list it with terminal or search_files",
    special: "is no regular file (a device, pipe or socket), it cannot be read",
    locked: "may not be read: permission denied",
    binary: "is a binary file (it holds NUL bytes); look at it with terminal, for example with file or xxd",
    nowhere: "does not exist, nor does its directory",
    dangling: `is a symbolic link to ${found.trim() || "a path"}, which does not exist`,
    missing: "does not exist"
  }
  const similar = kind === "missing" ? Similar.paths(path, found.split("\n")) : []
  const hint = similar.length === 0 ? "" : `; similar names there: ${similar.join(", ")}`
  return Effect.fail(new Tool.ToolFailure({ error: `${path} ${why[kind] ?? "could not be read"}${hint}` }))
}

/** Lines with their numbers, as many as fit, and the number of the first one that is left. */
const numbered = (bytes: Buffer, first: number, count: number): { readonly content: string; readonly next: number } => {
  const lines: Array<string> = []
  let start = 0
  for (let sum = 0; lines.length < count; ) {
    const newline = bytes.indexOf(0x0a, start)
    // Lines fetched by the byte end in the middle of one, which is left for the next part unless it is the only one.
    if (newline === -1 && bytes.length === fetched && lines.length > 0) break
    const end = newline === -1 ? bytes.length : newline
    const cut = end - start > lineBytes
    const text = bytes.toString("utf8", start, cut ? start + lineBytes : end)
    const line = `${String(first + lines.length).padStart(6)}|${cut ? shortened(text) : text.replace(/\r$/, "")}`
    sum += Text.cost(line) + 2
    if (sum > Text.resultBytes && lines.length > 0) break
    lines.push(line)
    start = end + 1
  }
  return { content: lines.join("\n"), next: first + lines.length }
}

const shortened = (text: string): string =>
  `${text.replace(/\ufffd$/, "")} [… line cut, it is longer than ${lineBytes} bytes]`
