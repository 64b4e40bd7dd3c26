/** A data set in a JSONL file: one pass makes its index, later each prompt is read from its place in the file. */
import { readSync } from "node:fs"
import type { FileHandle } from "node:fs/promises"
import { Effect, Either, Layer } from "effect"
import { ContentIndex } from "./ContentIndex.ts"
import * as ContentKey from "./ContentKey.ts"
import { type BadLine, Dataset, DatasetError, type DatasetService } from "./Dataset.ts"
import * as Lines from "./Lines.ts"
import * as Prompt from "./Prompt.ts"
import { seekable, unreadable } from "./Source.ts"

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
  /** Is told the image of each prompt, empty for none, in the order of their places. */
  readonly onImage?: (image: string) => void
}

interface Found {
  readonly index: ContentIndex
  readonly bad: Array<BadLine>
  badCount: number
  firstImageLine: number
  firstPlainLine: number
}

/** Takes one line into account; false when enough prompts were found. */
const take = (found: Found, { maxSamples, onImage }: Options, line: Lines.Line): boolean => {
  const prompt = Either.flatMap(textOf(line.bytes), (text) =>
    blank.test(text) ? Either.right(undefined) : Prompt.parse(text)
  )
  if (Either.isLeft(prompt)) {
    found.badCount++
    if (found.bad.length < badLinesKept) found.bad.push({ line: line.number, why: prompt.left })
  } else if (prompt.right !== undefined) {
    const kind = prompt.right.image === "" ? "firstPlainLine" : "firstImageLine"
    if (found[kind] === 0) found[kind] = line.number
    onImage?.(prompt.right.image)
    found.index.add(ContentKey.of(prompt.right), line.offset, line.bytes.length)
  }
  return maxSamples === undefined || found.index.size < maxSamples
}

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
    const found: Found = { index: new ContentIndex(), bad: [], badCount: 0, firstImageLine: 0, firstPlainLine: 0 }
    yield* Effect.tryPromise({
      try: (signal) => Lines.scan(Lines.contents(file, false), (line) => !signal.aborted && take(found, options, line)),
      catch: unreadable(path)
    })
    if (found.index.size === 0) return yield* nothingFound(path, found)
    const service: DatasetService = {
      path,
      index: found.index,
      badLines: { count: found.badCount, first: found.bad },
      firstImageLine: found.firstImageLine,
      firstPlainLine: found.firstPlainLine,
      read: (place) => Effect.suspend(() => readPrompt(options, file, found.index, place))
    }
    return service
  })

const readPrompt = ({ path }: Options, file: FileHandle, index: ContentIndex, place: number) =>
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
      const now = ContentKey.of(prompt.right)
      if (now.high === key.high && now.low === key.low) return prompt.right
    }
    return yield* new DatasetError({
      reason: "Changed",
      detail: `--dataset_file: ${path} was changed while the run was under way; start again with --resume`
    })
  })

/** The data set in a file: JSONL as it is or packed with gzip, at most `maxSamples` prompts of it. */
export const layer = (options: Options): Layer.Layer<Dataset, DatasetError> => Layer.scoped(Dataset, make(options))
