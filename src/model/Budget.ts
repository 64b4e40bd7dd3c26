/** A model around a model that counts what calls spend, and makes none that could spend more than the run may. */
import { Context, Deferred, Effect, Exit, FiberId, Layer } from "effect"
import * as Events from "../events/Events.ts"
import { type Answer, type Ask, addUsage, Model, ModelError, type ModelService, noUsage, type Usage } from "./Model.ts"

/** What a run may spend, all its sessions of work together; null for no limit. */
export interface Limits {
  /** US dollars. */
  readonly cost: number | null
  /** Tokens, prompt and completion. */
  readonly tokens: number | null
  /** Whether single prompts have a limit in dollars: then too each call must have a price. */
  readonly priced: boolean
}

/** Tokens and money, and the answers that they were spent on. */
export interface Spent {
  readonly usage: Usage
  readonly calls: number
}

/** What earlier sessions of work have spent: US dollars, tokens, and the answers that they were spent on. */
export interface Before {
  readonly cost: number
  readonly tokens: number
  readonly calls: number
}

export interface BudgetService {
  /** Tells what was spent before this session of work, and on how many answers. */
  readonly begin: (before: Before) => Effect.Effect<void>
  /** What this session of work has spent so far, prompts in flight included. */
  readonly spent: Effect.Effect<Spent>
  /** Why no call is made any more, in a sentence; empty while calls are made. */
  readonly reached: Effect.Effect<string>
  /** Counts what was spent beside the model's own calls. */
  readonly charge: (usage: Usage) => Effect.Effect<void>
  /** Why a call beside them that could spend so much is not to be made, in a sentence; empty when it may. */
  readonly refuses: (expected: Pick<Usage, "cost_usd" | "total">) => Effect.Effect<string>
}

/** Nothing is counted. */
export const none: BudgetService = {
  begin: () => Effect.void,
  spent: Effect.succeed({ usage: noUsage, calls: 0 }),
  reached: Effect.succeed(""),
  charge: () => Effect.void,
  refuses: () => Effect.succeed("")
}

/** The budget of a run. */
export class Budget extends Context.Reference<Budget>()("batch-runner/Budget", {
  defaultValue: (): BudgetService => none
}) {}

/** Puts the count around the model below. */
export const layer = (limits: Limits): Layer.Layer<Model | Budget, never, Model> =>
  Layer.effectContext(
    Effect.map(Model, (inner) => {
      const { model, budget } = within(inner, limits)
      return Context.make(Model, model).pipe(Context.add(Budget, budget))
    })
  )

/** Sums of many small amounts are not exact to the last bit. */
const tolerance = 1e-9

/** Characters of what is asked. */
const sizeOf = ({ messages }: Ask): number =>
  messages.reduce(
    (sum, message) =>
      sum +
      (message.role === "answer"
        ? message.answer.content.length +
          message.answer.reasoning.length +
          message.answer.toolCalls.reduce((length, call) => length + call.arguments.length, 0)
        : message.content.length),
    0
  )

/** What calls have spent so far of one thing, by how large they were. */
class Experience {
  private most = 0
  private readonly smallest = { size: Number.POSITIVE_INFINITY, amount: 0 }
  private readonly largest = { size: 0, amount: 0 }

  /** A call may well spend so much. */
  expect(amount: number): void {
    this.most = Math.max(this.most, amount)
  }

  add(amount: number, size: number): void {
    this.expect(amount)
    if (size < this.smallest.size) Object.assign(this.smallest, { size, amount })
    if (size > this.largest.size) Object.assign(this.largest, { size, amount })
  }

  /** What a call of this size could spend: the most so far, and more for one that is larger than all, where size tells. */
  of(size: number): number {
    const { smallest, largest } = this
    const slope = largest.size > smallest.size ? (largest.amount - smallest.amount) / (largest.size - smallest.size) : 0
    return this.most + Math.max(0, slope) * Math.max(0, size - largest.size)
  }
}

