/** What an endpoint's rate limits leave for calls to come, read from its answers before a limit is hit. Pure. */
import type { RateLimit } from "../Model.ts"

interface Reading {
  /** The call whose answer told it. */
  readonly call: number
  /** The last call that still fits. */
  readonly last: number
  /** Milliseconds since the epoch. */
  readonly resetAt: number
}

/** Weight of the newest call in the mean of tokens a call. */
const weight = 0.1

export class Quota {
  private readonly readings = new Map<RateLimit["of"], Reading>()
  private tokensPerCall = 0

  /** Takes what the answer of this call says; `tokens`: what the call used, 0 where that is not known. */
  read(call: number, limits: ReadonlyArray<RateLimit>, tokens: number): void {
    if (tokens > 0)
      this.tokensPerCall = this.tokensPerCall === 0 ? tokens : this.tokensPerCall * (1 - weight) + tokens * weight
    for (const { of, remaining, resetAt } of limits) {
      // An endpoint counts a call as it comes in: what it leaves is for those begun after this one.
      const known = this.readings.get(of)
      if (known !== undefined && known.call > call) continue
      // One call finds out what calls use.
      const tokensPerCall = this.tokensPerCall === 0 ? Math.max(1, remaining) : this.tokensPerCall
      const calls = of === "requests" ? remaining : remaining / tokensPerCall
      this.readings.set(of, { call, last: call + Math.floor(calls), resetAt })
    }
  }

  /** When the call of this number may be begun, milliseconds since the epoch; 0 when at once. */
  opens(call: number, now: number): number {
    let at = 0
    for (const [of, { last, resetAt }] of this.readings) {
      if (resetAt <= now) this.readings.delete(of)
      else if (call > last) at = Math.max(at, resetAt)
    }
    return at
  }
}
