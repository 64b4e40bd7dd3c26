/** The outcomes of one session of work as they come: counts, what they spent, and failures that come in a row. */
import { Schema } from "effect"
import type { Event } from "../events/Events.ts"
import { addUsage, kindOf, noUsage, type Usage } from "../model/Model.ts"
import type { Outcome } from "../trajectory/Outcome.ts"

/** So many failures of one kind in a row that the run is taken to be unable to go on. */
export class TooManyFailures extends Schema.TaggedError<TooManyFailures>()("TooManyFailures", {
  kind: Schema.String,
  count: Schema.Int,
  last: Schema.String
}) {
  override get message(): string {
    const { kind, count, last } = this
    return `${count} failures in a row of the kind ${kind} (--max_consecutive_failures=${count}), the last: ${last}`
  }
}

/** Counts of this session of work. */
export class Tally {
  readonly failures = new Map<string, number>()
  hopeless = 0
  kept = 0
  discarded = 0
  /** What all outcomes together have spent. */
  spent = noUsage
  private warned = false
  /** Failures of one kind since the last success or failure of another. */
  private streak = { kind: "", count: 0 }

  constructor(private readonly longestStreak: number) {}

  /** What ends the run, if this outcome does. */
  add(outcome: Outcome): TooManyFailures | undefined {
    if (outcome._tag !== "Failed") {
      if (outcome._tag === "Kept") this.kept++
      else this.discarded++
      this.spent = addUsage(this.spent, outcome.row.metadata.usage)
      this.streak = { kind: "", count: 0 }
      return undefined
    }
    const { kind, message, retryable, usage } = outcome.failure
    this.spent = addUsage(this.spent, usage)
    if (!retryable) this.hopeless++
    this.failures.set(kind, (this.failures.get(kind) ?? 0) + 1)
    // The budget ends the run by itself, in its own words.
    if (kind === kindOf("BudgetReached")) return undefined
    this.streak = { kind, count: kind === this.streak.kind ? this.streak.count + 1 : 1 }
    const { count } = this.streak
    return count < this.longestStreak ? undefined : new TooManyFailures({ kind, count, last: message })
  }

  /** True once, as soon as so many sessions in a row were all discarded. */
  warnsOfDiscards(): boolean {
    if (this.warned || this.kept > 0 || this.discarded < 2) return false
    this.warned = true
    return true
  }
}

/** A session's end as an event tells it; `undefined` is one that was released. */
export const doneEvent = (
  whose: { readonly prompt_index: number; readonly sample: number; readonly batch_num: number },
  outcome: Outcome | undefined,
  took: number
): Event => {
  const told = (word: "kept" | "discarded" | "failed" | "released", calls: number, usage: Usage, kind = ""): Event => ({
    ...{ ...whose, event: "prompt_done", outcome: word, kind },
    ...{ api_calls: calls, tokens: usage.total, cost_usd: usage.cost_usd, took }
  })
  if (outcome === undefined) return told("released", 0, noUsage)
  if (outcome._tag === "Failed") {
    const { api_calls, usage, kind } = outcome.failure
    return told("failed", api_calls, usage, kind)
  }
  return told(outcome._tag === "Kept" ? "kept" : "discarded", outcome.row.api_calls, outcome.row.metadata.usage)
}