/** Lets a part of an uninterruptible effect be interrupted all the same. */
type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

interface Reserved {
  readonly size: number
  readonly cost: number
  readonly tokens: number
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
  let known = false
  const seen = { cost: new Experience(), tokens: new Experience() }
  const reserved = new Set<Reserved>()
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
  const admit = (restore: Restore, size: number): Effect.Effect<Reserved, ModelError> =>
    Effect.suspend(() => {
      if (reached !== "") return stopped()
      const call = { size, cost: seen.cost.of(size), tokens: seen.tokens.of(size) }
      // Before anything is known of what a call spends, one call finds out for all.
      if ((known || reserved.size === 0) && passedWith(call.cost, call.tokens) === "") {
        reserved.add(call)
        return Effect.succeed(call)
      }
      if (reserved.size > 0) return Effect.zipRight(turn(restore), admit(restore, size))
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

  const count = (size: number, usage: Usage) => {
    spent = addUsage(spent, usage)
    seen.cost.add(usage.cost_usd, size)
    seen.tokens.add(usage.total, size)
  }

  const settle = (call: Reserved, exit: Exit.Exit<Answer, ModelError>): Effect.Effect<void> => {
    reserved.delete(call)
    if (Exit.isSuccess(exit)) {
      known = true
      calls++
      count(call.size, exit.value.usage)
    } else if (exit.cause._tag === "Fail") count(call.size, exit.cause.error.usage)
    return waiting.size === 0 ? Effect.void : wake
  }

  /** A limit in something that nothing tells cannot be kept. */
  const checked = (answer: Answer): Effect.Effect<Answer, ModelError> => {
    const { usage } = answer
    if (answer.priced === false && (limits.cost !== null || limits.priced)) {
      const option = limits.cost === null ? "--max_cost_per_prompt" : "--max_cost"
      return unknown(
        usage,
        `${option} cannot be kept: the endpoint does not say what a call costs; give --prices, or leave ${option} out`
      )
    }
    return limits.tokens !== null && usage.total === 0
      ? unknown(usage, "--max_total_tokens cannot be kept: the endpoint does not say what a call uses; leave it out")
      : Effect.succeed(answer)
  }
  const unknown = (usage: Usage, detail: string) =>
    Effect.fail(new ModelError({ reason: "CostUnknown", detail, usage }))

  /** One answer without a price among others that have one counts as the largest of them. */
  const guessed = (answer: Answer, call: Reserved): Answer =>
    answer.priced === false && call.cost > 0
      ? { ...answer, priced: true, usage: { ...answer.usage, cost_usd: call.cost } }
      : answer

  const limitedCall = (ask: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(admit(restore, sizeOf(ask)), (call) =>
        Effect.onExit(
          restore(Effect.flatMap(inner.complete(ask), (answer) => checked(guessed(answer, call)))),
          (exit) => settle(call, exit)
        )
      )
    )
  const freeCall = (ask: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.onExit(Effect.flatMap(inner.complete(ask), checked), (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) {
          calls++
          spent = addUsage(spent, exit.value.usage)
        } else if (exit.cause._tag === "Fail") spent = addUsage(spent, exit.cause.error.usage)
      })
    )
  return {
    model: { complete: limited ? limitedCall : freeCall },
    budget: {
      begin: (earlier) =>
        Effect.sync(() => {
          before = earlier
          if (earlier.calls === 0) return
          // Of single calls nothing is known; their mean is better than nothing.
          seen.cost.expect(earlier.cost / earlier.calls)
          seen.tokens.expect(earlier.tokens / earlier.calls)
        }),
      spent: Effect.sync(() => ({ usage: spent, calls })),
      reached: Effect.sync(() => reached),
      charge: (usage) =>
        Effect.sync(() => {
          spent = addUsage(spent, usage)
        }),
      refuses: ({ cost_usd, total }) => Effect.sync(() => reached || passedWith(cost_usd, total))
    }
  }
}
