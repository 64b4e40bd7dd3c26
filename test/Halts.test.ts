/** A run that cannot go on stops at once, releases what it holds, fails no prompt for it, and says why. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Ref } from "effect"
import * as Budget from "../src/model/Budget.ts"
import { type Answer, failing, kindOf, Model, ModelError, type ModelService, noUsage } from "../src/model/Model.ts"
import * as Pipeline from "../src/Pipeline.ts"
import type { Entry } from "../src/store/Store.ts"
import * as Offline from "./support/Offline.ts"

const many = (count: number) => Array.from({ length: count }, (_, n) => `prompt ${n}`)

const answer = (cost_usd: number): Answer => ({
  content: "Done.",
  reasoning: "Hm.",
  toolCalls: [],
  finishReason: "stop",
  usage: { ...noUsage, prompt: 10, total: 10, cost_usd },
  echo: {}
})

/** A run to its end over the model, within the limits: the report and what it left. */
const run = (
  about: Omit<Offline.About, "model">,
  complete: ModelService["complete"],
  limits: Partial<Budget.Limits> = {}
) => {
  const { model, budget } = Budget.within({ complete }, { cost: null, tokens: null, priced: false, ...limits })
  return Effect.gen(function* () {
    const report = yield* Pipeline.run()
    const { contents, boxes } = yield* Offline.Traces
    return { report, ...(yield* Ref.get(contents)), boxes: yield* Ref.get(boxes) }
  }).pipe(
    Effect.provide(Offline.layer({ ...about, model: Layer.succeed(Model, model) })),
    Effect.provideService(Budget.Budget, budget)
  )
}

const failuresOf = (entries: ReadonlyArray<Entry>) =>
  entries.flatMap(({ outcome }) => (outcome._tag === "Failed" ? [outcome.failure] : []))

const fatal = [
  "Unauthorized",
  "AllForbidden",
  "NoCredit",
  "ModelMissing",
  "NeverReached",
  "DownTooLong",
  "CostUnknown"
] as const

describe("A run whose model no call can reach", () => {
  it.effect("stops, says why, and fails no prompt.", () =>
    Effect.gen(function* () {
      for (const reason of fatal) {
        let asked = 0
        const { report, entries, boxes } = yield* run({ rows: many(30), config: { num_workers: 4 } }, () =>
          Effect.suspend(() => {
            asked++
            // Three are kept, then one meets the end while others are under way.
            if (asked <= 3) return Effect.succeed(answer(0.1))
            return asked < 6 ? Effect.never : new ModelError({ reason, detail: `no use: ${reason}` })
          })
        )
        expect(report).toMatchObject({ halted: `no use: ${reason}`, stopped: false, toDo: 27 })
        expect([[...report.failures], failuresOf(entries), entries.length]).toEqual([[], [], 3])
        expect(boxes.closed.toSorted()).toEqual(boxes.opened.map(({ id }) => id).toSorted())
        expect(boxes.opened.length).toBeLessThan(9)
      }
    })
  )
  it.effect("counts what that call and those released in flight had spent.", () =>
    Effect.gen(function* () {
      const usage = { ...noUsage, prompt: 7, total: 7, cost_usd: 0.7 }
      const { report } = yield* run({ rows: many(3), config: { num_workers: 1 } }, ({ place }) =>
        place === 0 ? Effect.succeed(answer(0.1)) : new ModelError({ reason: "NoCredit", detail: "no credit", usage })
      )
      expect([report.sums.costUsd.toFixed(6), report.sums.tokens.total]).toEqual(["0.800000", 17])
    })
  )
})

describe("A run with a budget", () => {
  it.effect("draws no prompt beyond it, saves no failure for it, and says how much was spent.", () =>
    Effect.gen(function* () {
      const { report, entries, boxes } = yield* run(
        { rows: many(50), config: { num_workers: 3 } },
        () => Effect.succeed(answer(0.1)),
        { cost: 1 }
      )
      expect(report.halted).toMatch(
        /^the budget is reached: \$1\.0000 spent, and the next call could pass --max_cost=1; raise it to go on$/
      )
      expect([report.toDo, entries.length, [...report.failures]]).toEqual([40, 10, []])
      expect(boxes.opened.length).toBeLessThanOrEqual(13)
      expect(report.sums.costUsd.toFixed(6)).toBe("1.000000")
    })
  )
  it.effect("that is reached by its very last prompt is done.", () =>
    Effect.gen(function* () {
      const { report } = yield* run({ rows: many(4) }, () => Effect.succeed(answer(0.25)), { cost: 1 })
      expect([report.halted, report.toDo]).toEqual(["", 0])
    })
  )
  it("is no kind of failure.", () => {
    expect(failing).not.toContain("BudgetReached")
    expect(failing.filter((reason) => fatal.some((each) => each === reason))).toEqual([])
    expect(failing.map(kindOf)).toContain("context_too_long")
  })
})

describe("A run whose prompts fail for one reason", () => {
  const busy = new ModelError({ reason: "Overloaded", detail: "HTTP 503", status: 503 })
  it.effect("stops after so many in a row, which a resume runs again.", () =>
    Effect.gen(function* () {
      const { report, entries, boxes } = yield* run(
        { rows: many(50), config: { num_workers: 1, max_consecutive_failures: 5 } },
        ({ place }) => (place < 4 ? Effect.succeed(answer(0)) : busy)
      )
      expect(report.halted).toBe(
        "5 failures in a row of the kind overloaded (--max_consecutive_failures=5), the last: HTTP 503"
      )
      expect([report.toDo, entries.length, failuresOf(entries).length]).toEqual([46, 9, 5])
      expect(failuresOf(entries).every(({ retryable }) => retryable)).toBe(true)
      expect([boxes.opened.length, boxes.closed.length]).toEqual([9, 9])
    })
  )
  it.effect("goes on as long as some succeed in between.", () =>
    Effect.gen(function* () {
      const { report } = yield* run(
        { rows: many(30), config: { num_workers: 1, max_consecutive_failures: 3 } },
        ({ place }) => (place % 3 === 2 ? Effect.succeed(answer(0)) : busy)
      )
      expect([report.halted, report.failures.get("overloaded"), report.merged.rows]).toEqual(["", 20, 10])
    })
  )
})
