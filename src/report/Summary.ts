/** The end of a run as a person reads it. */

import { runsAgain } from "../trajectory/Outcome.ts"
import { duration } from "./Progress.ts"
import type { Report } from "./Report.ts"
import { percent } from "./Statistics.ts"

/** Lines of the summary; `resume` is the command that goes on with the run. */
export const render = (report: Report, resume: string): string => {
  const { sums, merged } = report
  const left = count(report.leftOut)
  const lasting = new Map([...report.failures].filter(([kind]) => !runsAgain(kind, null)))
  // A resume that would find nothing to do is no way to go on.
  const command =
    count(lasting) > 0 && count(lasting) >= report.toDo - left
      ? `${resume} --retry_failed=${[...lasting.keys()].join(",")}`
      : resume
  const lines = [
    head(report),
    row("kept", sums.kept),
    row("discarded", discarded(report)),
    ...(report.failures.size > 0 ? [row("failed", kinds(report.failures))] : []),
    ...(report.badLines > 0 ? [row("bad lines", `${report.badLines} of the data set skipped`)] : []),
    row("reasoning", `${percent(sums.turnsWithReasoning, sums.turns)} % of ${sums.turns} model turns`),
    ...tools(report),
    row("tokens", tokens(report)),
    ...(sums.costUsd > 0 ? [row("cost", dollars(sums.costUsd))] : []),
    row("duration", duration(report.durationSeconds)),
    row("data set", `${report.location}/trajectories.jsonl, ${merged.rows} ${merged.rows === 1 ? "row" : "rows"}`),
    ...(merged.strays > 0
      ? [row("", `${merged.strays} of them for prompts that the data set no longer has, at the end`)]
      : []),
    row("files", `${report.location}: ${files(report).join(", ")}`),
    ...(sums.kept === 0 && sums.discardedNoReasoning > 0
      ? ["", "no row was kept, as none holds reasoning: give --reasoning_filter=off in a new run to keep such rows"]
      : []),
    ...(report.hopeless > 0 ? ["", `${report.hopeless} cannot succeed as they are: failures.jsonl says why`] : []),
    ...(count(lasting) > 0 ? ["", `${kinds(lasting)}: run again only where --retry_failed names that kind`] : []),
    ...(left > 0 ? ["", leftOut(report.leftOut)] : []),
    ...(report.toDo > left
      ? [
          "",
          `${report.toDo - left} still to do; ${report.hopeless > 0 ? "mend what can be mended, then " : ""}go on with: ${command}`
        ]
      : [])
  ]
  return lines.join("\n")
}

const head = ({ runName, sessions, toDo, prompts, stopped, halted }: Report): string => {
  const done = `${runName}: ${sessions - toDo} of ${sessions} ${sessions === prompts ? "prompts" : "samples"} done`
  return halted === "" ? `${done}${stopped ? ", stopped early" : ""}` : `${done}, stopped: ${halted}`
}

/** What earlier sessions of work failed at and this one does not run again, by kind, and how it would. */
export const leftOut = (failures: Report["leftOut"]): string =>
  `${count(failures)} failed before and left out (${kinds(failures)}): --retry_failed=all runs them too`

const count = (failures: ReadonlyMap<string, number>): number =>
  [...failures.values()].reduce((sum, one) => sum + one, 0)

const files = ({ sums, failures, leftOut }: Report): ReadonlyArray<string> => [
  "statistics.json",
  "checkpoint.json",
  "run.json",
  "README.md",
  ...(sums.discardedNoReasoning > 0 ? ["discarded.jsonl"] : []),
  ...(failures.size + leftOut.size > 0 ? ["failures.jsonl"] : [])
]

const row = (name: string, value: string | number): string => `  ${name.padEnd(10)} ${value}`

const discarded = ({ sums }: Report): string =>
  `${sums.discardedNoReasoning + sums.discardedInvalidTools} (${sums.discardedNoReasoning} without reasoning, ${sums.discardedInvalidTools} with invented tools)`

const kinds = (failures: ReadonlyMap<string, number>): string =>
  [...failures]
    .sort((a, b) => b[1] - a[1])
    .map(([kind, times]) => `${times} ${kind}`)
    .join(", ")

const tools = ({ sums }: Report): ReadonlyArray<string> => {
  const used = [...sums.tools].sort((a, b) => b[1].count - a[1].count)
  if (used.length === 0) return [row("tools", "none called")]
  const width = Math.max(...used.map(([name]) => name.length))
  return used.map(([name, { count, success }], at) =>
    row(
      at === 0 ? "tools" : "",
      `${name.slice(0, 60).padEnd(Math.min(width, 60))} ${String(count).padStart(6)} ${count === 1 ? "call" : "calls"}, ${percent(success, count)} % ok`
    )
  )
}

const tokens = ({ sums: { tokens } }: Report): string =>
  `${tokens.total} (${tokens.prompt} prompt, of which ${tokens.cached} cached; ${tokens.completion} completion, of which ${tokens.reasoning} reasoning)`

const dollars = (amount: number): string => (amount < 0.0001 ? "less than $0.0001" : `$${amount.toFixed(4)}`)
