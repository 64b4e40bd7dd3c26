/** A session ends before the call that could pass its prompt's budget, and is told when a call is its last. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import { Allowance, affords } from "../../src/agent/Allowance.ts"
import { lastTurn } from "../../src/agent/SystemPrompt.ts"
import { noUsage, type Usage } from "../../src/model/Model.ts"
import { calls, contents, converse, empty, type Line, text, told, word } from "./session.ts"

const used = (prompt: number, completion: number, cost_usd = 0): Usage => ({
  ...noUsage,
  prompt,
  completion,
  total: prompt + completion,
  cost_usd
})

describe("An allowance", () => {
  const one = (limits: { maxCost?: number; maxTokens?: number }, usage: Usage, ...results: ReadonlyArray<string>) => {
    const allowance = new Allowance({ maxCost: limits.maxCost ?? null, maxTokens: limits.maxTokens ?? null })
    allowance.received({ usage }, true)
    for (const result of results) allowance.called(result)
    return allowance.left(usage)
  }
  it("takes the first call in any case, and every call without limits.", () => {
    expect(new Allowance({ maxCost: 0.01, maxTokens: 1 }).left(used(500, 500, 5))).toBe("more")
    expect(one({}, used(1e9, 1e9, 1e9))).toBe("more")
  })
  it("expects the next call to use what the last did, and more by as much as that used more than the one before.", () => {
    expect(one({ maxTokens: 239 }, used(100, 20))).toBe("none")
    expect(one({ maxTokens: 240 }, used(100, 20))).toBe("one")
    expect(one({ maxTokens: 360 }, used(100, 20))).toBe("more")
    const grown = (maxTokens: number) => {
      const allowance = new Allowance({ maxCost: null, maxTokens })
      allowance.received({ usage: used(100, 20) }, true)
      allowance.received({ usage: used(120, 20) }, true)
      return allowance.left({ total: 260, cost_usd: 0 })
    }
    expect([419, 420, 599, 600].map(grown)).toEqual(["none", "one", "one", "more"])
  })
  it("expects large results to make the next call larger: the last prompt, its answer, the results, an answer.", () => {
    const result = "x".repeat(4000)
    const second = 100 + 20 + 1000 + 20
    const third = second + 20 + 1000
    expect(one({ maxTokens: 120 + second - 1 }, used(100, 20), result)).toBe("none")
    expect(one({ maxTokens: 120 + second }, used(100, 20), result)).toBe("one")
    expect(one({ maxTokens: 120 + second + third }, used(100, 20), result)).toBe("more")
    expect(one({ maxCost: 0.012 * (1 + second / 120) - 1e-6 }, used(100, 20, 0.012), result)).toBe("none")
    expect(one({ maxCost: 0.012 * (1 + second / 120) + 1e-6 }, used(100, 20, 0.012), result)).toBe("one")
  })
  it("takes sums of money that differ by rounding for equal.", () => {
    expect(one({ maxCost: 0.024 - 1e-6 }, used(100, 20, 0.012))).toBe("none")
    expect(one({ maxCost: 0.024 - 1e-10 }, used(100, 20, 0.012))).toBe("one")
    expect(one({ maxCost: 0.3 }, { ...noUsage, cost_usd: 0.1 })).toBe("more")
    expect(one({ maxCost: 0.2 }, { ...noUsage, cost_usd: 0.1 })).toBe("one")
    expect(one({ maxCost: 0.19 }, { ...noUsage, cost_usd: 0.1 })).toBe("none")
  })
})

/** An answer that calls a tool, with what it costs. */
const spends = (n: number, usage: Line["usage"]): Line => ({ ...calls(word(`${n}`)), usage })

const marked = (asks: ReadonlyArray<Parameters<typeof contents>[0]>) =>
  asks.map((ask) => contents(ask).some((content) => content.includes(lastTurn)))

