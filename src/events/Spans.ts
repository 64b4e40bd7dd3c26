/** The tracer of a run: spans of prompts, model calls, tool calls and sandboxes become those of OpenTelemetry, and nothing of all others that the program has. */
import * as Otel from "@opentelemetry/api"
import { type Context, type Exit, Option, Tracer } from "effect"
import { type Attributes, released } from "./Span.ts"

/** What a span that ended tells, also to those who only count. */
export interface Ended {
  readonly name: string
  readonly seconds: number
  readonly attributes: ReadonlyMap<string, unknown>
}

/** Hears of every span that is told, also of those that a sampler leaves out. */
export interface Watcher {
  readonly began: (name: string) => void
  readonly ended: (span: Ended) => void
}

const kinds = {
  internal: Otel.SpanKind.INTERNAL,
  server: Otel.SpanKind.SERVER,
  client: Otel.SpanKind.CLIENT,
  producer: Otel.SpanKind.PRODUCER,
  consumer: Otel.SpanKind.CONSUMER
}

/** Names of spans that are told; all others belong to the library and its logger. */
const isOurs = (name: string): boolean =>
  name === "prompt" || name === "model.complete" || name === "sandbox.open" || name.startsWith("execute_tool ")

/** Events of a span that are told: log lines come the same way, and hold texts. */
export const retryEvent = "batch_runner.retry"

/** Characters of a text at most. */
const longest = 256

const valueOf = (value: unknown): Otel.AttributeValue => {
  if (Array.isArray(value)) return value.map((each) => textOf(each))
  return typeof value === "number" || typeof value === "boolean" ? value : textOf(value)
}

const textOf = (value: unknown): string => String(value).slice(0, longest).toWellFormed()

const billion = 1_000_000_000n

/** Of nanoseconds since the epoch. */
const timeOf = (nanos: bigint): Otel.HrTime => [Number(nanos / billion), Number(nanos % billion)]

class Bridge implements Tracer.Span {
  readonly _tag = "Span"
  readonly spanId: string
  readonly traceId: string
  readonly sampled: boolean
  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly links: ReadonlyArray<Tracer.SpanLink>
  readonly kind: Tracer.SpanKind
  readonly attributes = new Map<string, unknown>()
  status: Tracer.SpanStatus
  /** Its own span, or of one that is passed over the nearest above: what is below belongs to that. */
  readonly nearest: Otel.Span | undefined
  private readonly watcher: Watcher | undefined

  /** Without a watcher it is passed over. */
  constructor(
    given: Pick<Tracer.Span, "name" | "parent" | "context" | "links" | "kind">,
    startTime: bigint,
    nearest: Otel.Span | undefined,
    watcher: Watcher | undefined
  ) {
    const { spanId = "", traceId = "" } = nearest?.spanContext() ?? {}
    this.spanId = spanId
    this.traceId = traceId
    this.sampled = watcher !== undefined
    this.name = given.name
    this.parent = given.parent
    this.context = given.context
    this.links = given.links
    this.kind = given.kind
    this.status = { _tag: "Started", startTime }
    this.nearest = nearest
    this.watcher = watcher
  }

  attribute(key: string, value: unknown): void {
    if (this.watcher === undefined) return
    this.attributes.set(key, value)
    this.nearest?.setAttribute(key, valueOf(value))
  }

  event(name: string, startTime: bigint, attributes: Readonly<Record<string, unknown>> = {}): void {
    if (name !== retryEvent) return
    const told = Object.entries(attributes).map(([key, value]) => [key, valueOf(value)] as const)
    this.nearest?.addEvent(name, Object.fromEntries(told), timeOf(startTime))
  }

  addLinks(): void {}

  /** What went wrong is told by its kind alone: messages may hold texts of the conversation. */
  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    const { name, attributes, nearest, watcher } = this
    const { startTime } = this.status
    this.status = { _tag: "Ended", startTime, endTime, exit }
    if (watcher === undefined) return
    watcher.ended({ name, seconds: Number(endTime - startTime) / 1e9, attributes })
    const error = attributes.get("error.type")
    if (error !== undefined && error !== released) {
      nearest?.setStatus({ code: Otel.SpanStatusCode.ERROR, message: textOf(error) })
    }
    nearest?.end(timeOf(endTime))
  }
}

/** `constant` are attributes by the name of a span, such as the model that all calls ask. */
export const tracer = (
  otel: Otel.Tracer,
  watcher: Watcher,
  constant: Readonly<Record<string, Attributes>>
): Tracer.Tracer =>
  Tracer.make({
    span: (name, parent, context, links, startTime, kind) => {
      const given = { name, parent, context, links, kind }
      const outer = Option.getOrUndefined(parent)
      const above = outer instanceof Bridge ? outer.nearest : undefined
      if (!isOurs(name)) return new Bridge(given, startTime, above, undefined)
      const place = above === undefined ? Otel.ROOT_CONTEXT : Otel.trace.setSpan(Otel.ROOT_CONTEXT, above)
      const own = otel.startSpan(name, { kind: kinds[kind], startTime: timeOf(startTime) }, place)
      const span = new Bridge(given, startTime, own, watcher)
      for (const [key, value] of Object.entries(constant[name] ?? {})) span.attribute(key, value)
      watcher.began(name)
      return span
    },
    context: (run) => run()
  })
