/** What is still to do: finished rows are matched to the prompts of the data set by content, counted. */
import * as Column from "../dataset/Column.ts"
import type { ContentIndex } from "../dataset/ContentIndex.ts"
import { runsAgain } from "../trajectory/Outcome.ts"
import type { Failures } from "./Failures.ts"
import { type Ledger, unmatched } from "./Ledger.ts"

/** Bits in one part of the table of sessions. */
const partSize = 1 << 15

/** A set of sessions, such as those that are done: one bit for each sample of each prompt, where there are any. */
export class Done {
  private readonly parts = new Map<number, Uint8Array>()
  private total = 0
  constructor(
    /** Prompts of the data set. */
    readonly prompts: number,
    /** Samples a prompt. */
    readonly samples: number
  ) {}

  /** Sessions done so far. */
  get count(): number {
    return this.total
  }

  has(place: number, sample: number): boolean {
    const at = place * this.samples + sample
    const part = this.parts.get(Math.floor(at / partSize))
    const bit = at % partSize
    return part !== undefined && ((part[bit >>> 3] ?? 0) & (1 << (bit & 7))) !== 0
  }

  mark(place: number, sample: number): void {
    if (sample >= this.samples || this.has(place, sample)) return
    const at = place * this.samples + sample
    const part = this.parts.get(Math.floor(at / partSize)) ?? new Uint8Array(partSize / 8)
    this.parts.set(Math.floor(at / partSize), part)
    const bit = at % partSize
    part[bit >>> 3] = (part[bit >>> 3] ?? 0) | (1 << (bit & 7))
    this.total++
  }

  /** Whether every sample of the prompt is done. */
  hasAll(place: number): boolean {
    for (let sample = 0; sample < this.samples; sample++) if (!this.has(place, sample)) return false
    return true
  }

  /** The places of finished prompts as `[first, last]` ranges. */
  ranges(): ReadonlyArray<readonly [number, number]> {
    const ranges: Array<readonly [number, number]> = []
    let first = -1
    for (let place = 0; place <= this.prompts; place++) {
      const done = place < this.prompts && this.hasAll(place)
      if (done && first < 0) first = place
      if (!done && first >= 0) {
        ranges.push([first, place - 1])
        first = -1
      }
    }
    return ranges
  }
}

/**
 * Gives every row of the ledger its place in the data set. A row takes the occurrence it was made for; where that is not
 * to be had, the first free one of the same content; where none is free, its prompt is no longer in the data set.
 */
export const match = (ledger: Ledger, index: ContentIndex, samples: number): Done => {
  const width = widest(ledger, samples)
  const taken = new Done(index.size, width)
  const done = new Done(index.size, samples)
  const take = (at: number, place: number, sample: number) => {
    taken.mark(place, sample)
    done.mark(place, sample)
    ledger.setPlace(at, place)
  }
  const others: Array<number> = []
  for (let at = 0; at < ledger.size; at++) {
    const { key, occurrence, sample } = ledger.get(at)
    const place = index.find(key, occurrence)
    if (place >= 0 && !taken.has(place, sample)) take(at, place, sample)
    else others.push(at)
  }
  const next = new Map<string, number>()
  for (const at of others) {
    const { key, sample } = ledger.get(at)
    const name = `${key.high}|${key.low}|${sample}`
    const count = index.count(key)
    let occurrence = next.get(name) ?? 0
    while (occurrence < count && taken.has(index.find(key, occurrence), sample)) occurrence++
    next.set(name, occurrence)
    if (occurrence < count) take(at, index.find(key, occurrence), sample)
    else ledger.setPlace(at, unmatched)
  }
  return done
}

const widest = (ledger: Ledger, samples: number): number => {
  let width = samples
  for (let at = 0; at < ledger.size; at++) width = Math.max(width, ledger.sample(at) + 1)
  return width
}

/** Sessions that failed and are not done, as they stood when this was made: how often, and of what kind the last time. */
export class Failed {
  /** Numbers in the columns by session. */
  private readonly slots = new Map<number, number>()
  private readonly times = Column.counts()
  private readonly kinds = Column.counts()
  constructor(
    /** Samples a prompt. */
    private readonly samples: number,
    private readonly nameOf: (kind: number) => string
  ) {}

  /** How many sessions these are. */
  get count(): number {
    return this.slots.size
  }

  /** One more failed attempt at a session, the latest so far. */
  note(place: number, sample: number, kind: number): void {
    const slot = this.slotOf(place, sample)
    if (slot === undefined) {
      this.slots.set(place * this.samples + sample, this.times.length)
      this.times.push(1)
      this.kinds.push(kind)
    } else {
      this.times.set(slot, this.times.get(slot) + 1)
      this.kinds.set(slot, kind)
    }
  }

  /** How many attempts at a session failed. */
  attempts(place: number, sample: number): number {
    const slot = this.slotOf(place, sample)
    return slot === undefined ? 0 : this.times.get(slot)
  }

  /** Whether a session that is not done is to run; `chosen` are the kinds of `--retry_failed`, null where it is not given. */
  runs(place: number, sample: number, chosen: ReadonlyArray<string> | null): boolean {
    const slot = this.slotOf(place, sample)
    return slot === undefined || runsAgain(this.nameOf(this.kinds.get(slot)), chosen)
  }

  /** How many sessions do not run again, by the kind of their last failure. */
  leftOut(chosen: ReadonlyArray<string> | null): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (let slot = 0; slot < this.kinds.length; slot++) {
      const kind = this.nameOf(this.kinds.get(slot))
      if (!runsAgain(kind, chosen)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
    return counts
  }

  private slotOf(place: number, sample: number): number | undefined {
    return this.slots.get(place * this.samples + sample)
  }
}

/** Which sessions of the data set failed, in whatever session of work, and are not done since. What fails later changes nothing in it. */
export const failed = (failures: Failures, index: ContentIndex, done: Done): Failed => {
  const found = new Failed(done.samples, (kind) => failures.nameOf(kind))
  for (let at = 0; at < failures.size; at++) {
    const { key, occurrence, sample } = failures.get(at)
    const place = index.find(key, occurrence)
    if (place >= 0 && sample < done.samples && !done.has(place, sample)) found.note(place, sample, failures.kind(at))
  }
  return found
}

/** One session to run. */
export interface Unit {
  readonly place: number
  readonly sample: number
  /** Number of its batch file. */
  readonly batch: number
  /** Which attempt at this session it is, from 1. */
  readonly attempt: number
}

/**
 * The sessions to run, in the order of the data set, in batches of `batchSize` prompts numbered from `firstBatch`: what is not
 * done, without those whose last failure is of a kind that does not run again.
 */
export function* remaining(
  done: Done,
  failed: Failed,
  retryFailed: ReadonlyArray<string> | null,
  batchSize: number,
  firstBatch: number
): Generator<Unit> {
  let prompts = 0
  for (let place = 0; place < done.prompts; place++) {
    let batch = -1
    for (let sample = 0; sample < done.samples; sample++) {
      if (done.has(place, sample) || !failed.runs(place, sample, retryFailed)) continue
      if (batch < 0) batch = firstBatch + Math.floor(prompts++ / batchSize)
      yield { place, sample, batch, attempt: failed.attempts(place, sample) + 1 }
    }
  }
}
