/** Metrics of a run, counted from what happens in it, and as collectors take them. */
import { Effect, Metric, MetricBoundaries, MetricLabel, MetricState } from "effect"
import type { Event, EventsService } from "./Events.ts"
import * as Otlp from "./Otlp.ts"
import { type Ended, retryEvent } from "./Spans.ts"

/** Seconds that calls take: from a cached answer to half an hour. */
const seconds = MetricBoundaries.fromIterable([0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800])

const counter = (name: string) => Metric.counter(`batch_runner.${name}`, { incremental: true })

const prompts = counter("prompts")
const calls = counter("model.calls")
const retries = counter("model.retries")
const tokens = counter("tokens")
const cost = counter("cost_usd")
const toolCalls = counter("tool.calls")
const promptsInFlight = Metric.gauge("batch_runner.prompts.in_flight")
const callsInFlight = Metric.gauge("batch_runner.model.calls.in_flight")
const callSeconds = Metric.histogram("batch_runner.model.call.duration", seconds)
const toolSeconds = Metric.histogram("batch_runner.tool.call.duration", seconds)

const units: Readonly<Record<string, string>> = {
  "batch_runner.prompts": "{prompt}",
  "batch_runner.prompts.in_flight": "{prompt}",
  "batch_runner.model.calls": "{call}",
  "batch_runner.model.calls.in_flight": "{call}",
  "batch_runner.model.retries": "{retry}",
  "batch_runner.tokens": "{token}",
  "batch_runner.cost_usd": "USD",
  "batch_runner.tool.calls": "{call}",
  "batch_runner.model.call.duration": "s",
  "batch_runner.tool.call.duration": "s"
}

/** Cheap enough for every call: no metric is made for its labels, they are looked up. */
const add = (metric: Metric.Metric.Counter<number>, amount: number, labels: Readonly<Record<string, string>>): void => {
  if (amount > 0) metric.unsafeUpdate(amount, labelsOf(labels))
}

const labelsOf = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels).map(([name, value]) => MetricLabel.make(name, value))

/** What one run counts. */
export interface Figures extends EventsService {
  readonly began: (name: string) => void
  readonly ended: (span: Ended) => void
  /** All metrics as a collector takes them; `started` is when the counts were zero, both are nanoseconds since the epoch. */
  readonly snapshot: (started: bigint, now: bigint) => ReadonlyArray<object>
}

/** Changes a gauge by so much. */
const counting = (gauge: Metric.Metric.Gauge<number>) => {
  let now = 0
  return (change: number): void => {
    now += change
    gauge.unsafeUpdate(now, [])
  }
}

export const make = (): Figures => {
  const prompt = counting(promptsInFlight)
  const call = counting(callsInFlight)

  const count = (event: Event): void => {
    if (event.event === "turn") {
      add(tokens, event.prompt_tokens, { type: "prompt" })
      add(tokens, event.completion_tokens, { type: "completion" })
      add(cost, event.cost_usd, {})
    }
    if (event.event === "retry") add(retries, 1, { kind: event.kind })
    if (event.event === "tool") {
      toolSeconds.unsafeUpdate(event.took / 1000, labelsOf({ tool: event.tool }))
      add(toolCalls, 1, { tool: event.tool, ok: String(event.ok) })
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
      if (name === "prompt") prompt(1)
      if (name === "model.complete") call(1)
    },
    // A call that fails is no event, so calls are counted by their spans, and prompts as they are.
    ended: ({ name, seconds: took, attributes }) => {
      const kind = attributes.get("batch_runner.kind")
      if (name === "prompt") {
        prompt(-1)
        add(prompts, 1, {
          outcome: String(attributes.get("batch_runner.outcome")),
          ...(kind !== undefined && { kind: String(kind) })
        })
      }
      if (name === "model.complete") {
        call(-1)
        callSeconds.unsafeUpdate(took, [])
        add(calls, 1, { outcome: String(attributes.get("error.type") ?? "ok") })
      }
    },
    snapshot
  }
}

const cumulative = { aggregationTemporality: 2 }

const snapshot = (started: bigint, now: bigint): ReadonlyArray<object> => {
  const times = { startTimeUnixNano: String(started), timeUnixNano: String(now) }
  const all = new Map<string, { readonly state: MetricState.MetricState.Untyped; readonly points: Array<object> }>()
  for (const { metricKey, metricState } of Metric.unsafeSnapshot()) {
    if (units[metricKey.name] === undefined) continue
    const attributes = Otlp.attributesOf(metricKey.tags.map(({ key, value }) => [key, value] as const))
    const points: Array<object> = all.get(metricKey.name)?.points ?? []
    points.push({ attributes, ...times, ...pointOf(metricState) })
    all.set(metricKey.name, { state: metricState, points })
  }
  return Array.from(all, ([name, { state, points }]) => ({ name, unit: units[name], ...dataOf(state, points) }))
}

const pointOf = (state: MetricState.MetricState.Untyped): object => {
  if (MetricState.isCounterState(state)) return { asDouble: Number(state.count) }
  if (MetricState.isGaugeState(state)) return { asDouble: Number(state.value) }
  if (!MetricState.isHistogramState(state)) return {}
  const { buckets, count, sum, min, max } = state
  // Each counts those below it too, and the last one has no bound.
  const counts = buckets.map(([, upTo], at) => String(upTo - (buckets[at - 1]?.[1] ?? 0)))
  const explicitBounds = buckets.slice(0, -1).map(([bound]) => bound)
  return { count: String(count), sum, ...(count > 0 && { min, max }), bucketCounts: counts, explicitBounds }
}

const dataOf = (state: MetricState.MetricState.Untyped, dataPoints: ReadonlyArray<object>): object => {
  if (MetricState.isCounterState(state)) return { sum: { ...cumulative, isMonotonic: true, dataPoints } }
  return MetricState.isGaugeState(state) ? { gauge: { dataPoints } } : { histogram: { ...cumulative, dataPoints } }
}
