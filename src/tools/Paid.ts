/** Calls beside the model's that may cost: none that could pass the run's budget, and each counted to its session and to the run. */
import { Effect, Either, Exit, Option } from "effect"
import { Budget } from "../model/Budget.ts"
import { noUsage, type Usage } from "../model/Model.ts"
import { ToolFailure } from "./Tool.ts"
import { ToolSession } from "./ToolSession.ts"

/** What a call gave, and what it spent; nothing spent where the service does not say. */
export interface Bill<A> {
  readonly value: A
  readonly usage: Usage
}

/** Calls at once of one service, all sessions together. */
const atOnce = 3

/** Calls of one service. Each counts in advance for the most that one has spent so far; the first finds that out, alone. */
export const make = () => {
  const places = Effect.unsafeMakeSemaphore(atOnce)
  const first = Effect.unsafeMakeSemaphore(1)
  const most = { cost_usd: 0, total: 0 }
  let known = false

  const made = <A, E, R>(call: Effect.Effect<Bill<A>, E, R>): Effect.Effect<A, E | ToolFailure, R | ToolSession> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const budget = yield* Budget
        const { affords, spent } = yield* ToolSession
        if (!affords(0, most)) return yield* refused("what is left of this prompt's budget does not allow it")
        const held = yield* budget.hold(most)
        if (Either.isLeft(held)) return yield* refused(held.left)
        const exit = yield* Effect.exit(restore(call))
        const usage = Exit.isSuccess(exit) ? exit.value.usage : noUsage
        known ||= !Exit.isInterrupted(exit)
        most.cost_usd = Math.max(most.cost_usd, usage.cost_usd)
        most.total = Math.max(most.total, usage.total)
        yield* held.right(usage)
        spent(usage)
        return (yield* exit).value
      })
    )

  return <A, E, R>(call: Effect.Effect<Bill<A>, E, R>): Effect.Effect<A, E | ToolFailure, R | ToolSession> => {
    const together = places.withPermits(1)(made(call))
    const alone = first.withPermits(1)(
      Effect.suspend(() => (known ? Effect.succeedNone : Effect.asSome(places.withPermits(1)(made(call)))))
    )
    return Effect.suspend(() =>
      known
        ? together
        : Effect.flatMap(alone, Option.match({ onNone: () => together, onSome: (value) => Effect.succeed(value) }))
    )
  }
}

const refused = (why: string) => new ToolFailure({ error: `this call was not made: ${why}` })
