/** The figures of a run: a sum over rows and failures, whichever session left them. */
import { hasReasoning } from "../trajectory/ShareGpt.ts"
import type { Row, ToolCount } from "../trajectory/Trajectory.ts"

/** Tokens and US dollars, as a row tells them. */
export type Usage = Row["metadata"]["usage"]

export type Tokens = Omit<Usage, "cost_usd">

export interface Statistics {
  readonly kept: number
  readonly discardedNoReasoning: number
  readonly discardedInvalidTools: number
  readonly tools: ReadonlyMap<string, ToolCount>
  readonly turns: number
  readonly turnsWithReasoning: number
  /** Answers received, those of failed and released sessions too. */
  readonly apiCalls: number
  readonly tokens: Tokens
  readonly costUsd: number
}

export const empty: Statistics = {
  kept: 0,
  discardedNoReasoning: 0,
  discardedInvalidTools: 0,
  tools: new Map(),
  turns: 0,
  turnsWithReasoning: 0,
  apiCalls: 0,
  tokens: { prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0 },
  costUsd: 0
}

export const add = (a: Statistics, b: Statistics): Statistics => ({
  kept: a.kept + b.kept,
  discardedNoReasoning: a.discardedNoReasoning + b.discardedNoReasoning,
  discardedInvalidTools: a.discardedInvalidTools + b.discardedInvalidTools,
  tools: addTools(a.tools, b.tools),
  turns: a.turns + b.turns,
  turnsWithReasoning: a.turnsWithReasoning + b.turnsWithReasoning,
  apiCalls: a.apiCalls + b.apiCalls,
  tokens: {
    prompt: a.tokens.prompt + b.tokens.prompt,
    completion: a.tokens.completion + b.tokens.completion,
    reasoning: a.tokens.reasoning + b.tokens.reasoning,
    cached: a.tokens.cached + b.tokens.cached,
    total: a.tokens.total + b.tokens.total
  },
  costUsd: a.costUsd + b.costUsd
})

const addTools = (a: ReadonlyMap<string, ToolCount>, b: ReadonlyMap<string, ToolCount>) => {
  if (b.size === 0) return a
  const sum = new Map(a)
  for (const [name, { count, success, failure }] of b) {
    const before = sum.get(name)
    sum.set(name, {
      count: (before?.count ?? 0) + count,
      success: (before?.success ?? 0) + success,
      failure: (before?.failure ?? 0) + failure
    })
  }
  return sum
}

/** The part of a row that figures are made of. */
export interface Counted extends Pick<Row, "tool_stats" | "api_calls"> {
  readonly conversations: ReadonlyArray<{ readonly from: string; readonly value: string }>
  readonly metadata: Pick<Row["metadata"], "usage">
}

/** The figures of one finished row. `fate` says where it went. */
export const ofRow = (row: Counted, fate: "kept" | "no_reasoning" | "invalid_tools"): Statistics => {
  const turns = row.conversations.filter((turn) => turn.from === "gpt")
  return {
    kept: fate === "kept" ? 1 : 0,
    discardedNoReasoning: fate === "no_reasoning" ? 1 : 0,
    discardedInvalidTools: fate === "invalid_tools" ? 1 : 0,
    // A name that a model made up may be of any length; its row has it whole.
    tools: new Map(
      Object.entries(row.tool_stats).flatMap(([name, one]) => (one.count > 0 ? [[name.slice(0, 64), one]] : []))
    ),
    turns: turns.length,
    turnsWithReasoning: turns.filter(hasReasoning).length,
    ...ofUsage(row.metadata.usage, row.api_calls)
  }
}

/** What attempts spent without leaving a row. */
export const ofSpent = (usage: Usage, apiCalls: number): Statistics => ({ ...empty, ...ofUsage(usage, apiCalls) })

const ofUsage = ({ cost_usd, ...tokens }: Usage, apiCalls: number) => ({
  apiCalls,
  tokens,
  costUsd: cost_usd
})

/** What one finished session came to on average, with what was spent in vain meanwhile; undefined where none is finished. */
export const meanOf = (sums: Statistics): Pick<Statistics, "apiCalls" | "tokens" | "costUsd"> | undefined => {
  const finished = sums.kept + sums.discardedNoReasoning + sums.discardedInvalidTools
  if (finished === 0) return undefined
  const { prompt, completion, reasoning, cached, total } = sums.tokens
  return {
    apiCalls: sums.apiCalls / finished,
    tokens: {
      prompt: prompt / finished,
      completion: completion / finished,
      reasoning: reasoning / finished,
      cached: cached / finished,
      total: total / finished
    },
    costUsd: sums.costUsd / finished
  }
}

/** `part` of `whole` in percent, two places; 0 of nothing. */
export const percent = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.round((part / whole) * 10_000) / 100

/** What statistics.json says beside the sums. */
export interface Frame {
  readonly runName: string
  readonly distribution: string
  readonly totalPrompts: number
  readonly totalBatches: number
  readonly batchSize: number
  readonly model: string
  readonly completedAt: string
  readonly durationSeconds: number
  /** Sessions that are still to do after a failed attempt. */
  readonly failed: number
  /** Tools that are listed even when nobody called them. */
  readonly toolNames: ReadonlyArray<string>
}

/** The content of statistics.json. */
export const toJson = (sums: Statistics, frame: Frame): object => ({
  run_name: frame.runName,
  distribution: frame.distribution,
  total_prompts: frame.totalPrompts,
  total_batches: frame.totalBatches,
  batch_size: frame.batchSize,
  model: frame.model,
  completed_at: frame.completedAt,
  duration_seconds: Math.round(frame.durationSeconds * 100) / 100,
  tool_statistics: Object.fromEntries(
    [...new Set([...frame.toolNames, ...sums.tools.keys()])].map((name) => [name, toolJson(sums.tools.get(name))])
  ),
  reasoning_statistics: {
    total_assistant_turns: sums.turns,
    turns_with_reasoning: sums.turnsWithReasoning,
    turns_without_reasoning: sums.turns - sums.turnsWithReasoning
  },
  discarded_no_reasoning: sums.discardedNoReasoning,
  discarded_invalid_tools: sums.discardedInvalidTools,
  failed: frame.failed,
  api_calls: sums.apiCalls,
  tokens: sums.tokens,
  ...(sums.costUsd > 0 && { cost_usd: Math.round(sums.costUsd * 1e8) / 1e8 })
})

const toolJson = ({ count, success, failure }: ToolCount = { count: 0, success: 0, failure: 0 }) => ({
  count,
  success,
  failure,
  success_rate: percent(success, count),
  failure_rate: percent(failure, count)
})
