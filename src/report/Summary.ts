/** The end of a run as a person reads it. */
import { duration } from "./Progress.ts"
import type { Report } from "./Report.ts"
import { percent } from "./Statistics.ts"

/** Lines of the summary; `resume` is the command that goes on with the run. */
export const render = (report: Report, resume: string): string => {
  const { sums, merged } = report
  const lines = [
    `${report.runName}: ${report.sessions - report.toDo} of ${report.sessions} ${report.sessions === report.prompts ? "prompts" : "samples"} done${report.stopped ? ", stopped early" : ""}`,
    row("kept", sums.kept),
    row("discarded", discarded(report)),
    ...(report.failures.size > 0 ? [row("failed", failures(report.failures))] : []),
    ...(report.badLines > 0 ? [row("bad lines", `${report.badLines} of the data set skipped`)] : []),
    row("reasoning", `${percent(sums.turnsWithReasoning, sums.turns)} % of ${sums.turns} model turns`),
    ...tools(report),
    row("tokens", tokens(report)),
    ...(sums.costUsd > 0 ? [row("cost", `$${sums.costUsd.toFixed(4)}`)] : []),
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
    ...(report.toDo > 0
      ? [
          "",
          `${report.toDo} still to do; ${report.hopeless > 0 ? "mend what can be mended, then " : ""}go on with: ${resume}`
        ]
      : [])
  ]
  return lines.join("\n")
}

const files = ({ sums, failures }: Report): ReadonlyArray<string> => [
  "statistics.json",
  "checkpoint.json",
  "run.json",
  "README.md",
  ...(sums.discardedNoReasoning > 0 ? ["discarded.jsonl"] : []),
  ...(failures.size > 0 ? ["failures.jsonl"] : [])
]

const row = (name: string, value: string | number): string => `  ${name.padEnd(10)} ${value}`

const discarded = ({ sums }: Report): string =>
  `${sums.discardedNoReasoning + sums.discardedInvalidTools} (${sums.discardedNoReasoning} without reasoning, ${sums.discardedInvalidTools} with invented tools)`

const failures = (kinds: ReadonlyMap<string, number>): string =>
  [...kinds]
    .sort((a, b) => b[1] - a[1])
    .map(([kind, count]) => `${count} ${kind}`)
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
  `${tokens.total} (${tokens.prompt} prompt, ${tokens.completion} completion, ${tokens.reasoning} reasoning)`
