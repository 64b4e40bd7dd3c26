/** Which batches still have sessions to come or in flight. */
import type { Unit } from "./Resume.ts"

/** A batch is over when its last session is, and the next one has begun or nothing is left. */
export class OpenBatches {
  private readonly inFlight = new Map<number, number>()
  private newest = -1
  private exhausted = false

  /** A session starts; gives the batch that is over with that, if one is. */
  start({ batch }: Unit): number | undefined {
    const before = this.newest
    this.newest = batch
    this.inFlight.set(batch, (this.inFlight.get(batch) ?? 0) + 1)
    return before >= 0 && before !== batch && this.idle(before) ? before : undefined
  }

  /** A session is over; gives its batch if that is over too. */
  end({ batch }: Unit): number | undefined {
    const left = (this.inFlight.get(batch) ?? 1) - 1
    if (left > 0) this.inFlight.set(batch, left)
    else this.inFlight.delete(batch)
    return left === 0 && (batch !== this.newest || this.exhausted) ? batch : undefined
  }

  /** No session starts any more; gives the last batch if that is over. */
  finish(): number | undefined {
    if (this.exhausted) return undefined
    this.exhausted = true
    return this.newest >= 0 && this.idle(this.newest) ? this.newest : undefined
  }

  private idle(batch: number): boolean {
    return !this.inFlight.has(batch)
  }
}
