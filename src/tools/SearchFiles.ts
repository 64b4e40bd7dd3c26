/** The tool `search_files`: text in files, or files by name, searched inside the sandbox. */
import { Effect, Schema } from "effect"
import * as Arguments from "./Arguments.ts"
import * as Shell from "./Shell.ts"
import * as Records from "./search/Records.ts"
import * as Script from "./search/Script.ts"
import * as Text from "./Text.ts"
import * as Tool from "./Tool.ts"

const maxLimit = 1000
const maxContext = 20
/** Characters shown of one line. */
const lineLength = 500

/** Searches files. */
export const searchFiles: Tool.Tool = Tool.make({
  name: "search_files",
  description:
    "Search the contents of files for a regular expression (Perl style, one line at a time), or with target=files " +
    "find files by a name pattern such as *.py or src/**/*.ts. Hidden files and files that .gitignore names are searched too; " +
    `binary files and the folders ${Script.skipped.join(", ")} are left out unless path points into them. ` +
    "Gives {total_count, matches: [{path, line, content}], truncated}, or files or counts in place of matches.",
  parameters: Schema.Struct({
    pattern: Arguments.text("Regular expression, or for target=files a name pattern with * ? [ ] { , }"),
    target: Schema.optional(Arguments.choice("What to search: content (default) or files", "content", "files")),
    path: Schema.optional(Arguments.text("Directory or file to search; the working directory by default")),
    file_glob: Schema.optional(
      Arguments.text("Only files whose name fits, such as *.py; with target=files both patterns must fit")
    ),
    limit: Schema.optional(Arguments.whole(`Results to give; 50 by default, ${maxLimit} at most`, 1)),
    offset: Schema.optional(Arguments.whole("Results to skip, to see further ones; 0 by default", 0)),
    output_mode: Schema.optional(
      Arguments.choice(
        "content: matching lines (default); files_only: their files; count: matching lines per file",
        "content",
        "files_only",
        "count"
      )
    ),
    context: Schema.optional(
      Arguments.whole(`Lines to show before and after each match; 0 by default, ${maxContext} at most`, 0)
    )
  }),
  run: Effect.fn("search_files.run")(function* (args) {
    yield* checkPattern(args.pattern)
    yield* Shell.noNul("file_glob", args.file_glob ?? "")
    const path = args.path === undefined || args.path === "" ? "." : args.path
    const offset = args.offset ?? 0
    const limit = Math.min(args.limit ?? 50, maxLimit)
    const search: Script.Search = {
      mode: args.target === "files" ? "names" : (args.output_mode ?? "content"),
      pattern: args.pattern.toWellFormed(),
      path: yield* Shell.path("path", path),
      glob: args.file_glob?.toWellFormed() ?? "",
      context: Math.min(args.context ?? 0, maxContext),
      cap: 0
    }
    const perResult = search.mode === "content" ? 1500 * (1 + search.context) : 200
    const cap = Math.min(Math.max((offset + limit) * perResult, 400_000), 4_000_000)
    const { kind, rest } = yield* ask(path, Script.results({ ...search, cap }), cap)
    const found = results(search.mode, rest, (name) => shownPath(path, kind, name), search.context)
    const total = rest.length < cap ? found.all.length : yield* count(path, search, found.all.length)
    const { shown, left } = within(found.all.slice(offset, offset + limit))
    return {
      total_count: search.mode === "count" ? sum(found.all) : total,
      [found.name]: shown,
      truncated: offset + shown.length < total,
      ...(left > 0
        ? {
            note: `${left} more results were asked for but the result is full; go on with offset=${offset + shown.length}`
          }
        : {})
    }
  })
})

const checkPattern = Effect.fnUntraced(function* (pattern: string) {
  yield* Shell.noNul("pattern", pattern)
  if (pattern === "") return yield* new Tool.ToolFailure({ error: "pattern: is empty" })
  if (pattern.length > 10_000) return yield* new Tool.ToolFailure({ error: "pattern: has more than 10,000 characters" })
  if (pattern.includes("\n")) {
    return yield* new Tool.ToolFailure({ error: "pattern: holds a newline, but only single lines are searched" })
  }
})

