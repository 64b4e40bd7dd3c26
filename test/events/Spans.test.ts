/** Spans of a run: only its own, each under the nearest that is told, and without a word of the conversation. */
import { describe, expect, it } from "@effect/vitest"
import { createNoopMeter, SpanStatusCode } from "@opentelemetry/api"
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type Sampler,
  SimpleSpanProcessor
} from "@opentelemetry/sdk-trace-base"
import { Effect, Exit, Logger } from "effect"
import * as Figures from "../../src/events/Figures.ts"
import * as Span from "../../src/events/Span.ts"
import * as Spans from "../../src/events/Spans.ts"

/** What a tracer tells of an effect, also to the watcher. */
const heard = <A, E>(effect: Effect.Effect<A, E>, config: { readonly sampler?: Sampler } = {}) =>
  Effect.gen(function* () {
    const exporter = new InMemorySpanExporter()
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)], ...config })
    const watched: Array<string> = []
    const tracer = Spans.tracer(
      provider.getTracer("test"),
      {
        began: (name) => void watched.push(`${name} began`),
        ended: ({ name, attributes }) => void watched.push(`${name} ended ${attributes.get("error.type") ?? ""}`)
      },
      { "model.complete": { "gen_ai.request.model": "m" } }
    )
    yield* Effect.exit(Effect.withTracer(effect, tracer))
    const spans = exporter.getFinishedSpans().map((span) => ({
      name: span.name,
      attributes: span.attributes,
      status: span.status,
      events: span.events.map(({ name, attributes }) => ({ name, attributes })),
      parentSpanId: span.parentSpanContext?.spanId,
      spanId: span.spanContext().spanId,
      traceId: span.spanContext().traceId
    }))
    return { spans, watched }
  })

const traced = <A, E>(effect: Effect.Effect<A, E>) => Effect.map(heard(effect), ({ spans }) => spans)

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
      expect(call?.attributes).toEqual({ "gen_ai.request.model": "m" })
      expect(prompt).toMatchObject({ parentSpanId: undefined, traceId: expect.stringMatching(/^[0-9a-f]{32}$/) })
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
      expect(spans).toMatchObject([{ status: { code: SpanStatusCode.ERROR, message: "odd" }, events: [] }])
      expect(JSON.stringify(spans)).not.toContain("SECRET")
    })
  )
  it.effect("that was stopped from outside is no error.", () =>
    Effect.gen(function* () {
      const [span] = yield* traced(within("prompt", Effect.interrupt))
      expect(span).toMatchObject({
        status: { code: SpanStatusCode.UNSET },
        attributes: { "error.type": "released" }
      })
    })
  )
  it.effect("of a model call has its retries as events.", () =>
    Effect.gen(function* () {
      const retry = Figures.make(createNoopMeter()).emit({
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
          attributes: { kind: "rate_limited", next_try: 2, wait: 500 }
        }
      ])
    })
  )
  it.effect("counts even where a sampler leaves it out.", () =>
    Effect.gen(function* () {
      const { spans, watched } = yield* heard(within("model.complete", Effect.fail("no")), {
        sampler: new AlwaysOffSampler()
      })
      expect(spans).toEqual([])
      expect(watched).toEqual(["model.complete began", "model.complete ended odd"])
    })
  )
  it.effect("has texts of a bounded length.", () =>
    Effect.gen(function* () {
      const attributes = { long: "x".repeat(1000), list: ["y".repeat(1000)], figure: 1, yes: true }
      const [span] = yield* traced(Span.within("prompt", { ...nothing, attributes }, Effect.void))
      expect(span?.attributes).toEqual({ long: "x".repeat(256), list: ["y".repeat(256)], figure: 1, yes: true })
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
