/** What a run would ask of its endpoint and cost, as far as that can be told before. Pure. */
import type { Price, Settings } from "../../RunConfig.ts"
import type * as Statistics from "../../report/Statistics.ts"

/** Means of one session. */
export interface Session {
  readonly calls: number
  readonly tokens: number
  /** US dollars; undefined where nothing tells. */
  readonly cost: number | undefined
}

export interface Estimate {
  readonly leastCalls: number
  readonly mostCalls: number
  /** By the finished rows; undefined where there are none. What failed attempts spent is part of it. */
  readonly session: Session | undefined
  /** Spent by earlier sessions. */
  readonly spentUsd: number
  readonly spentTokens: number
}

interface Known {
  readonly toDo: number
  readonly rows: number
  readonly sums: Statistics.Statistics
}

/** The price given for the run's model. */
export const priceOf = ({ prices, model }: Settings): Price | undefined => prices[model] ?? prices["*"]

/** Dollars that these tokens cost by the prices given; undefined where there are none. */
const priced = (config: Settings, { prompt, cached, completion }: Statistics.Tokens): number | undefined => {
  const price = priceOf(config)
  if (price === undefined) return undefined
  const kept = Math.min(cached, prompt)
  const read = (prompt - kept) * price.prompt + kept * (price.cached ?? price.prompt)
  return (read + completion * price.completion) / 1e6
}

export const make = (config: Settings, { toDo, rows, sums }: Known): Estimate => {
  const told = sums.costUsd > 0 ? sums.costUsd : priced(config, sums.tokens)
  return {
    leastCalls: toDo,
    mostCalls: toDo * config.max_turns,
    session:
      rows === 0
        ? undefined
        : {
            calls: sums.apiCalls / rows,
            tokens: sums.tokens.total / rows,
            cost: told === undefined || sums.tokens.total === 0 ? undefined : told / rows
          },
    spentUsd: told ?? 0,
    spentTokens: sums.tokens.total
  }
}
