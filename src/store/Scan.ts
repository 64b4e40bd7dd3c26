/** Reads what earlier sessions left into the books: every finished row, every failure, and where a line is torn. */
import { appendFile, open, truncate } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Either, Option } from "effect"
import { ContentIndex } from "../dataset/ContentIndex.ts"
import * as ContentKey from "../dataset/ContentKey.ts"
import * as Lines from "../dataset/Lines.ts"
import * as Statistics from "../report/Statistics.ts"
import { Books } from "./Books.ts"
import { storeError } from "./Disk.ts"
import { unmatched } from "./Ledger.ts"
import * as RunFolder from "./RunFolder.ts"
import { decodeFailure, decodeRow } from "./StoredRow.ts"

/** How a folder is read: `mend` cuts off torn lines and ends open ones, as before anything is appended. */
export interface Options {
  readonly mend: boolean
}

interface Scanning {
  readonly books: Books
  /** Digests of the rows entered: a row that stands twice, letter for letter, counts once. */
  readonly seen: ContentIndex
}

/** What has a higher number was numbered by hand or is damaged: new batches never get as far. */
const highestBatch = 1e12

/** Takes one line; false when it cannot be read. */
type Take = (text: string, line: Lines.Line) => boolean

/** What was found at the end of a file that will be appended to. */
interface Tail {
  /** The last line is whole but has no line end. */
  readonly open: boolean
}

const isJson = (text: string): boolean => Either.isRight(Either.try((): unknown => JSON.parse(text)))

/** Without the byte-order mark that an editor may have set. */
const withoutMark = (line: Lines.Line): Lines.Line =>
  line.bytes[0] === 0xef && line.bytes[1] === 0xbb && line.bytes[2] === 0xbf
    ? { ...line, bytes: line.bytes.subarray(3), offset: line.offset + 3 }
    : line

/** Reads the lines of one file; a torn last line is cut off, other unreadable ones stay and are named. */
const scanFile = Effect.fn("Scan.file")(function* (path: string, take: Take, { mend }: Options) {
  const bad: Array<number> = []
  let torn = -1
  let openEnded = false
  const each = (given: Lines.Line): boolean => {
    const line = given.number === 1 ? withoutMark(given) : given
    const text = Buffer.from(line.bytes).toString("utf8")
    const fits = line.bytes.length === 0 || take(text, line)
    if (!fits && !line.ended && !isJson(text)) {
      torn = line.offset
      return true
    }
    if (!fits) bad.push(line.number)
    openEnded = !line.ended
    return true
  }
  yield* Effect.tryPromise({
    try: async () => {
      const file = await open(path, "r")
      await Lines.scan(Lines.contents(file, false), each).finally(() => file.close())
      if (torn >= 0 && mend) await truncate(path, torn)
    },
    catch: storeError(path)
  })
  if (torn >= 0 && mend) yield* Effect.logInfo(`${path}: cut off a torn last line; its prompt runs again`)
  if (bad.length > 0) {
    yield* Effect.logWarning(`${path}: left out ${bad.length} unreadable line(s), the first at line ${bad[0]}`)
  }
  const tail: Tail = { open: openEnded && torn < 0 }
  return tail
})

/** Enters a row of `batch`, or of the batch that it names itself. */
const takeRow =
  (scanning: Scanning, batch: number | undefined): Take =>
  (text, line) => {
    const decoded = decodeRow(text, scanning.books.toolNames)
    if (Option.isNone(decoded)) return false
    const row = decoded.value
    const digest = ContentKey.ofText(text)
    if (scanning.seen.count(digest) > 0) return true
    scanning.seen.add(digest, 0, 0)
    const { image, cwd, default_image, default_cwd, occurrence, sample, batch_num } = row.metadata
    scanning.books.learn(row)
    const fate = batch === undefined ? "no_reasoning" : scanning.books.fateOfRow(row)
    scanning.books.enterRow(
      {
        key: ContentKey.of({
          text: row.prompt,
          image: default_image ? "" : image,
          cwd: default_cwd ? "" : cwd
        }),
        occurrence,
        sample,
        fate,
        batch: batch ?? batch_num,
        offset: line.offset,
        length: line.bytes.length,
        place: unmatched,
        foreign: row.foreign
      },
      Statistics.ofRow(row, fate)
    )
    return true
  }

const takeFailure =
  (books: Books): Take =>
  (text) =>
    Option.match(decodeFailure(text), {
      onNone: () => false,
      onSome: ({ batch_num, prompt_key, occurrence, sample, kind, usage, api_calls }) => {
        books.enterFailure(
          { batch: batch_num, key: ContentKey.fromText(prompt_key), occurrence, sample, kind },
          Statistics.ofSpent(usage, api_calls)
        )
        return true
      }
    })

/** Reads a file that this session will append to, and ends its last line. */
const scanAppended = Effect.fn("Scan.appended")(function* (path: string, take: Take, options: Options) {
  const tail = yield* scanFile(path, take, options)
  if (tail.open && options.mend)
    yield* Effect.tryPromise({ try: () => appendFile(path, "\n"), catch: storeError(path) })
})

/** Enters all that lies in the folder into the books; gives the first batch number that nothing has yet. */
const enter = Effect.fn("Scan.enter")(function* (folder: string, books: Books, options: Options) {
  const scanning: Scanning = { books, seen: new ContentIndex() }
  const names = yield* RunFolder.names(folder)
  const batches = names.flatMap((name) => RunFolder.batchNumber(name) ?? []).sort((a, b) => a - b)
  for (const batch of batches) {
    yield* scanFile(join(folder, RunFolder.batchFile(batch)), takeRow(scanning, batch), options)
  }
  if (names.includes(RunFolder.discarded)) {
    yield* scanAppended(join(folder, RunFolder.discarded), takeRow(scanning, undefined), options)
  }
  if (names.includes(RunFolder.failures)) {
    yield* scanAppended(join(folder, RunFolder.failures), takeFailure(books), options)
  }
  let next = 0
  for (const batch of [...batches, ...books.batches.keys()]) {
    if (batch < highestBatch) next = Math.max(next, batch + 1)
  }
  return next
})

/** The books of a folder whose rows count these tools, and the first batch number that nothing has yet. */
export const run = Effect.fn("Scan.run")(function* (
  folder: string,
  toolNames: ReadonlyArray<string>,
  options: Options = { mend: true }
) {
  const books = new Books(toolNames)
  const nextBatch = yield* enter(folder, books, options)
  if (books.learned.size === 0) return { books, nextBatch }
  // What no row is to lose: read again with the tools that were found.
  const whole = new Books([...toolNames, ...books.learned])
  return { books: whole, nextBatch: yield* enter(folder, whole, options) }
})
