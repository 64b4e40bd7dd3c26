/** Metrics of a run, counted from what happens in it and from its spans. */
import type { Meter } from "@opentelemetry/api"
import { Effect } from "effect"
import type { Event, EventsService } from "./Events.ts"
import { retryEvent, type Watcher } from "./Spans.ts"

/** Seconds that calls take: from a cached answer to half an hour. */
const seconds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800]

/** What one run counts. */
export interface Figures extends EventsService, Watcher {}

export const make = (meter: Meter): Figures => {
  const counter = (name: string, unit: string) => meter.createCounter(`batch_runner.${name}`, { unit })
  const inFlight = (name: string, unit: string) => meter.createUpDownCounter(`batch_runner.${name}`, { unit })
  const duration = (name: string) =>
    meter.createHistogram(`batch_runner.${name}`, { unit: "s", advice: { explicitBucketBoundaries: seconds } })

  const prompts = counter("prompts", "{prompt}")
  const calls = counter("model.calls", "{call}")
  const retries = counter("model.retries", "{retry}")
  const tokens = counter("tokens", "{token}")
  const cost = counter("cost_usd", "USD")
  const toolCalls = counter("tool.calls", "{call}")
  const promptsInFlight = inFlight("prompts.in_flight", "{prompt}")
  const callsInFlight = inFlight("model.calls.in_flight", "{call}")
  const callSeconds = duration("model.call.duration")
  const toolSeconds = duration("tool.call.duration")

  const count = (event: Event): void => {
    if (event.event === "turn" || event.event === "aside") {
      tokens.add(event.prompt_tokens, { type: "prompt" })
      tokens.add(event.completion_tokens, { type: "completion" })
      cost.add(event.cost_usd)
    }
    if (event.event === "retry") retries.add(1, { kind: event.kind })
    if (event.event === "tool") {
      toolSeconds.record(event.took / 1000, { tool: event.tool })
      toolCalls.add(1, { tool: event.tool, ok: String(event.ok) })
    }
  }

  return {
    on: true,
    emit: (event) =>
      Effect.suspend(() => {
        count(event)
        if (event.event !== "retry") return Effect.void
        const { kind, next_try, wait } = event
        return Effect.clockWith((clock) =>
          Effect.ignore(
            Effect.map(Effect.currentSpan, (span) =>
              span.event(retryEvent, clock.unsafeCurrentTimeNanos(), { kind, next_try, wait })
            )
          )
        )
      }),
    began: (name) => {
      if (name === "prompt") promptsInFlight.add(1)
      if (name === "model.complete") callsInFlight.add(1)
    },
    // A call that fails is no event, so calls are counted by their spans, and prompts as they are.
    ended: ({ name, seconds: took, attributes }) => {
      const kind = attributes.get("batch_runner.kind")
      if (name === "prompt") {
        promptsInFlight.add(-1)
        prompts.add(1, {
          outcome: String(attributes.get("batch_runner.outcome")),
          ...(kind !== undefined && { kind: String(kind) })
        })
      }
      if (name === "model.complete") {
        callsInFlight.add(-1)
        callSeconds.record(took)
        calls.add(1, { outcome: String(attributes.get("error.type") ?? "ok") })
      }
    }
  }
}
