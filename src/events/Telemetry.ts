/** Traces and metrics of a run on their way to a collector, by the SDK of OpenTelemetry; loaded when one is named. */
import { OTLPMetricExporter as JsonMetrics } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPMetricExporter as ProtobufMetrics } from "@opentelemetry/exporter-metrics-otlp-proto"
import { OTLPTraceExporter as JsonTraces } from "@opentelemetry/exporter-trace-otlp-http"
import { OTLPTraceExporter as ProtobufTraces } from "@opentelemetry/exporter-trace-otlp-proto"
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources"
import {
  type InstrumentType,
  MeterProvider,
  type MetricReader,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { BasicTracerProvider, BatchSpanProcessor, type SpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Duration, Effect, Runtime, type Tracer } from "effect"
import type { Collector, Receiver } from "./Collector.ts"
import type { EventsService } from "./Events.ts"
import { Exporter, lastLimit } from "./Exporter.ts"
import * as Figures from "./Figures.ts"
import type { Attributes } from "./Span.ts"
import * as Spans from "./Spans.ts"

export interface Telemetry {
  readonly events: EventsService
  readonly tracer: Tracer.Tracer
}

/** What the spans and metrics of this scope say goes to the collector; `calls` are attributes of every model call. */
export const open = Effect.fn("Telemetry.open")(function* (collector: Collector, version: string, calls: Attributes) {
  const { traces, metrics, every } = collector
  const runtime = yield* Effect.runtime<never>()
  let warned = false
  const refusedBy =
    ({ origin }: Receiver) =>
    (why: string) => {
      if (warned) return
      warned = true
      Runtime.runFork(runtime)(
        Effect.logWarning(
          `the OpenTelemetry collector at ${origin} does not take what it is sent (${why}); the run goes on, and this is said once`
        )
      )
    }

  const resource = defaultResource()
    .merge(resourceFromAttributes({ "service.name": "batch-runner", "service.version": version }))
    .merge(detectResources({ detectors: [envDetector] }))

  const last = { timeoutMillis: Duration.toMillis(lastLimit) }
  const endings: Array<Effect.Effect<void>> = []
  const spanProcessors: Array<SpanProcessor> = []
  const readers: Array<MetricReader> = []
  if (traces !== undefined) {
    const Sending = traces.protocol === "http/json" ? JsonTraces : ProtobufTraces
    const exporter = new Exporter(new Sending(), new Sending(last), refusedBy(traces))
    spanProcessors.push(new BatchSpanProcessor(exporter))
    endings.push(exporter.end(() => tracers.shutdown()))
  }
  if (metrics !== undefined) {
    const Sending = metrics.protocol === "http/json" ? JsonMetrics : ProtobufMetrics
    const usual = new Sending()
    const exporter = Object.assign(new Exporter(usual, new Sending(last), refusedBy(metrics)), {
      selectAggregationTemporality: (instrument: InstrumentType) => usual.selectAggregationTemporality(instrument)
    })
    readers.push(new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: every }))
    endings.push(exporter.end(() => meters.shutdown()))
  }
  const tracers = new BasicTracerProvider({ resource, spanProcessors })
  const meters = new MeterProvider({ resource, readers })
  yield* Effect.addFinalizer(() => Effect.all(endings, { concurrency: "unbounded", discard: true }))

  const figures = Figures.make(meters.getMeter("batch-runner"))
  const telemetry: Telemetry = {
    events: figures,
    tracer: Spans.tracer(tracers.getTracer("batch-runner"), figures, { "model.complete": calls })
  }
  return telemetry
})
