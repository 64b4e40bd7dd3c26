/** What happened in one session so far: answers and tool results in order, with what they cost. */
import type { Answer, ToolCall, Usage } from "../model/Model.ts"
import type { Invoked } from "../tools/Invoke.ts"

export type Event =
  | { readonly _tag: "Answered"; readonly answer: Answer }
  | { readonly _tag: "Called"; readonly call: ToolCall; readonly result: Invoked }

export const noUsage: Usage = { prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0, cost_usd: 0 }

export const addUsage = (a: Usage, b: Usage): Usage => ({
  prompt: a.prompt + b.prompt,
  completion: a.completion + b.completion,
  reasoning: a.reasoning + b.reasoning,
  cached: a.cached + b.cached,
  total: a.total + b.total,
  cost_usd: a.cost_usd + b.cost_usd
})

/** Grows while the session runs, so that one that is cut short still tells what it spent. */
export class Transcript {
  readonly events: Array<Event> = []
  /** Answers received, empty ones included. */
  apiCalls = 0
  usage: Usage = noUsage

  /** An answer arrived, whatever it is worth. */
  received(answer: Answer): void {
    this.apiCalls++
    this.usage = addUsage(this.usage, answer.usage)
  }

  answered(answer: Answer): void {
    this.events.push({ _tag: "Answered", answer })
  }

  called(call: ToolCall, result: Invoked): void {
    this.events.push({ _tag: "Called", call, result })
  }
}
