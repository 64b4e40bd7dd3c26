/** Rows, failures and entries as attempts make them, for tests of what becomes of them. */
import * as ContentKey from "../../src/dataset/ContentKey.ts"
import type { Entry } from "../../src/store/Store.ts"
import { Outcome } from "../../src/trajectory/Outcome.ts"
import type { Row } from "../../src/trajectory/Trajectory.ts"

/** Tools of the runs that these rows belong to. */
export const toolNames: ReadonlyArray<string> = ["terminal", "todo"]

/** The keys of a row, in their order. */
export const rowKeys: ReadonlyArray<string> = [
  "prompt_index",
  "conversations",
  "metadata",
  "completed",
  "partial",
  "api_calls",
  "toolsets_used",
  "tool_stats",
  "tool_error_counts",
  "tools",
  "system",
  "source"
]

export const usage = { prompt: 10, completion: 5, reasoning: 2, cached: 1, total: 15, cost_usd: 0.25 }

/** What a test says of an attempt; the rest is made up. */
export interface About {
  readonly prompt: string
  readonly place?: number
  readonly occurrence?: number
  readonly sample?: number
  readonly batch?: number
  readonly image?: string
  readonly cwd?: string
  readonly defaultCwd?: boolean
  readonly answer?: string
  /** Calls by tool, all of them good. */
  readonly calls?: Readonly<Record<string, number>>
  /** Of a failure. */
  readonly kind?: string
}

export const row = (about: About): Row => {
  const counts = { ...Object.fromEntries(toolNames.map((name) => [name, 0])), ...about.calls }
  return {
    prompt_index: about.place ?? 0,
    conversations: [
      { from: "human", value: about.prompt, tool_calls: [], tool_call_id: "", name: "" },
      {
        from: "gpt",
        value: about.answer ?? "<think>\nHm.\n</think>\nDone.",
        tool_calls: [],
        tool_call_id: "",
        name: ""
      }
    ],
    metadata: {
      batch_num: about.batch ?? 0,
      timestamp: "2026-01-15T10:30:00",
      model: "test-model",
      image: about.image ?? "",
      cwd: about.cwd ?? "",
      default_image: false,
      default_cwd: about.defaultCwd ?? false,
      sample: about.sample ?? 0,
      occurrence: about.occurrence ?? 0,
      shortened: 0,
      usage
    },
    completed: true,
    partial: false,
    api_calls: 1,
    toolsets_used: ["terminal"],
    tool_stats: Object.fromEntries(
      Object.entries(counts).map(([name, count]) => [name, { count, success: count, failure: 0 }])
    ),
    tool_error_counts: Object.fromEntries(Object.keys(counts).map((name) => [name, 0])),
    tools: "[]",
    system: "",
    source: "{}"
  }
}

const keyOf = (about: About) =>
  ContentKey.of({
    text: about.prompt,
    image: about.image ?? "",
    cwd: about.defaultCwd === true ? "" : (about.cwd ?? "")
  })

const entry = (about: About, outcome: Outcome): Entry => ({
  key: keyOf(about),
  occurrence: about.occurrence ?? 0,
  sample: about.sample ?? 0,
  place: about.place ?? 0,
  batch: about.batch ?? 0,
  outcome
})

export const kept = (about: About): Entry => entry(about, Outcome.Kept({ row: row(about) }))

export const discarded = (about: About): Entry =>
  entry(
    about,
    Outcome.Discarded({ row: { ...row({ ...about, answer: about.answer ?? "Done." }), reason: "no_reasoning" } })
  )

export const failed = (about: About): Entry =>
  entry(
    about,
    Outcome.Failed({
      failure: {
        prompt_index: about.place ?? 0,
        sample: about.sample ?? 0,
        occurrence: about.occurrence ?? 0,
        prompt_key: ContentKey.toText(keyOf(about)),
        batch_num: about.batch ?? 0,
        attempt: 1,
        kind: about.kind ?? "overloaded",
        conversations: [],
        error: "ModelError",
        reason: "Overloaded",
        message: "HTTP 503",
        retryable: true,
        timestamp: "2026-01-15T10:30:00",
        api_calls: 1,
        usage
      }
    })
  )
