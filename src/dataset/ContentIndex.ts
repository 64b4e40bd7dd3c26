/** A data set without its texts: where each prompt lies in the file and which prompts are equal, in some forty bytes a row. */
import * as Column from "./Column.ts"
import type { ContentKey } from "./ContentKey.ts"

const mix = (high: number, low: number, occurrence: number): number => {
  let h = Math.imul(low ^ (high >>> 0), 0x9e3779b1) ^ Math.imul((high / 0x100000000) >>> 0, 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 15) ^ Math.imul(occurrence + 1, 0xc2b2ae35), 0x27d4eb2f)
  return (h ^ (h >>> 13)) >>> 0
}

/** An open-addressing table of places; what a place stands for is known by the index alone. */
class Table {
  private slots = new Uint32Array(2048)
  private used = 0
  constructor(private readonly hashOf: (place: number) => number) {}

  find(hash: number, same: (place: number) => boolean): number {
    const mask = this.slots.length - 1
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const entry = this.slots[at] ?? 0
      if (entry === 0) return -1
      if (same(entry - 1)) return entry - 1
    }
  }

  /** Puts `place` in the stead of the place that `same` accepts, or beside the others. */
  put(hash: number, place: number, same: (place: number) => boolean): void {
    if (this.used * 2 >= this.slots.length) this.grow()
    const mask = this.slots.length - 1
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const entry = this.slots[at] ?? 0
      if (entry !== 0 && !same(entry - 1)) continue
      if (entry === 0) this.used++
      this.slots[at] = place + 1
      return
    }
  }

  private grow(): void {
    const old = this.slots
    this.slots = new Uint32Array(old.length * 2)
    this.used = 0
    for (const entry of old) if (entry !== 0) this.put(this.hashOf(entry - 1), entry - 1, () => false)
  }
}

/** Rows by their place, 0 to `size` - 1; equal rows are told apart by their occurrence, 0, 1, 2, … */
export class ContentIndex {
  private readonly offsets = Column.offsets()
  private readonly lengths = Column.counts()
  private readonly highs = Column.offsets()
  private readonly lows = Column.counts()
  private readonly occurrences = Column.counts()
  private readonly latest = new Table((place) => mix(this.highs.get(place), this.lows.get(place), -1))
  private readonly exact = new Table((place) =>
    mix(this.highs.get(place), this.lows.get(place), this.occurrences.get(place))
  )

  get size(): number {
    return this.offsets.length
  }

  /** Adds the next row: `offset` and `length` in bytes of the file. */
  add(key: ContentKey, offset: number, length: number): void {
    const place = this.size
    const occurrence = this.count(key)
    this.offsets.push(offset)
    this.lengths.push(length)
    this.highs.push(key.high)
    this.lows.push(key.low)
    this.occurrences.push(occurrence)
    this.latest.put(mix(key.high, key.low, -1), place, (other) => this.matches(other, key))
    this.exact.put(mix(key.high, key.low, occurrence), place, () => false)
  }

  /** How many rows have this content. */
  count(key: ContentKey): number {
    const last = this.latest.find(mix(key.high, key.low, -1), (place) => this.matches(place, key))
    return last < 0 ? 0 : this.occurrences.get(last) + 1
  }

  /** The place of one occurrence of a content, or -1. */
  find(key: ContentKey, occurrence: number): number {
    return this.exact.find(
      mix(key.high, key.low, occurrence),
      (place) => this.occurrences.get(place) === occurrence && this.matches(place, key)
    )
  }

  key(place: number): ContentKey {
    return { high: this.highs.get(place), low: this.lows.get(place) }
  }

  occurrence(place: number): number {
    return this.occurrences.get(place)
  }

  offset(place: number): number {
    return this.offsets.get(place)
  }

  length(place: number): number {
    return this.lengths.get(place)
  }

  private matches(place: number, key: ContentKey): boolean {
    return this.highs.get(place) === key.high && this.lows.get(place) === key.low
  }
}
