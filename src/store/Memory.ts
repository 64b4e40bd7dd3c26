/** A store in memory, for tests and for programs that keep rows elsewhere: nothing outlives it. */
import { Effect, Layer, Ref } from "effect"
import { encodeLine } from "../trajectory/Trajectory.ts"
import { Books } from "./Books.ts"
import * as Merge from "./Merge.ts"
import { type Entry, Store, type StoreService } from "./Store.ts"

/** What a memory store was given, for the program that reads it. */
export interface Contents {
  readonly entries: ReadonlyArray<Entry>
  /** Lines of the merged data set, after the run. */
  readonly trajectories: ReadonlyArray<string>
}

/** A store of its own each time it is built; `contents` is kept up to date for the caller. */
export const layer = (options: {
  readonly toolNames: ReadonlyArray<string>
  readonly contents: Ref.Ref<Contents>
}): Layer.Layer<Store> =>
  Layer.sync(Store, () => {
    const books = new Books(options.toolNames)
    const lines: Array<string> = []
    const service: StoreService = {
      location: "memory",
      toolNames: books.toolNames,
      ledger: books.ledger,
      failures: books.failures,
      sums: Effect.sync(() => books.sums),
      batches: Effect.sync(() => books.batches),
      nextBatch: 0,
      sessions: [],
      begin: () => Effect.void,
      save: (entry) =>
        Ref.update(options.contents, ({ entries, trajectories }) => {
          const line = entry.outcome._tag === "Failed" ? "" : encodeLine(entry.outcome.row)
          books.enter(entry, lines.length, line.length)
          if (line !== "") lines.push(line)
          return { entries: [...entries, entry], trajectories }
        }),
      closeBatch: () => Effect.void,
      merge: () =>
        Ref.modify(options.contents, ({ entries }) => {
          const order = [...Merge.order(books.ledger)]
          const trajectories = order.map((at) => lines[books.ledger.get(at).offset] ?? "")
          return [
            { rows: order.length, strays: 0 },
            { entries, trajectories }
          ]
        }),
      finish: ({ session }) => Effect.sync(() => books.enterReleased(session))
    }
    return service
  })

/** Nothing given yet. */
export const empty: Contents = { entries: [], trajectories: [] }
