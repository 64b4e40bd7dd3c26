/** The budget of a run: what it may spend, what it has spent, and the layer around its model that keeps to that. */
import { Context, Effect, Either, Layer } from "effect"
import { within } from "./budget/Count.ts"
import { Model, noUsage, type Usage } from "./Model.ts"

export { within }

/** What a run may spend, all its sessions of work together; null for no limit. */
export interface Limits {
  /** US dollars. */
  readonly cost: number | null
  /** Tokens, prompt and completion. */
  readonly tokens: number | null
  /** Whether single prompts have a limit in dollars: then too each call must have a price. */
  readonly priced: boolean
}

/** Tokens and money, and the sessions' own answers that came for it. */
export interface Spent {
  readonly usage: Usage
  readonly calls: number
}

/** What earlier sessions of work have spent: US dollars, tokens, and the sessions' own answers that came for it. */
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
  /** Holds back what a call beside the model's own could spend; the left says in a sentence why it is not to be made. */
  readonly hold: (expected: Pick<Usage, "cost_usd" | "total">) => Effect.Effect<Either.Either<Settle, string>>
}

/** Counts what a call came to in the place of what was held back for it. To be used once, whatever became of the call. */
export type Settle = (usage: Usage) => Effect.Effect<void>

/** Nothing is counted. */
export const none: BudgetService = {
  begin: () => Effect.void,
  spent: Effect.succeed({ usage: noUsage, calls: 0 }),
  reached: Effect.succeed(""),
  hold: () => Effect.succeed(Either.right(() => Effect.void))
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
