/** What happened in one session so far: answers and tool results in order, with what they cost. */
import { type Answer, addUsage, noUsage, type ToolCall, type Usage } from "../model/Model.ts"
import type { Invoked } from "../tools/Invoke.ts"
import * as Shorten from "./Shorten.ts"

export type Event =
  | { readonly _tag: "Answered"; readonly answer: Answer }
  | { readonly _tag: "Called"; readonly call: ToolCall; readonly result: Invoked }

/** Grows while the session runs, so that one that is cut short still tells what it spent. */
export class Transcript {
  readonly events: Array<Event> = []
  /** Answers received, empty ones included. */
  apiCalls = 0
  usage: Usage = noUsage
  /** Tool results that were shortened. */
  shortened = 0

  /** An answer arrived, whatever it is worth. */
  received(answer: Answer): void {
    this.apiCalls++
    this.usage = addUsage(this.usage, answer.usage)
  }

  /** A call brought no answer, and spent something all the same. */
  spent(usage: Usage): void {
    this.usage = addUsage(this.usage, usage)
  }

  answered(answer: Answer): void {
    this.events.push({ _tag: "Answered", answer })
  }

  called(call: ToolCall, result: Invoked): void {
    this.events.push({ _tag: "Called", call, result })
  }

  /** Makes tool results shorter where they are long, those that the model has not acted on only where they are huge; tells how many. */
  shorten(): number {
    const lastAnswer = this.events.findLastIndex(({ _tag }) => _tag === "Answered")
    let count = 0
    for (const [at, event] of this.events.entries()) {
      if (event._tag === "Answered") continue
      const { call, result } = event
      const text = at < lastAnswer ? Shorten.older(result.text) : Shorten.newest(result.text)
      if (text === result.text) continue
      this.events[at] = { _tag: "Called", call, result: { ...result, text } }
      count++
    }
    this.shortened += count
    return count
  }
}
