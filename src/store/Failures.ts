/** Every failed attempt of a run, in order of time: whose it was and of what kind. */
import * as Column from "../dataset/Column.ts"
import type { ContentKey } from "../dataset/ContentKey.ts"

export interface Entry {
  readonly key: ContentKey
  readonly occurrence: number
  readonly sample: number
  /** Such as `rate_limited`. */
  readonly kind: string
}

/** Entries by number, in the order in which they were found or saved. Where they lie in their file is not kept. */
export class Failures {
  private readonly highs = Column.offsets()
  private readonly lows = Column.counts()
  private readonly occurrences = Column.places()
  private readonly samples = Column.counts()
  private readonly kinds = Column.counts()
  private readonly names: Array<string> = []
  private readonly codes = new Map<string, number>()

  get size(): number {
    return this.highs.length
  }

  add({ key, occurrence, sample, kind }: Entry): void {
    this.highs.push(key.high)
    this.lows.push(key.low)
    this.occurrences.push(occurrence)
    this.samples.push(sample)
    this.kinds.push(this.codeOf(kind))
  }

  get(at: number): Entry {
    return {
      key: { high: this.highs.get(at), low: this.lows.get(at) },
      occurrence: this.occurrences.get(at),
      sample: this.samples.get(at),
      kind: this.nameOf(this.kind(at))
    }
  }

  /** The kind of an entry as a small number. */
  kind(at: number): number {
    return this.kinds.get(at)
  }

  /** The word for such a number. */
  nameOf(code: number): string {
    return this.names[code] ?? ""
  }

  private codeOf(name: string): number {
    const known = this.codes.get(name)
    if (known !== undefined) return known
    this.codes.set(name, this.names.length)
    return this.names.push(name) - 1
  }
}
