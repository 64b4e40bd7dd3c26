/** The figures of a run are a sum, whatever order its rows came in. */
import { FastCheck as fc, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { noUsage } from "../../src/model/Model.ts"
import * as Statistics from "../../src/report/Statistics.ts"
import * as Rows from "../support/Rows.ts"

const figures = fc
  .record({
    fate: fc.constantFrom("kept" as const, "no_reasoning" as const, "invalid_tools" as const),
    terminal: fc.nat(5),
    fly: fc.nat(2),
    reasoned: fc.boolean()
  })
  .map(({ fate, terminal, fly, reasoned }) => {
    const row = Rows.row({ prompt: "x", calls: { terminal, fly }, ...(reasoned ? {} : { answer: "Done." }) })
    return { row, fate, figures: Statistics.ofRow(row, fate) }
  })

const sum = (all: ReadonlyArray<Statistics.Statistics>) => all.reduce(Statistics.add, Statistics.empty)

const plain = (statistics: Statistics.Statistics) => ({ ...statistics, tools: Object.fromEntries(statistics.tools) })

const frame: Statistics.Frame = {
  runName: "r",
  distribution: "default",
  totalPrompts: 3,
  totalBatches: 2,
  batchSize: 2,
  model: "m",
  completedAt: "2026-01-15T10:30:00",
  durationSeconds: 1.23456,
  failed: 1,
  toolNames: ["terminal", "todo"]
}

const Costing = Schema.Struct({ cost_usd: Schema.optionalWith(Schema.Number, { default: () => 0 }) })

describe("Statistics", () => {
  it("know a made-up tool by the first 64 characters of its name.", () => {
    const { tools } = Statistics.ofRow(Rows.row({ prompt: "x", calls: { ["f".repeat(100_000)]: 2 } }), "invalid_tools")
    expect([...tools].flatMap(([name, { count }]) => (count > 0 ? [[name, count]] : []))).toEqual([["f".repeat(64), 2]])
  })
  it("are the same in any order and any grouping, and nothing adds nothing.", () => {
    fc.assert(
      fc.property(fc.array(figures, { maxLength: 8 }), fc.nat(8), (all, at) => {
        const each = all.map((one) => one.figures)
        const whole = plain(sum(each))
        expect(plain(sum(each.toReversed()))).toEqual(whole)
        expect(plain(Statistics.add(sum(each.slice(0, at)), sum(each.slice(at))))).toEqual(whole)
        expect(plain(Statistics.add(Statistics.empty, sum(each)))).toEqual(whole)
      })
    )
  })
  it("count rows by their fate, calls by tool, and turns with and without reasoning.", () => {
    fc.assert(
      fc.property(fc.array(figures), (all) => {
        const total = sum(all.map((one) => one.figures))
        const count = (fate: string) => all.filter((one) => one.fate === fate).length
        expect([total.kept, total.discardedNoReasoning, total.discardedInvalidTools]).toEqual([
          count("kept"),
          count("no_reasoning"),
          count("invalid_tools")
        ])
        expect(total.tools.get("terminal")?.count ?? 0).toBe(
          all.reduce((calls, { row }) => calls + (row.tool_stats.terminal?.count ?? 0), 0)
        )
        expect(total.turns).toBe(all.length)
        expect(total.turnsWithReasoning).toBe(
          all.filter(({ row }) => row.conversations.at(-1)?.value.startsWith("<think>")).length
        )
        expect([total.tokens.total, total.tokens.cached, total.apiCalls]).toEqual([15, 1, 1].map((n) => n * all.length))
      })
    )
  })
  it("include what failed attempts spent, and nothing else of them.", () => {
    const spent = Statistics.ofSpent(Rows.usage, 3)
    expect(spent).toEqual({
      ...Statistics.empty,
      apiCalls: 3,
      tokens: { prompt: 10, completion: 5, reasoning: 2, cached: 1, total: 15 },
      costUsd: 0.25
    })
  })
  it.each([
    [1, 3, 33.33],
    [2, 3, 66.67],
    [0, 0, 0],
    [5, 5, 100],
    [1, 8, 12.5]
  ])("say %d of %d in percent with two places: %d.", (part, whole, expected) => {
    expect(Statistics.percent(part, whole)).toBe(expected)
  })
  it("in the file list every tool, rates in percent, and cost only where there is one.", () => {
    const row = { ...Rows.row({ prompt: "x" }), tool_stats: { terminal: { count: 3, success: 2, failure: 1 } } }
    const json = Statistics.toJson(Statistics.ofRow(row, "kept"), frame)
    expect(json).toMatchObject({
      duration_seconds: 1.23,
      tool_statistics: {
        terminal: { count: 3, success: 2, failure: 1, success_rate: 66.67, failure_rate: 33.33 },
        todo: { count: 0, success: 0, failure: 0, success_rate: 0, failure_rate: 0 }
      },
      reasoning_statistics: { total_assistant_turns: 1, turns_with_reasoning: 1, turns_without_reasoning: 0 },
      failed: 1,
      api_calls: 1,
      tokens: { prompt: 10, completion: 5, reasoning: 2, cached: 1, total: 15 },
      cost_usd: 0.25
    })
    expect(Statistics.toJson(Statistics.empty, frame)).not.toHaveProperty("cost_usd")
  })
  it("in the file have no rounding noise in the cost.", () => {
    const cents = { ...Statistics.empty, costUsd: 0.1 }
    expect(Statistics.toJson(Statistics.add(cents, { ...cents, costUsd: 0.2 }), frame)).toMatchObject({ cost_usd: 0.3 })
  })
  it("have the cost of a million rows right to a thousandth of a cent, whatever each cost.", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50_000_000), { minLength: 1, maxLength: 50 }), (nanos) => {
        const rows = nanos.map((nano) => Statistics.ofSpent({ ...noUsage, cost_usd: nano / 1e9 }, 1))
        let sums = Statistics.empty
        let exact = 0
        for (let at = 0; at < 1_000_000; at++) {
          sums = Statistics.add(sums, rows[at % rows.length] ?? Statistics.empty)
          exact += nanos[at % nanos.length] ?? 0
        }
        const written = Schema.decodeUnknownSync(Costing)(Statistics.toJson(sums, frame)).cost_usd
        expect(Math.abs(written * 1e9 - exact)).toBeLessThan(1e4)
        expect(sums.apiCalls).toBe(1_000_000)
      }),
      { numRuns: 15 }
    )
  })
  it("have the cost of a small run right to the last of its eight places, in any order.", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50_000_000), { maxLength: 300 }), (tens) => {
        const rows = tens.map((ten) => Statistics.ofSpent({ ...noUsage, cost_usd: ten / 1e8 }, 1))
        const exact = tens.reduce((total, ten) => total + ten, 0)
        const written = Schema.decodeUnknownSync(Costing)(Statistics.toJson(sum(rows), frame)).cost_usd
        expect(Math.round(written * 1e8)).toBe(exact)
      })
    )
  })
  it("say what a finished session takes on average, failed attempts included, and nothing before the first.", () => {
    expect(Statistics.meanOf(Statistics.ofSpent(Rows.usage, 3))).toBeUndefined()
    const rows = (["kept", "no_reasoning", "invalid_tools", "kept"] as const).map((fate) =>
      Statistics.ofRow(Rows.row({ prompt: "x" }), fate)
    )
    expect(Statistics.meanOf(sum([...rows, Statistics.ofSpent(Rows.usage, 3)]))).toEqual({
      apiCalls: 7 / 4,
      tokens: { prompt: 50 / 4, completion: 25 / 4, reasoning: 10 / 4, cached: 5 / 4, total: 75 / 4 },
      costUsd: 1.25 / 4
    })
  })
})
