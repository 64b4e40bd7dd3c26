/** Calls that may cost: the first finds out what one costs, and none passes the budget of its prompt. */
import { Deferred, Effect, Exit, Fiber } from "effect"
import { expect, test } from "vitest"
import { type Limits, limitsOf } from "../../src/agent/Allowance.ts"
import * as ToolAccount from "../../src/agent/ToolAccount.ts"
import { Transcript } from "../../src/agent/Transcript.ts"
import { noUsage } from "../../src/model/Model.ts"
import * as Paid from "../../src/tools/Paid.ts"
import { ToolSession } from "../../src/tools/ToolSession.ts"

const limits = (max_cost_per_prompt: number | null): Limits =>
  limitsOf({ max_cost_per_prompt, max_tokens_per_prompt: null })

/** In a session of these limits; gives what came, and what the session spent. */
const inSession = <A, E>(of: Limits, program: Effect.Effect<A, E, ToolSession>) =>
  Effect.runPromise(
    Effect.scopedWith((scope) => {
      const transcript = new Transcript()
      const whose = { prompt: "p", place: 0, sample: 0, occurrence: 0 }
      const session = ToolAccount.make(whose, of, transcript, scope)
      return Effect.map(Effect.provideService(program, ToolSession, session), (gave) => ({
        gave,
        usage: transcript.usage
      }))
    })
  )

const bill = { value: "made", usage: { ...noUsage, cost_usd: 0.1, total: 10 } }

test("Many calls in one answer stop before the budget of their prompt is passed", async () => {
  const paid = Paid.make()
  const { gave, usage } = await inSession(
    limits(0.35),
    Effect.forEach(Array(10), () => Effect.either(paid(Effect.succeed(bill))))
  )
  expect(gave.map(({ _tag }) => _tag)).toEqual([...Array(3).fill("Right"), ...Array(7).fill("Left")])
  expect(gave[9]).toMatchObject({ left: { error: expect.stringMatching(/not made: .*this prompt's budget/) } })
  expect(usage.cost_usd).toBeCloseTo(0.3)
})

test("Until one call has ended none other begins, and then three at once, also after a failure", async () => {
  for (const end of ["made", "failed"]) {
    const paid = Paid.make()
    const { gave } = await inSession(
      limits(null),
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        let begun = 0
        const slow = Effect.suspend(() => {
          begun++
          return Effect.zipRight(Deferred.await(gate), end === "made" ? Effect.succeed(bill) : Effect.fail("failed"))
        })
        const never = Effect.suspend(() => {
          begun++
          return Effect.never
        })
        const first = yield* Effect.fork(paid(slow))
        yield* Effect.yieldNow()
        const others = yield* Effect.forEach(Array(5), () => Effect.fork(paid(never)))
        yield* Effect.sleep(20)
        const alone = begun
        yield* Deferred.succeed(gate, undefined)
        const exit = yield* Fiber.await(first)
        yield* Effect.sleep(20)
        yield* Fiber.interruptAll(others)
        return [alone, Exit.isSuccess(exit), begun]
      })
    )
    expect(gave).toEqual([1, end === "made", 4])
  }
})
