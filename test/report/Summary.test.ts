/** The end of a run says what came of it, where it is, and how to go on. */
import { expect, it } from "vitest"
import type { Report } from "../../src/report/Report.ts"
import * as Statistics from "../../src/report/Statistics.ts"
import * as Summary from "../../src/report/Summary.ts"

const finished: Report = {
  runName: "first",
  location: "/data/first",
  sums: {
    kept: 90,
    discardedNoReasoning: 7,
    discardedInvalidTools: 3,
    tools: new Map([
      ["todo", { count: 3, success: 3, failure: 0 }],
      ["terminal", { count: 120, success: 90, failure: 30 }]
    ]),
    turns: 300,
    turnsWithReasoning: 200,
    tokens: { prompt: 1000, completion: 500, reasoning: 100, total: 1500 },
    costUsd: 1.5
  },
  merged: { rows: 90, strays: 0 },
  prompts: 100,
  sessions: 100,
  toDo: 0,
  hopeless: 0,
  failures: new Map(),
  durationSeconds: 125,
  badLines: 0,
  stopped: false,
  halted: ""
}

it("The summary of a finished run has its figures and its files.", () => {
  expect(Summary.render(finished, "again").split("\n")).toEqual([
    "first: 100 of 100 prompts done",
    "  kept       90",
    "  discarded  10 (7 without reasoning, 3 with invented tools)",
    "  reasoning  66.67 % of 300 model turns",
    "  tools      terminal    120 calls, 75 % ok",
    "             todo          3 calls, 100 % ok",
    "  tokens     1500 (1000 prompt, 500 completion, 100 reasoning)",
    "  cost       $1.5000",
    "  duration   2m05s",
    "  data set   /data/first/trajectories.jsonl, 90 rows",
    "  files      /data/first: statistics.json, checkpoint.json, run.json, README.md, discarded.jsonl"
  ])
})

it("The summary of an unfinished run has the failures by kind, what is to do, and the command that goes on.", () => {
  const lines = Summary.render(
    {
      ...finished,
      sums: { ...Statistics.empty, kept: 1 },
      merged: { rows: 5, strays: 2 },
      prompts: 50,
      toDo: 99,
      stopped: true,
      hopeless: 3,
      badLines: 4,
      failures: new Map([
        ["EmptyAnswer", 1],
        ["ModelError Overloaded", 12]
      ])
    },
    "batch-runner --resume"
  ).split("\n")
  expect(lines[0]).toBe("first: 1 of 100 samples done, stopped early")
  expect(lines).toContain("  failed     12 ModelError Overloaded, 1 EmptyAnswer")
  expect(lines).toContain("  bad lines  4 of the data set skipped")
  expect(lines).toContain("  tools      none called")
  expect(lines).toContain("             2 of them for prompts that the data set no longer has, at the end")
  expect(lines).toContain(
    "  files      /data/first: statistics.json, checkpoint.json, run.json, README.md, failures.jsonl"
  )
  expect(lines).toContain("3 cannot succeed as they are: failures.jsonl says why")
  expect(lines.slice(-2)).toEqual([
    "",
    "99 still to do; mend what can be mended, then go on with: batch-runner --resume"
  ])
  expect(lines.join()).not.toContain("cost")
})

it("The summary of a run that kept nothing for want of reasoning says which option would have.", () => {
  const nothing = { ...finished, sums: { ...Statistics.empty, discardedNoReasoning: 3 } }
  expect(Summary.render(nothing, "again")).toContain("give --reasoning_filter=off in a new run to keep such rows")
  expect(Summary.render(finished, "again")).not.toContain("--reasoning_filter")
})