describe("A session with a budget", () => {
  const usage = { prompt: 100, completion: 20, cost_usd: 0.1 }
  const long = Array.from({ length: 9 }, (_, n) => spends(n, usage))

  it.effect("is told which call is its last, so that it can finish.", () =>
    Effect.gen(function* () {
      const script = [...long.slice(0, 2), { ...text("Done."), usage }]
      const { ending, transcript, asks } = yield* converse(script, { maxCost: 0.37 })
      expect(ending._tag).toBe("Finished")
      expect(marked(asks)).toEqual([false, false, true])
      expect(told(transcript).join()).not.toContain(lastTurn)
    })
  )
  it.effect("that calls tools all the same ends as partial before the call that could pass it.", () =>
    Effect.gen(function* () {
      for (const limits of [{ maxCost: 0.33 }, { maxTokens: 390 }]) {
        const { ending, transcript } = yield* converse(long, limits)
        expect(ending).toEqual({ _tag: "Cut", why: "PromptBudget" })
        expect([transcript.apiCalls, told(transcript).at(-1)]).toEqual([3, '{"said":"2"}'])
      }
    })
  )
  it.effect("makes its first call whatever that costs.", () =>
    Effect.gen(function* () {
      const { ending, asks } = yield* converse(long, { maxCost: 0.01 })
      expect([ending, asks.length]).toEqual([{ _tag: "Cut", why: "PromptBudget" }, 1])
      const done = yield* converse([{ ...text("Done."), usage }], { maxTokens: 1 })
      expect(done.ending._tag).toBe("Finished")
    })
  )
  it.effect("counts empty answers, and has failed when there was nothing else.", () =>
    Effect.gen(function* () {
      const nothing = { ...empty, usage }
      const after = yield* converse([spends(0, usage), nothing, nothing, text("Never.")], { maxCost: 0.33 })
      expect([after.ending, after.asks.length]).toEqual([{ _tag: "Cut", why: "PromptBudget" }, 3])
      const { ending, asks } = yield* converse([nothing, nothing, text("Never.")], { maxCost: 0.25 })
      expect(ending._tag === "Broke" && ending.error.message).toBe("the model's answer was empty 2 times in a row")
      expect(asks.length).toBe(2)
      const once = yield* converse([nothing, text("Never.")], { maxCost: 0.15 })
      expect(once.ending._tag === "Broke" && once.ending.error.message).toBe("the model's answer was empty")
    })
  )
  it.effect("never passes it, where prompts grow by what was said and answers get no longer than the first.", () =>
    Effect.gen(function* () {
      const script = Array.from({ length: 30 }, (_, n) => {
        const prompt = 50 + n * (20 + 4)
        return spends(n % 2, { prompt, completion: 20, cost_usd: (prompt + 20) * 0.001 })
      })
      for (const maxTokens of fc.sample(fc.integer({ min: 100, max: 9000 }), { numRuns: 20, seed: 1 })) {
        const { ending, transcript } = yield* converse(script, { maxTokens, maxTurns: 30 })
        expect(transcript.usage.total).toBeLessThanOrEqual(maxTokens)
        const money = yield* converse(script, { maxCost: maxTokens / 1000, maxTurns: 30 })
        expect(money.transcript.usage.cost_usd).toBeLessThanOrEqual(maxTokens / 1000 + 1e-9)
        expect([ending, money.ending]).toEqual(Array(2).fill({ _tag: "Cut", why: "PromptBudget" }))
      }
    })
  )
})

describe("Questions of a tool", () => {
  it("are allowed where each may take what an answer took so far.", () => {
    const spent = { usage: used(80, 20, 1), apiCalls: 2 }
    const limits = (maxCost: number | null, maxTokens: number | null) => ({ maxCost, maxTokens })
    expect([affords(limits(2, null), spent, 2), affords(limits(1.99, null), spent, 2)]).toEqual([true, false])
    expect([affords(limits(null, 200), spent, 2), affords(limits(null, 199), spent, 2)]).toEqual([true, false])
    expect(affords(limits(null, null), spent, 1e9)).toBe(true)
    expect(affords(limits(1, 1), { usage: noUsage, apiCalls: 0 }, 5)).toBe(true)
  })
})
