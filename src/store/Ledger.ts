/** Every finished row of a run, without its text: where it lies, what prompt it answers, and what became of it. */
import * as Column from "../dataset/Column.ts"
import type { ContentKey } from "../dataset/ContentKey.ts"

/** Where a row goes: into the training data, aside for want of reasoning, or out at the merge for invented tools. */
export type Fate = "kept" | "no_reasoning" | "invalid_tools"
const fates: ReadonlyArray<Fate> = ["kept", "no_reasoning", "invalid_tools"]

export interface Entry {
  readonly key: ContentKey
  readonly occurrence: number
  readonly sample: number
  readonly fate: Fate
  /** Number of the batch file; without meaning for a discarded row. */
  readonly batch: number
  /** Bytes of the line in its file, without the line end. */
  readonly offset: number
  readonly length: number
  /** Place in the data set, or `unmatched`. */
  readonly place: number
  /** The row has the shape of another program's and is completed at the merge. */
  readonly foreign: boolean
}

/** No prompt of the data set belongs to this row. */
export const unmatched = -1

/** Entries by number, in the order in which they were found or saved. */
export class Ledger {
  private readonly highs = Column.offsets()
  private readonly lows = Column.counts()
  private readonly occurrences = Column.places()
  private readonly samples = Column.counts()
  private readonly fateCodes = Column.bytes()
  private readonly batches = Column.offsets()
  private readonly offsets = Column.offsets()
  private readonly lengths = Column.counts()
  private readonly dataPlaces = Column.places()
  private readonly foreigners = Column.bytes()

  get size(): number {
    return this.highs.length
  }

  add(entry: Entry): void {
    this.highs.push(entry.key.high)
    this.lows.push(entry.key.low)
    this.occurrences.push(entry.occurrence)
    this.samples.push(entry.sample)
    this.fateCodes.push(fates.indexOf(entry.fate))
    this.batches.push(entry.batch)
    this.offsets.push(entry.offset)
    this.lengths.push(entry.length)
    this.dataPlaces.push(entry.place)
    this.foreigners.push(entry.foreign ? 1 : 0)
  }

  get(at: number): Entry {
    return {
      key: { high: this.highs.get(at), low: this.lows.get(at) },
      occurrence: this.occurrences.get(at),
      sample: this.samples.get(at),
      fate: fates[this.fateCodes.get(at)] ?? "kept",
      batch: this.batches.get(at),
      offset: this.offsets.get(at),
      length: this.lengths.get(at),
      place: this.dataPlaces.get(at),
      foreign: this.foreigners.get(at) === 1
    }
  }

  place(at: number): number {
    return this.dataPlaces.get(at)
  }

  sample(at: number): number {
    return this.samples.get(at)
  }

  isKept(at: number): boolean {
    return this.fateCodes.get(at) === 0
  }

  setPlace(at: number, place: number): void {
    this.dataPlaces.set(at, place)
  }
}
