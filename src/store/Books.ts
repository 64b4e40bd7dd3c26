/** What a store knows of its run without opening a file: the ledger, the sums and the count of each batch. */
import * as Statistics from "../report/Statistics.ts"
import type { Outcome } from "../trajectory/Outcome.ts"
import { inventedTools } from "../trajectory/Quality.ts"
import { type Fate, Ledger, unmatched } from "./Ledger.ts"
import type { BatchStats, Entry } from "./Store.ts"

const noStats: BatchStats = { processed: 0, kept: 0, discarded: 0, failed: 0 }

/** Grows by one entry an outcome. */
export class Books {
  readonly ledger = new Ledger()
  /** Failed attempts of all sessions; where they lie in their file is not kept. */
  readonly failures = new Ledger()
  readonly batches = new Map<number, BatchStats>()
  sums: Statistics.Statistics = Statistics.empty
  private readonly known: ReadonlySet<string>

  constructor(
    /** Every tool that a toolset of the run has. */
    readonly toolNames: ReadonlyArray<string>
  ) {
    this.known = new Set(toolNames)
  }

  /** Enters an outcome that is safe: its row lies at `offset` and takes `length` bytes. */
  enter(entry: Entry, offset: number, length: number): void {
    const { outcome } = entry
    if (outcome._tag === "Failed") {
      this.enterFailure(entry, outcome.failure.usage)
      return
    }
    const fate = this.fateOf(outcome)
    this.enterRow({ ...entry, offset, length, fate, foreign: false }, Statistics.ofRow(outcome.row, fate))
  }

  /** Enters a finished row. */
  enterRow(entry: Parameters<Ledger["add"]>[0], figures: Statistics.Statistics): void {
    this.ledger.add(entry)
    this.count(entry.batch, entry.fate === "no_reasoning" ? { discarded: 1 } : { kept: 1 })
    this.sums = Statistics.add(this.sums, figures)
  }

  /** Enters what an attempt spent in vain, and whose it was. */
  enterFailure(
    { batch, ...whose }: Pick<Entry, "key" | "occurrence" | "sample" | "batch">,
    usage: Parameters<typeof Statistics.ofSpent>[0]
  ): void {
    const { key, occurrence, sample } = whose
    this.failures.add({
      ...{ key, occurrence, sample, batch },
      ...{ fate: "no_reasoning", offset: 0, length: 0, place: unmatched, foreign: false }
    })
    this.count(batch, { failed: 1 })
    this.sums = Statistics.add(this.sums, Statistics.ofSpent(usage))
  }

  /** Where a row of the batch files belongs. */
  fateOfRow(row: Parameters<typeof inventedTools>[0]): Fate {
    return inventedTools(row, this.known).length > 0 ? "invalid_tools" : "kept"
  }

  private fateOf(outcome: Exclude<Outcome, { _tag: "Failed" }>): Fate {
    return outcome._tag === "Discarded" ? "no_reasoning" : this.fateOfRow(outcome.row)
  }

  private count(batch: number, more: Partial<BatchStats>): void {
    const { processed, kept, discarded, failed } = this.batches.get(batch) ?? noStats
    this.batches.set(batch, {
      processed: processed + 1,
      kept: kept + (more.kept ?? 0),
      discarded: discarded + (more.discarded ?? 0),
      failed: failed + (more.failed ?? 0)
    })
  }
}
