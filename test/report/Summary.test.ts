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
    apiCalls: 300,
    tokens: { prompt: 1000, completion: 500, reasoning: 100, cached: 400, total: 1500 },
    costUsd: 1.5
  },
  merged: { rows: 90, strays: 0 },
  prompts: 100,
  sessions: 100,
  toDo: 0,
  hopeless: 0,
  leftOut: new Map(),
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
    "  tokens     1500 (1000 prompt, of which 400 cached; 500 completion, of which 100 reasoning)",
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
        ["empty_answer", 1],
        ["overloaded", 12]
      ])
    },
    "batch-runner --resume"
  ).split("\n")
  expect(lines[0]).toBe("first: 1 of 100 samples done, stopped early")
  expect(lines).toContain("  failed     12 overloaded, 1 empty_answer")
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
  expect(lines.join()).not.toContain("retry_failed")
})

it("The summary of a run that kept nothing for want of reasoning says which option would have.", () => {
  const nothing = { ...finished, sums: { ...Statistics.empty, discardedNoReasoning: 3 } }
  expect(Summary.render(nothing, "again")).toContain("give --reasoning_filter=off in a new run to keep such rows")
  expect(Summary.render(finished, "again")).not.toContain("--reasoning_filter")
})

it("The summary of a run that could not go on says why in its first line.", () => {
  const halted = { ...finished, toDo: 40, halted: "HTTP 402: no credit is left" }
  const head = "first: 60 of 100 prompts done, stopped: HTTP 402: no credit is left"
  expect(Summary.render(halted, "again").split("\n")[0]).toBe(head)
  expect(Summary.render({ ...halted, stopped: true }, "again").split("\n")[0]).toBe(head)
  expect(Summary.render(halted, "again").split("\n").at(-1)).toBe("40 still to do; go on with: again")
})

it("The summary says what was left out and how to run it, and tells nobody to go on where nothing else is to do.", () => {
  const leftOut = new Map([
    ["context_too_long", 1],
    ["content_refused", 2]
  ])
  const told = "3 failed before and left out (2 content_refused, 1 context_too_long): --retry_failed=all runs them too"
  const lines = Summary.render({ ...finished, toDo: 3, leftOut }, "again").split("\n")
  expect(lines.slice(-3)).toEqual([expect.stringMatching(/, failures\.jsonl$/), "", told])
  expect(
    Summary.render({ ...finished, toDo: 5, leftOut }, "again")
      .split("\n")
      .slice(-3)
  ).toEqual([told, "", "2 still to do; go on with: again"])
})

it("The summary names the failures of this session that do not run again by themselves.", () => {
  const failures = new Map([
    ["overloaded", 4],
    ["content_refused", 2]
  ])
  const lines = Summary.render({ ...finished, toDo: 6, hopeless: 2, failures }, "again").split("\n")
  expect(lines).toContain("2 content_refused: run again only where --retry_failed names that kind")
  expect(lines.at(-1)).toMatch(/go on with: again$/)
  const only = { ...finished, toDo: 2, hopeless: 2, failures: new Map([["content_refused", 2]]) }
  expect(Summary.render(only, "again")).toMatch(/go on with: again --retry_failed=content_refused$/)
})

it("The summary shows every cost above nothing.", () => {
  const costing = (costUsd: number) => Summary.render({ ...finished, sums: { ...finished.sums, costUsd } }, "again")
  expect(costing(0.00012)).toContain("  cost       $0.0001\n")
  expect(costing(0.0000004)).toContain("  cost       less than $0.0001\n")
  expect(costing(0)).not.toContain("cost ")
})
