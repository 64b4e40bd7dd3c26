/** What an attempt came to: its row, or its failure, and the line of the log that says so. Pure. */
import { type AttemptError, type Ending, kindOf } from "./agent/Ending.ts"
import * as Preview from "./agent/Preview.ts"
import type { Transcript } from "./agent/Transcript.ts"
import * as ContentKey from "./dataset/ContentKey.ts"
import type { Prompt } from "./dataset/Prompt.ts"
import { filtersReasoning, type Settings } from "./RunConfig.ts"
import type { Unit } from "./store/Resume.ts"
import type { Offer } from "./tools/Toolbox.ts"
import { noReasoning, Outcome } from "./trajectory/Outcome.ts"
import { inventedTools, lacksReasoning } from "./trajectory/Quality.ts"
import * as ShareGpt from "./trajectory/ShareGpt.ts"
import type { Row } from "./trajectory/Trajectory.ts"

/** What a row or a failure is made of. */
export interface About {
  readonly config: Settings
  readonly unit: Unit
  readonly prompt: Prompt
  readonly key: ContentKey.ContentKey
  readonly occurrence: number
  readonly toolsets: ReadonlyArray<string>
  readonly offer: Offer
  readonly transcript: Transcript
  readonly system: string
  readonly now: string
}

/** The row of a session that came to an end, else the failure. */
export const make = (about: About, ending: Ending, toolNames: ReadonlyArray<string>): Outcome =>
  ending._tag === "Broke" ? failed(about, ending.error) : judged(about, rowOf(about, ending, toolNames))

const rowOf = (about: About, ending: Ending, toolNames: ReadonlyArray<string>): Row => {
  const { unit, prompt, config, transcript } = about
  const stats = ShareGpt.toolStats(toolNames, transcript.events)
  return {
    prompt_index: unit.place,
    conversations: ShareGpt.conversation(prompt.text, transcript.events),
    metadata: {
      batch_num: unit.batch,
      timestamp: about.now,
      model: config.model,
      image: prompt.image || config.image,
      cwd: prompt.cwd || config.cwd,
      default_image: prompt.image === "" && config.image !== "",
      default_cwd: prompt.cwd === "" && config.cwd !== "",
      sample: unit.sample,
      occurrence: about.occurrence,
      shortened: transcript.shortened,
      usage: transcript.usage
    },
    completed: ending._tag === "Finished",
    partial: ending._tag === "Cut",
    api_calls: transcript.apiCalls,
    toolsets_used: about.toolsets,
    tool_stats: stats,
    tool_error_counts: ShareGpt.errorCounts(stats),
    tools: about.offer.json,
    system: about.system,
    source: prompt.source
  }
}

/** A finished row, or one set aside by the quality filter. */
const judged = ({ config }: About, row: Row): Outcome =>
  filtersReasoning(config) && lacksReasoning(row)
    ? Outcome.Discarded({ row: { ...row, reason: noReasoning } })
    : Outcome.Kept({ row })

const failed = ({ unit, prompt, key, occurrence, transcript, now }: About, error: AttemptError): Outcome =>
  Outcome.Failed({
    failure: {
      prompt_index: unit.place,
      sample: unit.sample,
      occurrence,
      prompt_key: ContentKey.toText(key),
      batch_num: unit.batch,
      attempt: unit.attempt,
      kind: kindOf(error),
      error: error._tag,
      reason: "reason" in error ? error.reason : error._tag,
      message: error.message,
      retryable: error.transient,
      timestamp: now,
      api_calls: transcript.apiCalls,
      usage: transcript.usage,
      conversations: transcript.events.length === 0 ? [] : ShareGpt.conversation(prompt.text, transcript.events)
    }
  })

/** The outcome as a line of the log. */
export const told = (outcome: Outcome, toolNames: ReadonlyArray<string>, chars: number): string => {
  if (outcome._tag === "Failed") return `failed: ${outcome.failure.message}`
  const { row } = outcome
  const last = row.conversations.at(-1)?.value.replace(/^<think>.*?<\/think>\n/s, "") ?? ""
  const calls = Object.values(row.tool_stats).reduce((sum, { count }) => sum + count, 0)
  const invented = calls === 0 ? [] : inventedTools(row, new Set(toolNames))
  const manner = row.completed ? "" : row.partial ? ", cut short" : ", out of turns"
  const fate =
    outcome._tag === "Discarded"
      ? "discarded, no reasoning"
      : invented.length === 0
        ? "kept"
        : `left out of trajectories.jsonl, no such tool as ${Preview.ofText(invented.join(", "), chars)}`
  return `${fate}${manner}: ${Preview.counted(row.api_calls, "answer")}, ${Preview.counted(calls, "call")}: ${Preview.ofText(last, chars)}`
}
