/** The figures of a run are a sum, whatever order its rows came in. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
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
        expect(total.tokens.total).toBe(15 * all.length)
      })
    )
  })
  it("include what failed attempts spent, and nothing else of them.", () => {
    const spent = Statistics.ofSpent(Rows.usage)
    expect(spent).toEqual({
      ...Statistics.empty,
      tokens: { prompt: 10, completion: 5, reasoning: 2, total: 15 },
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
      cost_usd: 0.25
    })
    expect(Statistics.toJson(Statistics.empty, frame)).not.toHaveProperty("cost_usd")
  })
  it("in the file have no rounding noise in the cost.", () => {
    const cents = { ...Statistics.empty, costUsd: 0.1 }
    expect(Statistics.toJson(Statistics.add(cents, { ...cents, costUsd: 0.2 }), frame)).toMatchObject({ cost_usd: 0.3 })
  })
})
