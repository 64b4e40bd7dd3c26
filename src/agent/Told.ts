/** What a session tells of its sandbox, its model calls and its tool calls as they end: a span of each, and an event of calls. */
import { type Effect, Exit } from "effect"
import * as Events from "../events/Events.ts"
import * as Span from "../events/Span.ts"
import * as CallSpan from "../model/CallSpan.ts"
import type { Answer, ModelError, ToolCall } from "../model/Model.ts"
import type { SandboxError, SandboxService } from "../sandbox/Sandbox.ts"
import type { Invoked } from "../tools/Invoke.ts"
import type { Needs, RunError, Tool } from "../tools/Tool.ts"
import { kindOf } from "./Ending.ts"

interface Whose {
  readonly place: number
  readonly sample: number
  readonly tools: ReadonlyArray<Tool>
}

/** A call of the model, the waits and tries inside it included; `turn` counts the session's answers from 0. */
export const asking = <R>(
  { place, sample }: Whose,
  turn: number,
  call: Effect.Effect<Answer, ModelError, R>
): Effect.Effect<Answer, ModelError, R> =>
  CallSpan.around(
    { "batch_runner.turn": turn },
    Events.timed(call, ({ finishReason, toolCalls, usage }, took) => ({
      event: "turn",
      prompt_index: place,
      sample,
      turn,
      finish_reason: finishReason,
      tool_calls: toolCalls.length,
      prompt_tokens: usage.prompt,
      completion_tokens: usage.completion,
      cost_usd: usage.cost_usd,
      took
    }))
  )

/** A call of a tool. A name that is not on offer is the model's own text, and told as `unknown`. */
export const calling = (
  { place, sample, tools }: Whose,
  { name }: ToolCall,
  call: Effect.Effect<Invoked, RunError, Needs>
): Effect.Effect<Invoked, RunError, Needs> => {
  const tool = tools.some((one) => one.name === name) ? name : "unknown"
  return Span.within(
    `execute_tool ${tool}`,
    {
      attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool },
      ended: Exit.match({
        onSuccess: ({ ok }) => ({ "batch_runner.ok": ok, ...(!ok && { "error.type": "tool_error" }) }),
        onFailure: Span.failure((error) => ({ "error.type": kindOf(error) }))
      })
    },
    Events.timed(call, ({ ok }, took) => ({ event: "tool", prompt_index: place, sample, tool, ok, took }))
  )
}

/** The opening of a sandbox, the wait for its turn included. */
export const opening = <R>(
  open: Effect.Effect<SandboxService, SandboxError, R>
): Effect.Effect<SandboxService, SandboxError, R> =>
  Span.within(
    "sandbox.open",
    {
      attributes: {},
      ended: Exit.match({
        onSuccess: () => ({}),
        onFailure: Span.failure((error) => ({ "error.type": kindOf(error) }))
      })
    },
    open
  )
