/** The JSON of OTLP: what collectors take for traces and metrics. */
export type Attribute = { readonly key: string; readonly value: Value }

type Value =
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  /** 64 bits, so a text. */
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly arrayValue: { readonly values: ReadonlyArray<Value> } }

/** Characters of a text at most. */
const longest = 256

const valueOf = (value: unknown): Value => {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(valueOf) } }
  if (typeof value === "boolean") return { boolValue: value }
  if (typeof value === "number" && Number.isFinite(value)) {
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  }
  return { stringValue: String(value).slice(0, longest).toWellFormed() }
}

export const attributesOf = (entries: Iterable<readonly [string, unknown]>): ReadonlyArray<Attribute> =>
  Array.from(entries, ([key, value]) => ({ key, value: valueOf(value) }))

/** Who sends. */
export type Resource = Readonly<Record<string, string>>

const resourceOf = (resource: Resource) => ({ attributes: attributesOf(Object.entries(resource)) })

const scope = { name: "batch-runner" }

export interface SpanJson {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<Attribute>
  readonly events: ReadonlyArray<{
    readonly name: string
    readonly timeUnixNano: string
    readonly attributes: ReadonlyArray<Attribute>
  }>
  /** 0 unset, 2 error. */
  readonly status: { readonly code: number; readonly message?: string }
}

/** The body of an export of spans. */
export const traces = (resource: Resource, spans: ReadonlyArray<SpanJson>): string =>
  JSON.stringify({ resourceSpans: [{ resource: resourceOf(resource), scopeSpans: [{ scope, spans }] }] })

/** The body of an export of metrics. */
export const metrics = (resource: Resource, all: ReadonlyArray<object>): string =>
  JSON.stringify({ resourceMetrics: [{ resource: resourceOf(resource), scopeMetrics: [{ scope, metrics: all }] }] })
