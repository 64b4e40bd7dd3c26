/** A store in a run folder: batch files of rows, and everything made from them. */
import { join } from "node:path"
import { Clock, Duration, Effect, Layer, Queue, Ref } from "effect"
import type { Defaults } from "../dataset/ContentKey.ts"
import { encodeLine, rowEncoder } from "../trajectory/Trajectory.ts"
import { Books } from "./Books.ts"
import * as Checkpoint from "./Checkpoint.ts"
import { makeFolder, replace, replaceWith, storeError } from "./Disk.ts"
import * as Lock from "./Lock.ts"
import * as Merge from "./Merge.ts"
import type { Done } from "./Resume.ts"
import * as RowReader from "./RowReader.ts"
import * as RunFolder from "./RunFolder.ts"
import * as Scan from "./Scan.ts"
import { type Closing, type Entry, type SessionRecord, Store, StoreError, type StoreService } from "./Store.ts"
import * as Writer from "./Writer.ts"

export interface Options {
  /** The run folder; made with its parents where it is not there. */
  readonly folder: string
  readonly runName: string
  /** Whether a folder that holds results is gone on with. */
  readonly resume: boolean
  /** Every tool that a toolset of the run has. */
  readonly toolNames: ReadonlyArray<string>
  readonly defaults: Defaults
}

/** A checkpoint may take one part in this many of a run's time. */
const pace = 30

const refuseResults = Effect.fn("Jsonl.refuseResults")(function* ({ folder, runName, resume }: Options) {
  const names = yield* RunFolder.names(folder)
  const results = names.filter((name) => RunFolder.batchNumber(name) !== undefined || name === RunFolder.discarded)
  if (!resume && results.length > 0) {
    return yield* new StoreError({
      reason: "Occupied",
      detail: `--run_name: ${folder} holds results already (${results[0]}); go on with it by --resume, or give another name than ${runName}`
    })
  }
})

/** Where an outcome is written. */
const pathOf = (folder: string, entry: Entry): string => {
  switch (entry.outcome._tag) {
    case "Kept":
      return join(folder, RunFolder.batchFile(entry.batch))
    case "Discarded":
      return join(folder, RunFolder.discarded)
    case "Failed":
      return join(folder, RunFolder.failures)
  }
}

const writeMerged = (folder: string, books: Books): Effect.Effect<Merge.Merged, StoreError> => {
  const { ledger } = books
  const order = Merge.order(ledger)
  let strays = 0
  return replaceWith(join(folder, RunFolder.trajectories), async (file) => {
    await RowReader.copy({
      lines: order,
      where: (at) => {
        const { batch, offset, length } = ledger.get(at)
        return { path: join(folder, RunFolder.batchFile(batch)), offset, length }
      },
      each: (line, at) => {
        if (ledger.place(at) < 0) strays++
        return Merge.withPlace(line, ledger.place(at))
      },
      to: file
    })
  }).pipe(Effect.map(() => ({ rows: order.length, strays })))
}

const make = (options: Options) =>
  Effect.gen(function* () {
    const { folder, runName } = options
    yield* Effect.tryPromise({ try: () => makeFolder(folder), catch: storeError(folder) })
    yield* Lock.hold(folder)
    yield* refuseResults(options)
    const sessions = yield* RunFolder.sessions(folder)
    const books = new Books(options.toolNames)
    const nextBatch = yield* Scan.run(folder, books, options.defaults)
    const writer = yield* Writer.make
    const encodeRow = rowEncoder()
    const lineOf = ({ outcome }: Entry): string =>
      outcome._tag === "Failed" ? encodeLine(outcome.failure) : encodeRow(outcome.row)
    const current = yield* Ref.make<ReadonlyArray<SessionRecord>>(sessions)

    const record = (session: SessionRecord) =>
      Ref.updateAndGet(current, () => [...sessions, session]).pipe(
        Effect.flatMap((all) => RunFolder.writeSessions(folder, runName, all))
      )

    // The last checkpoint and one that is under way must not write the same new file, and none must be left half written.
    const alone = yield* Effect.makeSemaphore(1)
    const checkpoint = (done: Done) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const content = Checkpoint.make({ runName, done, batches: books.batches, now })
        return replace(join(folder, RunFolder.checkpoint), `${JSON.stringify(content)}\n`)
      }).pipe(Effect.uninterruptible, alone.withPermits(1))

    // Only the newest request counts; the pause after each makes the cost a fixed share of the run.
    const requests = yield* Queue.sliding<Done>(1)
    const keepUp = Effect.gen(function* () {
      const done = yield* Queue.take(requests)
      const [took] = yield* Effect.timed(Effect.catchAll(checkpoint(done), (error) => Effect.logWarning(error.message)))
      yield* Effect.sleep(Duration.times(took, pace))
    })
    yield* Effect.forkScoped(Effect.forever(keepUp))

    const service: StoreService = {
      location: folder,
      ledger: books.ledger,
      sums: Effect.sync(() => books.sums),
      batches: Effect.sync(() => books.batches),
      nextBatch,
      sessions,
      begin: record,
      save: (entry) =>
        writer.append(pathOf(folder, entry), lineOf(entry), ({ offset, length }) => books.enter(entry, offset, length)),
      closeBatch: (batch, done) =>
        Effect.zipRight(writer.close(join(folder, RunFolder.batchFile(batch))), Queue.offer(requests, done)),
      merge: (done) => Effect.zipRight(checkpoint(done), writeMerged(folder, books)),
      finish: ({ statistics, card, session }: Closing) =>
        Effect.all(
          [
            replace(join(folder, RunFolder.statistics), `${JSON.stringify(statistics, null, 2)}\n`),
            replace(join(folder, RunFolder.card), card),
            record(session)
          ],
          { discard: true }
        )
    }
    return service
  })

/** The store of one run folder, held by this process alone for as long as the layer lives. */
export const layer = (options: Options): Layer.Layer<Store, StoreError> => Layer.scoped(Store, make(options))
