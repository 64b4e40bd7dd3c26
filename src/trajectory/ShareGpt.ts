/** A session as ShareGPT turns and as tool counts. */
import type { Event } from "../agent/Transcript.ts"
import type { Answer } from "../model/Model.ts"
import type { ToolCount, Turn } from "./Trajectory.ts"

/** The prompt, then a `gpt` turn an answer and a `tool` turn a result. */
export const conversation = (prompt: string, events: ReadonlyArray<Event>): ReadonlyArray<Turn> => [
  { from: "human", value: prompt, tool_calls: [], tool_call_id: "", name: "" },
  ...events.map((event) => (event._tag === "Answered" ? answerTurn(event.answer) : resultTurn(event)))
]

const answerTurn = (answer: Answer): Turn => ({
  from: "gpt",
  value: answer.reasoning === "" ? answer.content : `<think>\n${answer.reasoning}\n</think>\n${answer.content}`,
  tool_calls: answer.toolCalls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments }
  })),
  tool_call_id: "",
  name: ""
})

const resultTurn = ({ call, result }: Extract<Event, { _tag: "Called" }>): Turn => ({
  from: "tool",
  value: result.text,
  tool_calls: [],
  tool_call_id: call.id,
  name: call.name
})

/** Whether a turn holds reasoning. */
export const hasReasoning = (turn: { readonly from: string; readonly value: string }): boolean =>
  turn.from === "gpt" && turn.value.startsWith("<think>\n")

/** A tool that nobody called. */
export const noCalls: ToolCount = { count: 0, success: 0, failure: 0 }

/** Calls by tool: every name of `known`, zeros included, then any name that the model made up. */
export const toolStats = (known: ReadonlyArray<string>, events: ReadonlyArray<Event>): Record<string, ToolCount> => {
  const calls = new Map<string, ToolCount>()
  for (const event of events) {
    if (event._tag === "Answered") continue
    const { count, success, failure } = calls.get(event.call.name) ?? noCalls
    const { ok } = event.result
    calls.set(event.call.name, {
      count: count + 1,
      success: success + (ok ? 1 : 0),
      failure: failure + (ok ? 0 : 1)
    })
  }
  const counted = known.map((name) => [name, calls.get(name) ?? noCalls] as const)
  for (const name of known) calls.delete(name)
  // A name may be any, `__proto__` too.
  return Object.fromEntries([...counted, ...calls])
}

/** Failures by tool, in the same order. */
export const errorCounts = (stats: Readonly<Record<string, ToolCount>>): Record<string, number> =>
  Object.fromEntries(Object.entries(stats).map(([name, { failure }]) => [name, failure]))
