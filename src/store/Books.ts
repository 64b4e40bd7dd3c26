/** What a store knows of its run without opening a file: the ledger, the sums and the count of each batch. */
import * as Statistics from "../report/Statistics.ts"
import type { Outcome } from "../trajectory/Outcome.ts"
import { inventedTools } from "../trajectory/Quality.ts"
import { type Entry as Failure, Failures } from "./Failures.ts"
import { type Fate, Ledger } from "./Ledger.ts"
import type { BatchStats, Entry, SessionRecord } from "./Store.ts"
import { unknownTools } from "./StoredRow.ts"

const noStats: BatchStats = { processed: 0, kept: 0, discarded: 0, failed: 0 }

/** Grows by one entry an outcome. */
export class Books {
  readonly ledger = new Ledger()
  /** Failed attempts of all sessions. */
  readonly failures = new Failures()
  readonly batches = new Map<number, BatchStats>()
  sums: Statistics.Statistics = Statistics.empty
  /** Tools of rows that no record of a session tells of, as when run.json is lost. */
  readonly learned = new Set<string>()
  private readonly known: ReadonlySet<string>

  constructor(
    /** Every tool that a toolset of any session of the run has. */
    readonly toolNames: ReadonlyArray<string>
  ) {
    this.known = new Set(toolNames)
  }

  /** Notes the tools that a row was offered and that are not known. */
  learn(row: Parameters<typeof unknownTools>[0]): void {
    for (const name of unknownTools(row, this.known)) this.learned.add(name)
  }

  /** Enters an outcome that is safe: its row lies at `offset` and takes `length` bytes. */
  enter(entry: Entry, offset: number, length: number): void {
    const { outcome } = entry
    if (outcome._tag === "Failed") {
      const { kind, usage, api_calls } = outcome.failure
      this.enterFailure({ ...entry, kind }, Statistics.ofSpent(usage, api_calls))
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
  enterFailure(failure: Failure & Pick<Entry, "batch">, spent: Statistics.Statistics): void {
    this.failures.add(failure)
    this.count(failure.batch, { failed: 1 })
    this.sums = Statistics.add(this.sums, spent)
  }

  /** Enters what the prompts spent that were released in flight: no row and no failure tells of it. */
  enterReleased({ released, released_calls }: Pick<SessionRecord, "released" | "released_calls">): void {
    this.sums = Statistics.add(this.sums, Statistics.ofSpent(released, released_calls))
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
