/** Traces and metrics of a run on their way to a collector of OpenTelemetry; loaded when one is named. */
import { Effect, FiberRef, HashMap, type Tracer } from "effect"
import type { Collector, Receiver } from "./Collector.ts"
import type { EventsService } from "./Events.ts"
import * as Figures from "./Figures.ts"
import * as Otlp from "./Otlp.ts"
import * as Sender from "./Sender.ts"
import type { Attributes } from "./Span.ts"
import * as Spans from "./Spans.ts"

/** Spans that wait at most. */
const most = 10_000

export interface Telemetry {
  readonly events: EventsService
  readonly tracer: Tracer.Tracer
}

/** What the spans and metrics of this scope say goes to the collector; `calls` are attributes of every model call. */
export const open = Effect.fn("Telemetry.open")(function* (collector: Collector, calls: Attributes) {
  const { traces, metrics, resource } = collector
  const clock = yield* Effect.clock
  const started = clock.unsafeCurrentTimeNanos()
  const figures = Figures.make()
  let spans: Array<Otlp.SpanJson> = []
  let warned = false
  const refused = ({ url }: Receiver, why: string) =>
    Effect.suspend(() => {
      if (warned) return Effect.void
      warned = true
      const { origin } = new URL(url)
      return Effect.logWarning(
        `the OpenTelemetry collector at ${origin} does not take what it is sent (${why}); the run goes on, and this is said once`
      ).pipe(Effect.locally(FiberRef.currentLogAnnotations, HashMap.empty()))
    })

  const sources: Array<Sender.Source> = []
  if (traces !== undefined) {
    sources.push({
      receiver: traces,
      rest: () => spans.length,
      next: Effect.sync(() => {
        const some = spans.slice(0, Sender.group)
        spans = spans.slice(Sender.group)
        return some.length === 0 ? undefined : Otlp.traces(resource, some)
      })
    })
  }
  if (metrics !== undefined) {
    sources.push({
      receiver: metrics,
      rest: () => 0,
      next: Effect.sync(() => Otlp.metrics(resource, figures.snapshot(started, clock.unsafeCurrentTimeNanos())))
    })
  }
  yield* Sender.run(sources, refused)

  const watcher: Spans.Watcher = {
    began: figures.began,
    ended: figures.ended,
    take: (span) => {
      if (traces !== undefined && spans.length < most) spans.push(span)
    }
  }
  const telemetry: Telemetry = { events: figures, tracer: Spans.tracer(watcher, { "model.complete": calls }) }
  return telemetry
})
