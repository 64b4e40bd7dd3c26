/** The end of an exporter: bounded, shorter for a collector that refuses, and told when it was too short. */
import { describe, expect, it } from "@effect/vitest"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Effect, Fiber, TestClock } from "effect"
import { Exporter } from "../../src/events/Exporter.ts"
import { type Collector, collect } from "../support/Collector.ts"

/** An exporter of spans to a collector, a span on its way through it, and what it said of refusals. */
const exporting = ({ url }: Collector) => {
  const refusals: Array<string> = []
  const exporter = new Exporter(
    new OTLPTraceExporter({ url }),
    new OTLPTraceExporter({ url: `${url}/last`, timeoutMillis: 100 }),
    (why) => void refusals.push(why)
  )
  const processor = new BatchSpanProcessor(exporter)
  const provider = new BasicTracerProvider({ spanProcessors: [processor] })
  const span = () => provider.getTracer("test").startSpan("prompt").end()
  return { exporter, provider, processor, span, refusals }
}

/** Whether an end that never comes is over after so many seconds. */
const overAfter = (exporter: { readonly end: Exporter<never>["end"] }, ...seconds: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const end = yield* Effect.fork(exporter.end(() => new Promise(() => {})))
    const over: Array<boolean> = []
    for (const each of seconds) {
      yield* TestClock.adjust(`${each} seconds`)
      over.push((yield* Fiber.poll(end))._tag === "Some")
    }
    return over
  })

describe("The end of an exporter", () => {
  it.effect("is four seconds at most, and what they did not suffice for is told.", () =>
    Effect.gen(function* () {
      const { exporter, refusals } = exporting(yield* Effect.promise(() => collect()))
      expect(yield* overAfter(exporter, 3.9, 0.2)).toEqual([false, true])
      expect(refusals).toEqual(["no answer in time"])
    })
  )
  it.effect("is a second for a collector that did not take what it was sent last.", () =>
    Effect.gen(function* () {
      const { exporter, processor, span, refusals } = exporting(yield* Effect.promise(() => collect(() => 500)))
      span()
      yield* Effect.ignore(Effect.tryPromise(() => processor.forceFlush()))
      expect(refusals).toEqual(["HTTP 500"])
      expect(yield* overAfter(exporter, 0.9, 0.2)).toEqual([false, true])
    })
  )
  it.effect("sends what is left, with less time for it and without another try.", () =>
    Effect.gen(function* () {
      const collector = yield* Effect.promise(() => collect(() => 503))
      const { exporter, provider, span, refusals } = exporting(collector)
      span()
      yield* exporter.end(() => provider.shutdown())
      expect(collector.requests.map(({ path }) => path)).toEqual(["/last"])
      expect(refusals).toEqual(["Export failed with retryable status"])
    })
  )
})
