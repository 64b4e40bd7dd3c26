/** What a run would ask of its endpoint and cost, as far as that can be told before. Pure. */
import * as Prices from "../../model/Prices.ts"
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
export const priceOf = (config: Settings): Price | undefined => Prices.priceOf(config)

export const make = (config: Settings, { toDo, rows, sums }: Known): Estimate => {
  const price = priceOf(config)
  const told = sums.costUsd > 0 ? sums.costUsd : price === undefined ? undefined : Prices.costOf(sums.tokens, price)
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
