/** A store in a run folder: batch files of rows, and everything made from them. */
import { join } from "node:path"
import { Clock, Duration, Effect, Layer, Queue, Ref } from "effect"
import { encodeLine, rowEncoder } from "../trajectory/Trajectory.ts"
import type { Books } from "./Books.ts"
import * as Checkpoint from "./Checkpoint.ts"
import { folderError, makeFolder, replace, replaceWith } from "./Disk.ts"
import * as Lock from "./Lock.ts"
import * as Merge from "./Merge.ts"
import type { Done } from "./Resume.ts"
import * as RowReader from "./RowReader.ts"
import * as RunFolder from "./RunFolder.ts"
import * as Scan from "./Scan.ts"
import * as Session from "./Session.ts"
import { type Closing, type Entry, type SessionRecord, Store, StoreError, type StoreService } from "./Store.ts"
import * as Writer from "./Writer.ts"

export interface Options {
  /** The run folder; made with its parents where it is not there. */
  readonly folder: string
  readonly runName: string
  /** Whether a folder that holds results is gone on with. */
  readonly resume: boolean
  /** Every tool that a toolset of this session has; those of earlier ones are read from their records. */
  readonly toolNames: ReadonlyArray<string>
}

/** A checkpoint may take one part in this many of a run's time. */
const pace = 30

/** A run whose files are in the way of its own is not begun: results without `resume`, and what no file of ours can replace. */
export const refuse = Effect.fn("Jsonl.refuse")(function* ({
  folder,
  runName,
  resume
}: Pick<Options, "folder" | "runName" | "resume">) {
  const { irregular, results, batches } = yield* RunFolder.look(folder)
  if (irregular !== undefined) {
    return yield* new StoreError({
      reason: "Other",
      detail: `--run_name: ${join(folder, irregular)} is no regular file, and a file of that name belongs to the run; move it away`
    })
  }
  if (!resume && results.length > 0) {
    return yield* new StoreError({
      reason: "Occupied",
      detail: `--run_name: ${folder} holds results already (${results[0]}); go on with it by --resume, or give another name than ${runName}`
    })
  }
  if (batches === 0 && results.includes(RunFolder.trajectories)) {
    return yield* new StoreError({
      reason: "Occupied",
      detail: `--resume: ${folder} has ${RunFolder.trajectories}, but no rows in batch files to make it from; bring them back, or move it away to run all prompts anew`
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
  const { ledger, toolNames } = books
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
        const { place, foreign } = ledger.get(at)
        if (place < 0) strays++
        return foreign ? Merge.completed(line, toolNames, place) : Merge.withPlace(line, place)
      },
      to: file
    })
  }).pipe(Effect.map(() => ({ rows: order.length, strays })))
}

const make = (options: Options) =>
  Effect.gen(function* () {
    const { folder, runName } = options
    yield* Effect.tryPromise({ try: () => makeFolder(folder), catch: folderError(folder) })
    yield* Lock.hold(folder)
    yield* refuse(options)
    const sessions = yield* RunFolder.sessions(folder)
    const { books, nextBatch } = yield* Scan.run(folder, Session.toolNames(sessions, options.toolNames))
    for (const session of sessions) books.enterReleased(session)
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
      toolNames: books.toolNames,
      ledger: books.ledger,
      failures: books.failures,
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
        ).pipe(Effect.tap(() => Effect.sync(() => books.enterReleased(session))))
    }
    return service
  })

/** The store of one run folder, held by this process alone for as long as the layer lives. */
export const layer = (options: Options): Layer.Layer<Store, StoreError> => Layer.scoped(Store, make(options))
