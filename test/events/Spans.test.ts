/** Spans of a run: only its own, each under the nearest that is told, and without a word of the conversation. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Logger } from "effect"
import * as Figures from "../../src/events/Figures.ts"
import type { SpanJson } from "../../src/events/Otlp.ts"
import * as Span from "../../src/events/Span.ts"
import * as Spans from "../../src/events/Spans.ts"

/** What a tracer tells of an effect. */
const traced = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const spans: Array<SpanJson> = []
    const tracer = Spans.tracer(
      { began: () => {}, ended: () => {}, take: (span) => void spans.push(span) },
      { "model.complete": { "gen_ai.request.model": "m" } }
    )
    yield* Effect.exit(Effect.withTracer(effect, tracer))
    return spans
  })

const nothing = { attributes: {}, ended: () => ({}) }

const within = <A, E>(name: string, effect: Effect.Effect<A, E>) =>
  Span.within(
    name,
    {
      attributes: {},
      ended: Exit.match({ onSuccess: () => ({}), onFailure: Span.failure(() => ({ "error.type": "odd" })) })
    },
    effect
  )

describe("A span", () => {
  it.effect("of the library is passed over: what is in it belongs to the nearest one above.", () =>
    Effect.gen(function* () {
      const spans = yield* traced(
        Effect.void.pipe(
          (inner) => within("model.complete", inner),
          Effect.withSpan("Retry.again"),
          Effect.withSpan("prompter"),
          (inner) => Span.within("prompt", { ...nothing, root: true }, inner),
          Effect.withSpan("Pipeline.run")
        )
      )
      const [call, prompt] = spans
      expect(spans.map(({ name }) => name)).toEqual(["model.complete", "prompt"])
      expect(call).toMatchObject({ parentSpanId: prompt?.spanId, traceId: prompt?.traceId })
      expect(call?.attributes).toEqual([{ key: "gen_ai.request.model", value: { stringValue: "m" } }])
      expect(prompt).toMatchObject({ parentSpanId: "", traceId: expect.stringMatching(/^[0-9a-f]{32}$/) })
    })
  )
  it.effect("holds neither log lines nor the message of an error, but its kind.", () =>
    Effect.gen(function* () {
      const spans = yield* traced(
        within(
          "execute_tool terminal",
          Effect.zipRight(Effect.logInfo("SECRET line"), Effect.fail(new Error("SECRET message")))
        )
      ).pipe(Effect.provide(Logger.add(Logger.none)))
      expect(spans).toMatchObject([{ status: { code: 2, message: "odd" }, events: [] }])
      expect(JSON.stringify(spans)).not.toContain("SECRET")
    })
  )
  it.effect("that was stopped from outside is no error.", () =>
    Effect.gen(function* () {
      const [span] = yield* traced(within("prompt", Effect.interrupt))
      expect(span).toMatchObject({
        status: { code: 0 },
        attributes: [{ key: "error.type", value: { stringValue: "released" } }]
      })
    })
  )
  it.effect("of a model call has its retries as events.", () =>
    Effect.gen(function* () {
      const retry = Figures.make().emit({
        event: "retry",
        prompt_index: 0,
        sample: 0,
        kind: "rate_limited",
        next_try: 2,
        wait: 500
      })
      const [span] = yield* traced(within("model.complete", Effect.withSpan(retry, "Retry.again")))
      expect(span?.events).toMatchObject([
        {
          name: "batch_runner.retry",
          attributes: [
            { key: "kind", value: { stringValue: "rate_limited" } },
            { key: "next_try", value: { intValue: "2" } },
            { key: "wait", value: { intValue: "500" } }
          ]
        }
      ])
    })
  )
  it.effect("is nothing where nobody takes it.", () =>
    Effect.gen(function* () {
      let asked = 0
      const options = {
        attributes: {},
        ended: () => {
          asked++
          return {}
        }
      }
      yield* Effect.withTracerEnabled(Span.within("prompt", options, Effect.void), false)
      expect(asked).toBe(0)
    })
  )
})
