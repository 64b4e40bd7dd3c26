/** The span of a call of the model, whoever asks: the waits and tries inside it included. */
import { type Effect, Exit } from "effect"
import * as Span from "../events/Span.ts"
import { type Answer, kindOf, type ModelError } from "./Model.ts"

/** `call` as a span, with what tells whose it is. */
export const around = <R>(
  attributes: Span.Attributes,
  call: Effect.Effect<Answer, ModelError, R>
): Effect.Effect<Answer, ModelError, R> =>
  Span.within(
    "model.complete",
    {
      kind: "client",
      attributes: { "gen_ai.operation.name": "chat", ...attributes },
      ended: Exit.match({
        onSuccess: ({ usage, finishReason, toolCalls }) => ({
          "gen_ai.usage.input_tokens": usage.prompt,
          "gen_ai.usage.output_tokens": usage.completion,
          "gen_ai.response.finish_reasons": [finishReason],
          "batch_runner.tool_calls": toolCalls.length,
          "batch_runner.cost_usd": usage.cost_usd
        }),
        onFailure: Span.failure(({ reason, status }) => ({
          "error.type": kindOf(reason),
          ...(status > 0 && { "http.response.status_code": status })
        }))
      })
    },
    call
  )
