/** Failures of one kind in a row end a run, and what released prompts had spent is what stands in no outcome. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { doneEvent, Tally } from "../../src/report/Tally.ts"
import { Outcome } from "../../src/trajectory/Outcome.ts"
import * as Rows from "../support/Rows.ts"

const { outcome: kept } = Rows.kept({ prompt: "a" })
const { outcome: discarded } = Rows.discarded({ prompt: "a" })
const failedOf = (() => {
  const { outcome } = Rows.failed({ prompt: "a" })
  if (outcome._tag !== "Failed") throw new Error("not failed")
  return outcome.failure
})()
const failed = (kind: string, retryable = true): Outcome =>
  Outcome.Failed({ failure: { ...failedOf, kind, retryable, message: `${kind} it is` } })

/** Which of the outcomes ends the run, by its number from 1; 0 for none. */
const ends = (longest: number, outcomes: ReadonlyArray<Outcome>): number => {
  const tally = new Tally(longest)
  return outcomes.findIndex((outcome) => tally.add(outcome) !== undefined) + 1
}

const times = (count: number, outcome: Outcome): ReadonlyArray<Outcome> => Array.from({ length: count }, () => outcome)

describe("A tally", () => {
  it("ends the run with so many failures of one kind in a row, and says so.", () => {
    expect(ends(3, times(9, failed("overloaded")))).toBe(3)
    expect(ends(1, [kept, failed("overloaded")])).toBe(2)
    const tally = new Tally(2)
    expect(tally.add(failed("timed_out"))).toBeUndefined()
    expect(tally.add(failed("timed_out"))?.message).toBe(
      "2 failures in a row of the kind timed_out (--max_consecutive_failures=2), the last: timed_out it is"
    )
  })
  it("begins a row anew with a success, kept or discarded, and with another kind.", () => {
    const [one, other] = [failed("overloaded"), failed("bad_request")]
    for (const between of [kept, discarded, other]) {
      expect(ends(3, [one, one, between, one, one])).toBe(0)
      expect(ends(3, [one, one, between, one, one, one])).toBe(6)
    }
    expect(ends(3, [one, other, one, other, one, other])).toBe(0)
  })
  it("counts failures by kind, and those that no other attempt can help.", () => {
    const tally = new Tally(20)
    for (const each of [failed("a"), failed("b", false), kept, failed("a"), discarded]) tally.add(each)
    expect([...tally.failures]).toEqual([
      ["a", 2],
      ["b", 1]
    ])
    expect([tally.hopeless, tally.kept, tally.discarded]).toEqual([1, 1, 1])
  })
  it("warns once when all were discarded from the second on, never after one was kept.", () => {
    const tally = new Tally(20)
    tally.add(discarded)
    expect(tally.warning()).toBe("")
    tally.add(discarded)
    expect(tally.warning()).toMatch(/^all 2 sessions so far were discarded/)
    expect(tally.warning()).toBe("")
    const other = new Tally(20)
    for (const each of [kept, discarded, discarded]) other.add(each)
    expect(other.warning()).toBe("")
  })
})

describe("What released prompts had spent", () => {
  const usage = (tokens: number, cost_usd: number) => ({
    ...{ prompt: tokens, completion: tokens, reasoning: tokens, cached: tokens },
    ...{ total: 2 * tokens, cost_usd }
  })
  const spending = (tokens: number, cost: number, calls: number): Outcome =>
    Outcome.Failed({ failure: { ...failedOf, usage: usage(tokens, cost), api_calls: calls } })

  it("is what all spent without what stands in outcomes of any sort, to the millionth of a cent.", () => {
    const tally = new Tally(99)
    for (let n = 0; n < 10; n++) tally.add(spending(1, 0.1, 2))
    tally.add(kept)
    tally.add(discarded)
    const rows = [kept, discarded].flatMap((each) => (each._tag === "Failed" ? [] : [each.row]))
    const [calls, cost] = [rows.reduce((sum, row) => sum + row.api_calls, 0), 2 * Rows.usage.cost_usd]
    const all = {
      prompt: 10 + 2 * Rows.usage.prompt + 1,
      completion: 10 + 2 * Rows.usage.completion + 2,
      reasoning: 10 + 2 * Rows.usage.reasoning + 3,
      cached: 10 + 2 * Rows.usage.cached + 4,
      total: 20 + 2 * Rows.usage.total + 5,
      cost_usd: 1 + cost + 0.3
    }
    expect(tally.released({ usage: all, calls: 20 + calls + 6 })).toEqual({
      usage: { prompt: 1, completion: 2, reasoning: 3, cached: 4, total: 5, cost_usd: 0.3 },
      calls: 6
    })
  })
  it("is never less than nothing.", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(9))), fc.nat(5000), (all, tokens) => {
        const tally = new Tally(Number.POSITIVE_INFINITY)
        for (const [each, mills, calls] of all) tally.add(spending(each, mills / 1000, calls))
        const stands = all.reduce((sum, [each]) => sum + each, 0)
        const { usage: rest, calls } = tally.released({ usage: usage(tokens, tokens / 1000), calls: 0 })
        expect(rest.prompt).toBe(Math.max(0, tokens - stands))
        expect(rest.cost_usd).toBeGreaterThanOrEqual(0)
        expect(calls).toBe(0)
      })
    )
  })
})

describe("The event of a session's end", () => {
  it("tells what came of it and what it took.", () => {
    const whose = { prompt_index: 3, sample: 1, batch_num: 2 }
    expect(doneEvent(whose, undefined, 5)).toEqual({
      ...{ event: "prompt_done", ...whose, outcome: "released", kind: "" },
      ...{ api_calls: 0, tokens: 0, cost_usd: 0, took: 5 }
    })
    expect(doneEvent(whose, failed("overloaded"), 5)).toMatchObject({
      ...{ outcome: "failed", kind: "overloaded", api_calls: failedOf.api_calls, tokens: failedOf.usage.total }
    })
    expect(doneEvent(whose, kept, 5)).toMatchObject({ outcome: "kept", tokens: Rows.usage.total, cost_usd: 0.25 })
    expect(doneEvent(whose, discarded, 5)).toMatchObject({ outcome: "discarded", kind: "" })
  })
})
