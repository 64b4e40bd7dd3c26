/** The outcomes of one session of work as they come: counts, what they spent, and failures that come in a row. */
import { Schema } from "effect"
import type { Event } from "../events/Events.ts"
import type { Spent } from "../model/Budget.ts"
import { addUsage, noUsage, type Usage } from "../model/Model.ts"
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
  private spent: Spent = { usage: noUsage, calls: 0 }
  private warned = false
  /** Failures of one kind since the last success or failure of another. */
  private streak = { kind: "", count: 0 }

  constructor(private readonly longestStreak: number) {}

  /** What ends the run, if this outcome does. */
  add(outcome: Outcome): TooManyFailures | undefined {
    if (outcome._tag !== "Failed") {
      if (outcome._tag === "Kept") this.kept++
      else this.discarded++
      this.spend(outcome.row.metadata.usage, outcome.row.api_calls)
      this.streak = { kind: "", count: 0 }
      return undefined
    }
    const { kind, message, retryable, usage, api_calls } = outcome.failure
    this.spend(usage, api_calls)
    if (!retryable) this.hopeless++
    this.failures.set(kind, (this.failures.get(kind) ?? 0) + 1)
    this.streak = { kind, count: kind === this.streak.kind ? this.streak.count + 1 : 1 }
    const { count } = this.streak
    return count < this.longestStreak ? undefined : new TooManyFailures({ kind, count, last: message })
  }

  private spend(usage: Usage, calls: number): void {
    this.spent = { usage: addUsage(this.spent.usage, usage), calls: this.spent.calls + calls }
  }

  /** The part of `all` that stands in no outcome: what prompts had spent that were released in flight. */
  released(all: Spent): Spent {
    const rest = (of: number, stands: number): number => Math.max(0, Math.round((of - stands) * 1e9) / 1e9)
    const { usage, calls } = this.spent
    return {
      usage: {
        prompt: rest(all.usage.prompt, usage.prompt),
        completion: rest(all.usage.completion, usage.completion),
        reasoning: rest(all.usage.reasoning, usage.reasoning),
        cached: rest(all.usage.cached, usage.cached),
        total: rest(all.usage.total, usage.total),
        cost_usd: rest(all.usage.cost_usd, usage.cost_usd)
      },
      calls: rest(all.calls, calls)
    }
  }

  /** Said once, as soon as so many sessions in a row were all discarded; empty otherwise. */
  warning(): string {
    if (this.warned || this.kept > 0 || this.discarded < 2) return ""
    this.warned = true
    return `all ${this.discarded} sessions so far were discarded: no turn holds reasoning. To keep such rows from now on give --reasoning_filter=off (what was discarded stays in discarded.jsonl, and is not run again); to have the model reason give --reasoning_effort`
  }
}

/** A session's end as an event tells it; `undefined` is one that was released. */
export const doneEvent = (
  whose: { readonly prompt_index: number; readonly sample: number; readonly batch_num: number },
  outcome: Outcome | undefined,
  took: number
): Event => {
  const told = (word: "kept" | "discarded" | "failed" | "released", calls: number, usage: Usage, kind = ""): Event => ({
    event: "prompt_done",
    prompt_index: whose.prompt_index,
    sample: whose.sample,
    batch_num: whose.batch_num,
    outcome: word,
    kind,
    api_calls: calls,
    tokens: usage.total,
    cost_usd: usage.cost_usd,
    took
  })
  if (outcome === undefined) return told("released", 0, noUsage)
  if (outcome._tag === "Failed") {
    const { api_calls, usage, kind } = outcome.failure
    return told("failed", api_calls, usage, kind)
  }
  return told(outcome._tag === "Kept" ? "kept" : "discarded", outcome.row.api_calls, outcome.row.metadata.usage)
}