/** Runs a script of the search; what it says about the path or the pattern is a failure. */
const ask = Effect.fnUntraced(function* (path: string, script: string, cap: number) {
  const { word, rest } = Records.heading(yield* Shell.run(script, 2 * cap + 10_000))
  if (word === "directory" || word === "file") return { kind: word, rest }
  if (word === "invalid") {
    const why = rest
      .toString("utf8")
      .trim()
      .replace(/^grep: /, "")
      .slice(0, 500)
    return yield* new Tool.ToolFailure({ error: `pattern: is no valid regular expression: ${why}` })
  }
  const why: Record<string, string> = {
    missing: "does not exist",
    special: "is neither a directory nor a regular file",
    locked: "may not be entered: permission denied"
  }
  return yield* new Tool.ToolFailure({ error: `path: ${path} ${why[word] ?? "could not be searched"}` })
})

const count = Effect.fnUntraced(function* (path: string, search: Script.Search, atLeast: number) {
  const { rest } = yield* ask(path, Script.total(search), 1000)
  return Math.max(atLeast, Number(rest.toString("utf8").trim()) || 0)
})

type Result = string | { readonly path: string; readonly count: number } | Match

interface Match {
  readonly path: string
  readonly line: number
  readonly content: string
  readonly before?: ReadonlyArray<string>
  readonly after?: ReadonlyArray<string>
}

const results = (
  mode: Script.Mode,
  bytes: Buffer,
  shown: (name: string) => string,
  context: number
): { readonly name: string; readonly all: ReadonlyArray<Result> } => {
  switch (mode) {
    case "content":
      return { name: "matches", all: matches(Records.lines(bytes), shown, context) }
    case "count":
      return { name: "counts", all: Records.counts(bytes).map(({ path, count }) => ({ path: shown(path), count })) }
    default:
      return { name: "files", all: Records.names(bytes).map(shown) }
  }
}

const matches = (
  lines: ReadonlyArray<Records.Line>,
  shown: (name: string) => string,
  context: number
): ReadonlyArray<Match> => {
  const around = (at: number, step: number): ReadonlyArray<string> => {
    const found: Array<string> = []
    for (let distance = 1; distance <= context; distance++) {
      const own = lines[at]
      const other = lines[at + step * distance]
      if (own === undefined || other?.path !== own.path || other.line !== own.line + step * distance) break
      found.push(short(other.content))
    }
    return step < 0 ? found.reverse() : found
  }
  return lines.flatMap(({ path, line, matches, content }, at) => {
    if (!matches) return []
    const match = { path: shown(path), line, content: short(content) }
    return [context === 0 ? match : { ...match, before: around(at, -1), after: around(at, 1) }]
  })
}

const short = (line: string): string => (line.length > lineLength ? `${line.slice(0, lineLength)} [… line cut]` : line)

/** A name as the script gave it, from the path that the model gave. */
const shownPath = (path: string, kind: string, name: string): string => {
  if (kind === "file") return path
  const bare = name.replace(/^\.\//, "")
  return path === "." || path === "./" ? bare : `${path.replace(/\/+$/, "")}/${bare}`
}

/** As many of the results as fit, at least one, and how many do not. */
const within = (all: ReadonlyArray<Result>): { readonly shown: ReadonlyArray<Result>; readonly left: number } => {
  let room = Text.resultBytes
  const end = all.findIndex((one, at) => {
    room -= Buffer.byteLength(JSON.stringify(one)) + 1
    return room < 0 && at > 0
  })
  return end === -1 ? { shown: all, left: 0 } : { shown: all.slice(0, end), left: all.length - end }
}

const sum = (all: ReadonlyArray<Result>): number =>
  all.reduce((total, one) => total + (typeof one === "object" && "count" in one ? one.count : 0), 0)
