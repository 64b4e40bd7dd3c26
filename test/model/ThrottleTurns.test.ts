/** Whatever the interleaving, whoever is given up, and however calls end: nobody waits for ever, and no place is lost or given twice. */
import { Clock, Duration, Effect, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import type { ModelService } from "../../src/model/Model.ts"
import * as Throttle from "../../src/model/Throttle.ts"
import { answer, failure } from "./answers.ts"
import { type Below, plan, run, served } from "./interleaving.ts"

const bare: Below = ({ end }) => {
  if (end === "answered") return Effect.succeed(answer())
  if (end === "defect") return Effect.die("broken")
  return Effect.fail(end === "refused" ? failure("RateLimited") : failure("Unreachable"))
}

describe("A throttle in any interleaving", () => {
  it.each([false, true])("keeps to its limit and serves everybody (adaptive: %s).", (adaptive) =>
    fc.assert(
      fc.asyncProperty(plan, fc.integer({ min: 1, max: 5 }), async (drawn, most) => {
        let running = 0
        let longest = 0
        const around = (inner: ModelService): ModelService => {
          const { model } = Throttle.throttled(
            {
              complete: (ask) =>
                Effect.acquireUseRelease(
                  Effect.sync(() => {
                    running++
                    longest = Math.max(longest, running)
                  }),
                  () => inner.complete(ask),
                  () =>
                    Effect.sync(() => {
                      running--
                    })
                )
            },
            { most, adaptive, longestPause: Duration.hours(1) }
          )
          return model
        }
        const { over, ends } = await Effect.runPromise(run(drawn, bare, around))
        expect([over, served(drawn, ends), running]).toEqual([true, true, 0])
        expect(longest).toBeLessThanOrEqual(most)
      }),
      { numRuns: 300, endOnFailure: true }
    )
  )
  it("serves everybody across pauses, of refusals and of quotas.", () =>
    fc.assert(
      fc.asyncProperty(plan, fc.integer({ min: 1, max: 3 }), async (drawn, most) => {
        const below: Below = (lot, ask) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            const limits = [{ of: "requests" as const, remaining: lot.size % 3, resetAt: now + 2 }]
            if (lot.end === "answered") return Effect.succeed(answer({ limits: lot.size > 5 ? limits : [] }))
            if (lot.end === "refused") return failure("RateLimited", { retryAfter: Duration.millis(2), limits })
            return bare(lot, ask)
          })
        const around = (inner: ModelService) =>
          Throttle.throttled(inner, { most, adaptive: true, longestPause: Duration.hours(1) }).model
        const { over, ends } = await Effect.runPromise(run(drawn, below, around))
        expect([over, served(drawn, ends)]).toEqual([true, true])
      }),
      { numRuns: 150, endOnFailure: true }
    ))
})
