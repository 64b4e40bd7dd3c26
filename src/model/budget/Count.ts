/** A model around a model that counts what calls spend, and makes none that could spend more than the run may. */
import { Deferred, Effect, Either, Exit, FiberId } from "effect"
import * as Events from "../../events/Events.ts"
import type { Before, BudgetService, Limits } from "../Budget.ts"
import {
  type Answer,
  type Aside,
  type Ask,
  addUsage,
  ModelError,
  type ModelService,
  noUsage,
  type Usage
} from "../Model.ts"
import { type Kind, Kinds, sizeOf } from "./Experience.ts"

/** Sums of many small amounts are not exact to the last bit. */
const tolerance = 1e-9

/** Lets a part of an uninterruptible effect be interrupted all the same. */
type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

interface Held {
  /** Undefined for a call beside the model's own. */
  readonly kind: Kind | undefined
  readonly cost: number
  readonly tokens: number
}

interface Reserved extends Held {
  readonly kind: Kind
  readonly size: number
}

/** `inner`, within the limits. */
export const within = (
  inner: ModelService,
  limits: Limits
): { readonly model: ModelService; readonly budget: BudgetService } => {
  const limited = limits.cost !== null || limits.tokens !== null
  let before: Before = { cost: 0, tokens: 0, calls: 0 }
  let spent = noUsage
  let calls = 0
  let reached = ""
  const kinds = new Kinds()
  const reserved = new Set<Held>()
  const waiting = new Set<Deferred.Deferred<void>>()

  /** What would be passed by spending so much more; empty when nothing would. */
  const passed = (cost: number, tokens: number): string => {
    const dollars = before.cost + spent.cost_usd
    const used = before.tokens + spent.total
    if (limits.cost !== null && dollars + cost > limits.cost + tolerance) {
      return `the budget is reached: $${dollars.toFixed(4)} spent, and the next call could pass --max_cost=${limits.cost}; raise it to go on`
    }
    return limits.tokens !== null && used + tokens > limits.tokens
      ? `the budget is reached: ${used} tokens used, and the next call could pass --max_total_tokens=${limits.tokens}; raise it to go on`
      : ""
  }

  /** The same, with what is held back for the calls under way. */
  const passedWith = (cost: number, tokens: number): string => {
    const held = [...reserved]
    return passed(
      held.reduce((sum, other) => sum + other.cost, cost),
      held.reduce((sum, other) => sum + other.tokens, tokens)
    )
  }

  /** Room for one more call: at once, when others have settled, or never. */
  const admit = (restore: Restore, kind: Kind, size: number): Effect.Effect<Reserved, ModelError> =>
    Effect.suspend(() => {
      if (reached !== "") return stopped()
      if (kind.closed !== "") return refused(kind.closed)
      const call = { kind, size, ...kinds.estimate(kind, size) }
      // Before anything is known of what a call spends, one call finds out for all; and for its kind later.
      const alone = kinds.known ? ![...reserved].some((other) => other.kind === kind) : reserved.size === 0
      if ((kind.known || alone) && passedWith(call.cost, call.tokens) === "") {
        reserved.add(call)
        return Effect.succeed(call)
      }
      if (reserved.size > 0) return Effect.zipRight(turn(restore), admit(restore, kind, size))
      reached = passed(call.cost, call.tokens)
      return Effect.zipRight(Events.emit({ event: "budget_reached" }), Effect.zipRight(wake, stopped()))
    })

  const stopped = () => Effect.fail(new ModelError({ reason: "BudgetReached", detail: reached }))

  /** Is in the queue at once: what settles from now on wakes it. */
  const turn = (restore: Restore): Effect.Effect<void> => {
    const each = Deferred.unsafeMake<void>(FiberId.none)
    waiting.add(each)
    return Effect.onInterrupt(restore(Deferred.await(each)), () => Effect.sync(() => waiting.delete(each)))
  }

  /** All look again: which of them fits depends on how large it is. */
  const wake = Effect.suspend(() => {
    const all = [...waiting]
    waiting.clear()
    return Effect.forEach(all, (each) => Deferred.succeed(each, undefined), { discard: true })
  })

  /** Counts what a call came to; what it spent, where that is known. */
  const count = ({ aside }: Ask, exit: Exit.Exit<Answer, ModelError>): Usage | undefined => {
    if (Exit.isSuccess(exit) && aside === undefined) calls++
    const usage = Exit.match(exit, {
      onSuccess: (answer) => answer.usage,
      onFailure: (cause) => (cause._tag === "Fail" ? cause.error.usage : undefined)
    })
    if (usage !== undefined) spent = addUsage(spent, usage)
    return usage
  }

  const settle = (ask: Ask, call: Reserved, exit: Exit.Exit<Answer, ModelError>): Effect.Effect<void> => {
    reserved.delete(call)
    call.kind.known ||= Exit.isSuccess(exit)
    const usage = count(ask, exit)
    if (usage !== undefined) call.kind.add(usage, call.size)
    return waiting.size === 0 ? Effect.void : wake
  }

  /** A limit in something that nothing tells cannot be kept. */
  const checked = (ask: Ask, kind: Kind, answer: Answer): Effect.Effect<Answer, ModelError> => {
    const { usage } = answer
    const unpriced = answer.priced === false && (limits.cost !== null || limits.priced)
    if (!unpriced && (limits.tokens === null || usage.total > 0)) return Effect.succeed(answer)
    const option = !unpriced ? "--max_total_tokens" : limits.cost === null ? "--max_cost_per_prompt" : "--max_cost"
    const untold = `the endpoint does not say what a call ${unpriced ? "costs" : "uses"}`
    if (ask.aside !== undefined) {
      const remedy = unpriced ? `; name ${ask.aside.model ?? "the model"} in --prices` : ""
      return closing(kind, ask.aside, usage, `${option} does not allow it, as ${untold}${remedy}`)
    }
    const remedy = unpriced ? `give --prices, or leave ${option} out` : "leave it out"
    const detail = `${option} cannot be kept: ${untold}; ${remedy}`
    return Effect.fail(new ModelError({ reason: "CostUnknown", detail, usage }))
  }

  /** What a tool asks need not stop the run: it is not asked any more. */
  const closing = (kind: Kind, { tool, model = "the run's model" }: Aside, usage: Usage, why: string) => {
    const first = kind.closed === ""
    kind.closed = why
    const told = `${tool} asks ${model} no more: ${why}. What it spent so far may be missing in the sums`
    return Effect.zipRight(first ? Effect.logWarning(told) : Effect.void, refused(why, usage))
  }
  const refused = (detail: string, usage = noUsage) =>
    Effect.fail(new ModelError({ reason: "BadRequest", detail, usage }))

  /** One answer without a price among others of its kind that have one counts as the largest of them. */
  const guessed = (answer: Answer, { kind, size }: Reserved): Answer => {
    if (answer.priced !== false) return answer
    const cost_usd = kind.cost.of(size)
    return cost_usd > 0 ? { ...answer, priced: true, usage: { ...answer.usage, cost_usd } } : answer
  }

  const limitedCall = (ask: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(admit(restore, kinds.of(ask), sizeOf(ask)), (call) =>
        Effect.onExit(
          restore(Effect.flatMap(inner.complete(ask), (answer) => checked(ask, call.kind, guessed(answer, call)))),
          (exit) => settle(ask, call, exit)
        )
      )
    )
  const freeCall = (ask: Ask): Effect.Effect<Answer, ModelError> => {
    const kind = kinds.of(ask)
    if (kind.closed !== "") return refused(kind.closed)
    return Effect.onExit(
      Effect.flatMap(inner.complete(ask), (answer) => checked(ask, kind, answer)),
      (exit) => Effect.sync(() => count(ask, exit))
    )
  }
  return {
    model: { complete: limited ? limitedCall : freeCall },
    budget: {
      begin: (earlier) =>
        Effect.sync(() => {
          before = earlier
          if (earlier.calls === 0) return
          // Of single calls nothing is known; their mean is better than nothing, though what tools asked is in it too.
          kinds.own.cost.expect(earlier.cost / earlier.calls)
          kinds.own.tokens.expect(earlier.tokens / earlier.calls)
        }),
      spent: Effect.sync(() => ({ usage: spent, calls })),
      reached: Effect.sync(() => reached),
      hold: ({ cost_usd, total }) =>
        Effect.sync(() => {
          const why = reached || passedWith(cost_usd, total)
          if (why !== "") return Either.left(why)
          const held: Held = { kind: undefined, cost: cost_usd, tokens: total }
          reserved.add(held)
          return Either.right((usage: Usage) =>
            Effect.suspend(() => {
              reserved.delete(held)
              spent = addUsage(spent, usage)
              return waiting.size === 0 ? Effect.void : wake
            })
          )
        })
    }
  }
}
