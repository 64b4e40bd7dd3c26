/** Calls beside the model's that may cost: none that could pass the run's budget, and each counted to its session and to the run. */
import { Effect } from "effect"
import { Budget } from "../model/Budget.ts"
import type { Usage } from "../model/Model.ts"
import { ToolFailure } from "./Tool.ts"
import { ToolSession } from "./ToolSession.ts"

/** What a call gave, and what it spent; nothing spent where the service does not say. */
export interface Bill<A> {
  readonly value: A
  readonly usage: Usage
}

/** Calls at once of one service, all sessions together. */
const atOnce = 3

/** Calls of one service. Each counts in advance for the most that one has spent so far. */
export const make = () => {
  const places = Effect.unsafeMakeSemaphore(atOnce)
  const most = { cost_usd: 0, total: 0 }
  let underWay = 0
  return <A, E, R>(call: Effect.Effect<Bill<A>, E, R>): Effect.Effect<A, E | ToolFailure, R | ToolSession> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const budget = yield* Budget
        const { spent } = yield* ToolSession
        const calls = underWay + 1
        const why = yield* budget.refuses({ cost_usd: most.cost_usd * calls, total: most.total * calls })
        if (why !== "") return yield* new ToolFailure({ error: `this call was not made: ${why}` })
        underWay++
        const { value, usage } = yield* Effect.ensuring(
          restore(call),
          Effect.sync(() => underWay--)
        )
        most.cost_usd = Math.max(most.cost_usd, usage.cost_usd)
        most.total = Math.max(most.total, usage.total)
        yield* budget.charge(usage)
        spent(usage)
        return value
      })
    ).pipe(places.withPermits(1))
}
