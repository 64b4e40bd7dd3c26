/** A data set in a JSONL file: one pass makes its index, later each prompt is read from its place in the file. */
import { readSync, rmSync } from "node:fs"
import { type FileHandle, mkdtemp, open } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Either, Layer, type Scope } from "effect"
import { ContentIndex } from "./ContentIndex.ts"
import * as ContentKey from "./ContentKey.ts"
import { type BadLine, Dataset, DatasetError, type DatasetService } from "./Dataset.ts"
import * as Lines from "./Lines.ts"
import * as Prompt from "./Prompt.ts"

const badLinesKept = 20
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })
const decode = Either.try
const blank = /^[\s\uFEFF]*$/

/** The text of a line, without a byte-order mark; left when it is not UTF-8. */
const textOf = (bytes: Uint8Array) => decode({ try: () => utf8.decode(bytes), catch: () => "not UTF-8" })

/** How a data set file is read. */
export interface Options {
  readonly path: string
  /** Only the first prompts; all when undefined. */
  readonly maxSamples: number | undefined
  readonly defaults: ContentKey.Defaults
}

interface Found {
  readonly index: ContentIndex
  readonly bad: Array<BadLine>
  badCount: number
  firstImageLine: number
}

/** Takes one line into account; false when enough prompts were found. */
const take = (found: Found, { maxSamples, defaults }: Options, line: Lines.Line): boolean => {
  const prompt = Either.flatMap(textOf(line.bytes), (text) =>
    blank.test(text) ? Either.right(undefined) : Prompt.parse(text)
  )
  if (Either.isLeft(prompt)) {
    found.badCount++
    if (found.bad.length < badLinesKept) found.bad.push({ line: line.number, why: prompt.left })
  } else if (prompt.right !== undefined) {
    if (prompt.right.image !== "" && found.firstImageLine === 0) found.firstImageLine = line.number
    found.index.add(ContentKey.of(prompt.right, defaults), line.offset, line.bytes.length)
  }
  return maxSamples === undefined || found.index.size < maxSamples
}

const unreadable = (path: string) => (cause: unknown) => {
  const text = cause instanceof Error ? cause.message : String(cause)
  const missing = text.startsWith("ENOENT")
  return new DatasetError({
    reason: missing ? "NotFound" : "Unreadable",
    detail: missing
      ? `--dataset_file: there is no file ${path}`
      : `--dataset_file: ${path} cannot be read: ${text.replace(/\s+/g, " ")}`
  })
}

const openFile = (path: string, flags: string): Effect.Effect<FileHandle, DatasetError, Scope.Scope> =>
  Effect.acquireRelease(Effect.tryPromise({ try: () => open(path, flags), catch: unreadable(path) }), (file) =>
    Effect.promise(() => file.close())
  )

/** A scratch file that is gone from the file system already and lives as long as it is open. */
const scratchFile = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => mkdtemp(join(tmpdir(), "batch-runner-dataset-")), catch: unreadable(tmpdir()) }),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  return yield* openFile(join(folder, "rows.jsonl"), "w+")
})

/** Copies what can be read only once to a scratch file. */
const spool = (path: string, chunks: AsyncIterable<Buffer>) =>
  Effect.gen(function* () {
    const scratch = yield* scratchFile
    yield* Effect.tryPromise({
      try: async () => {
        for await (const chunk of chunks) await scratch.appendFile(chunk)
      },
      catch: unreadable(path)
    })
    return scratch
  })

/** The file's text where any part of it can be read at any time: a pipe is copied, gzip is unpacked. */
const seekable = (path: string) =>
  Effect.gen(function* () {
    const given = yield* openFile(path, "r")
    const stat = yield* Effect.tryPromise({ try: () => given.stat(), catch: unreadable(path) })
    if (stat.isDirectory()) {
      return yield* new DatasetError({
        reason: "Unreadable",
        detail: `--dataset_file: ${path} is a folder, a JSONL file is needed`
      })
    }
    if (stat.isCharacterDevice() || stat.isBlockDevice()) {
      return yield* new DatasetError({
        reason: "Unreadable",
        detail: `--dataset_file: ${path} is a device, a JSONL file is needed`
      })
    }
    const file = stat.isFile() ? given : yield* spool(path, given.createReadStream({ autoClose: false }))
    const mark = Buffer.alloc(2)
    yield* Effect.tryPromise({ try: () => file.read(mark, 0, 2, 0), catch: unreadable(path) })
    return mark[0] === 0x1f && mark[1] === 0x8b ? yield* spool(path, Lines.contents(file, true)) : file
  })

const nothingFound = (path: string, found: Found): DatasetError => {
  const first = found.bad[0]
  return new DatasetError({
    reason: "NoPrompts",
    detail:
      first === undefined
        ? `--dataset_file: ${path} is empty; it needs one JSON object a line, {"prompt": "…"}`
        : `--dataset_file: ${path} has no usable line (${found.badCount} bad; line ${first.line}: ${first.why}); each needs to be a JSON object, {"prompt": "…"}`
  })
}

/** Opens the file and makes its index. */
const make = (options: Options) =>
  Effect.gen(function* () {
    const { path } = options
    const file = yield* seekable(path)
    const found: Found = { index: new ContentIndex(), bad: [], badCount: 0, firstImageLine: 0 }
    yield* Effect.tryPromise({
      try: () => Lines.scan(Lines.contents(file, false), (line) => take(found, options, line)),
      catch: unreadable(path)
    })
    if (found.index.size === 0) return yield* nothingFound(path, found)
    const service: DatasetService = {
      path,
      index: found.index,
      badLines: { count: found.badCount, first: found.bad },
      firstImageLine: found.firstImageLine,
      read: (place) => Effect.suspend(() => readPrompt(options, file, found.index, place))
    }
    return service
  })

const readPrompt = ({ path, defaults }: Options, file: FileHandle, index: ContentIndex, place: number) =>
  Effect.gen(function* () {
    const bytes = Buffer.alloc(index.length(place))
    // A line is a page or two and lies in the page cache: cheaper at once than by way of the thread pool.
    yield* Effect.try({
      try: () => readSync(file.fd, bytes, 0, bytes.length, index.offset(place)),
      catch: unreadable(path)
    })
    const prompt = Either.flatMap(textOf(bytes), Prompt.parse)
    const key = index.key(place)
    if (Either.isRight(prompt)) {
      const now = ContentKey.of(prompt.right, defaults)
      if (now.high === key.high && now.low === key.low) return prompt.right
    }
    return yield* new DatasetError({
      reason: "Changed",
      detail: `--dataset_file: ${path} was changed while the run was under way; start again with --resume`
    })
  })

/** The data set in a file: JSONL as it is or packed with gzip, at most `maxSamples` prompts of it. */
export const layer = (options: Options): Layer.Layer<Dataset, DatasetError> => Layer.scoped(Dataset, make(options))
