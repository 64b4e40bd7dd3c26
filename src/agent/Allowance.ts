/** What a session may still spend of the budget of its prompt, as far as the next call can be told from the last. */
import type { Answer, Usage } from "../model/Model.ts"

/** US dollars, and tokens, that a session may use; null for no limit. */
export interface Limits {
  readonly maxCost: number | null
  readonly maxTokens: number | null
}

/** The limits as options give them. */
export const limitsOf = (given: {
  readonly max_cost_per_prompt: number | null
  readonly max_tokens_per_prompt: number | null
}): Limits => ({ maxCost: given.max_cost_per_prompt, maxTokens: given.max_tokens_per_prompt })

/** Sums of money that differ by less are equal. */
const tolerance = 1e-9
/** Characters of a tool result that make a token. */
const charactersPerToken = 4

/** Tool results that are so large beside the last call make the next one larger by what they hold; below, what calls have grown by so far counts. */
const large = 0.5

interface Spending {
  readonly tokens: number
  readonly cost: number
}

/** Grows with its session. The first call always fits. */
export class Allowance {
  private last: Usage | undefined
  /** What the last call spent more than the one before. */
  private growth: Spending = { tokens: 0, cost: 0 }
  private completion = 0
  /** Tokens that the conversation has grown by since the last call. */
  private answered = 0
  private results = 0

  constructor(private readonly limits: Limits) {}

  /** A call brought this answer, which is `kept` in the conversation or not. */
  received({ usage }: Pick<Answer, "usage">, kept: boolean): void {
    const { total, cost_usd } = this.last ?? usage
    this.growth = { tokens: Math.max(0, usage.total - total), cost: Math.max(0, usage.cost_usd - cost_usd) }
    this.last = usage
    this.completion = Math.max(this.completion, usage.completion)
    this.answered = kept ? usage.completion : 0
    this.results = 0
  }

  /** A tool gave a result that the next call sends. */
  called(text: string): void {
    this.results += text.length / charactersPerToken
  }

  /** Calls that still fit after what was spent: none, one, or more than one. */
  left(spent: Pick<Usage, "total" | "cost_usd">): "none" | "one" | "more" {
    if (this.last === undefined || (this.limits.maxCost === null && this.limits.maxTokens === null)) return "more"
    const next = this.estimate(this.last, 1)
    const now = { tokens: spent.total + next.tokens, cost: spent.cost_usd + next.cost }
    if (!this.fits(now)) return "none"
    const after = this.estimate(this.last, 2)
    return this.fits({ tokens: now.tokens + after.tokens, cost: now.cost + after.cost }) ? "more" : "one"
  }

  /** What the call so many after the last could spend; the results of each are taken to be as long as those at hand. */
  private estimate(last: Usage, calls: number): Spending {
    const tokens = last.total + calls * this.growth.tokens
    const cost = last.cost_usd + calls * this.growth.cost
    if (this.results <= last.total * large) return { tokens, cost }
    const size = last.prompt + this.completion + calls * (this.answered + this.results)
    return {
      tokens: Math.max(tokens, size),
      cost: Math.max(cost, last.total === 0 ? 0 : (size * last.cost_usd) / last.total)
    }
  }

  private fits(spending: Spending): boolean {
    return fits(this.limits, spending)
  }
}

const fits = ({ maxCost, maxTokens }: Limits, { tokens, cost }: Spending): boolean =>
  (maxTokens === null || tokens <= maxTokens) && (maxCost === null || cost <= maxCost + tolerance)

/** Whether so many questions of a tool fit after what was spent, each as large as what an answer of the session took so far, and `beside` too. */
export const affords = (
  limits: Limits,
  { usage, apiCalls }: { readonly usage: Pick<Usage, "total" | "cost_usd">; readonly apiCalls: number },
  questions: number,
  beside: Pick<Usage, "total" | "cost_usd"> = { total: 0, cost_usd: 0 }
): boolean => {
  const share = 1 + questions / Math.max(1, apiCalls)
  return fits(limits, { tokens: usage.total * share + beside.total, cost: usage.cost_usd * share + beside.cost_usd })
}
