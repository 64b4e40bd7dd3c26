/** Callers of a model that are run in an interleaving drawn by chance, down to each step of their fibers, without a clock. */
import { Effect, Exit, Fiber, FastCheck as fc } from "effect"
import type { Answer, Ask, ModelError, ModelService } from "../../src/model/Model.ts"
import { ask } from "./asks.ts"

/** What becomes of one call: after so many turns of the others. */
export interface Lot {
  readonly turns: number
  readonly end: "answered" | "refused" | "broken" | "defect"
  /** For what a test makes of it. */
  readonly size: number
}

export interface Caller {
  readonly lots: ReadonlyArray<Lot>
  /** Turns before its first call. */
  readonly wait: number
  /** Turns after which it is interrupted; undefined for never. */
  readonly interrupted: number | undefined
}

export interface Plan {
  readonly callers: ReadonlyArray<Caller>
  /** Steps of a fiber before others have a turn; with very few it would not come on. */
  readonly steps: number
}

const lot: fc.Arbitrary<Lot> = fc.record({
  turns: fc.nat(6),
  end: fc.constantFrom("answered", "answered", "answered", "refused", "broken", "defect"),
  size: fc.integer({ min: 1, max: 10 })
})

export const plan: fc.Arbitrary<Plan> = fc.record({
  callers: fc.array(
    fc.record({
      lots: fc.array(lot, { minLength: 1, maxLength: 4 }),
      wait: fc.nat(5),
      interrupted: fc.option(fc.nat(40), { nil: undefined, freq: 2 })
    }),
    { minLength: 1, maxLength: 12 }
  ),
  steps: fc.oneof(fc.integer({ min: 20, max: 60 }), fc.constant(2048))
})

export const turns = (count: number): Effect.Effect<void> => Effect.repeatN(Effect.yieldNow(), Math.max(0, count))

/** What the model below does with a call of this lot. */
export type Below = (lot: Lot, ask: Ask) => Effect.Effect<Answer, ModelError>

/**
 * Runs the plan: `around` puts the layer around the model below. Tells how each call ended that did, in the order of the callers, and
 * whether all came to an end.
 */
export const run = (plan: Plan, below: Below, around: (inner: ModelService) => ModelService) =>
  Effect.gen(function* () {
    const model = around({
      complete: (ask) => {
        const lot = plan.callers[ask.place]?.lots[ask.turn]
        return lot === undefined ? Effect.die("no lot") : Effect.zipRight(turns(lot.turns), below(lot, ask))
      }
    })
    const ends = plan.callers.map((): Array<Exit.Exit<Answer, ModelError>> => [])
    const caller = ({ wait, lots }: Caller, place: number) =>
      Effect.zipRight(
        turns(wait),
        Effect.forEach(
          lots,
          (_, turn) =>
            Effect.onExit(model.complete(ask({ place, turn })), (exit) =>
              Effect.sync(() => ends[place]?.push(exit))
            ).pipe(Effect.exit),
          { discard: true }
        )
      )
    const fibers = yield* Effect.forEach(plan.callers, (each, place) => Effect.fork(caller(each, place)))
    yield* Effect.forEach(plan.callers, ({ interrupted }, place) => {
      const fiber = fibers[place]
      if (interrupted === undefined || fiber === undefined) return Effect.void
      return Effect.fork(Effect.zipRight(turns(interrupted), Fiber.interruptFork(fiber)))
    })
    const over = yield* Effect.timeoutTo(Effect.forEach(fibers, Fiber.await, { discard: true }), {
      duration: "2 seconds",
      onSuccess: () => true,
      onTimeout: () => false
    })
    return { over, ends, model }
  }).pipe(Effect.withMaxOpsBeforeYield(plan.steps))

/** Whether a caller that nobody interrupted has an end of each of its calls. */
export const served = ({ callers }: Plan, ends: ReadonlyArray<ReadonlyArray<unknown>>): boolean =>
  callers.every(({ interrupted, lots }, place) => interrupted !== undefined || ends[place]?.length === lots.length)

export const failures = (ends: ReadonlyArray<Exit.Exit<Answer, ModelError>>): ReadonlyArray<ModelError> =>
  ends.flatMap((exit) => (Exit.isFailure(exit) && exit.cause._tag === "Fail" ? [exit.cause.error] : []))
