/** The tracer of a run: spans of prompts, model calls, tool calls and sandboxes, and nothing of all others that the program has. */
import { randomUUID } from "node:crypto"
import { type Context, type Exit, Option, Tracer } from "effect"
import * as Otlp from "./Otlp.ts"
import { type Attributes, released } from "./Span.ts"

/** What a span that ended tells, also to those who only count. */
export interface Ended {
  readonly name: string
  readonly seconds: number
  readonly attributes: ReadonlyMap<string, unknown>
}

export interface Watcher {
  readonly began: (name: string) => void
  readonly ended: (span: Ended) => void
  /** The span as a collector takes it. */
  readonly take: (span: Otlp.SpanJson) => void
}

const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 }

/** Names of spans that are told; all others belong to the library and its logger. */
const isOurs = (name: string): boolean =>
  name === "prompt" || name === "model.complete" || name === "sandbox.open" || name.startsWith("execute_tool ")

/** Events of a span that are told: log lines come the same way, and hold texts. */
export const retryEvent = "batch_runner.retry"

/** Events of one span at most. */
const mostEvents = 100

/** 32 hexadecimal digits: Node keeps random bytes ready for these alone. */
const randomId = (): string => randomUUID().replaceAll("-", "")

interface Given {
  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly links: ReadonlyArray<Tracer.SpanLink>
  readonly kind: Tracer.SpanKind
  readonly startTime: bigint
}

class Told implements Tracer.Span {
  readonly _tag = "Span"
  readonly sampled = true
  readonly spanId = randomId().slice(16)
  readonly traceId: string
  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly links: ReadonlyArray<Tracer.SpanLink>
  readonly kind: Tracer.SpanKind
  readonly attributes = new Map<string, unknown>()
  status: Tracer.SpanStatus
  private readonly events: Array<Otlp.SpanJson["events"][number]> = []
  private readonly above: Told | undefined
  private readonly watcher: Watcher

  constructor(given: Given, above: Told | undefined, watcher: Watcher) {
    this.name = given.name
    this.parent = given.parent
    this.context = given.context
    this.links = given.links
    this.kind = given.kind
    this.status = { _tag: "Started", startTime: given.startTime }
    this.above = above
    this.traceId = above?.traceId ?? randomId()
    this.watcher = watcher
  }

  attribute(key: string, value: unknown): void {
    this.attributes.set(key, value)
  }

  event(name: string, startTime: bigint, attributes: Readonly<Record<string, unknown>> = {}): void {
    if (name !== retryEvent || this.events.length >= mostEvents) return
    this.events.push({
      name,
      timeUnixNano: String(startTime),
      attributes: Otlp.attributesOf(Object.entries(attributes))
    })
  }

  addLinks(): void {}

  /** What went wrong is told by its kind alone: messages may hold texts of the conversation. */
  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    const { startTime } = this.status
    this.status = { _tag: "Ended", startTime, endTime, exit }
    const error = this.attributes.get("error.type")
    const { name, attributes } = this
    this.watcher.ended({ name, seconds: Number(endTime - startTime) / 1e9, attributes })
    this.watcher.take({
      traceId: this.traceId,
      spanId: this.spanId,
      parentSpanId: this.above?.spanId ?? "",
      name,
      kind: kinds[this.kind],
      startTimeUnixNano: String(startTime),
      endTimeUnixNano: String(endTime),
      attributes: Otlp.attributesOf(attributes),
      events: this.events,
      status: error === undefined || error === released ? { code: 0 } : { code: 2, message: String(error) }
    })
  }
}

/** A span of no interest: what is below it belongs to the nearest one above that is told. */
class Passing implements Tracer.Span {
  readonly _tag = "Span"
  readonly sampled = false
  readonly spanId: string
  readonly traceId: string
  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly links: ReadonlyArray<Tracer.SpanLink>
  readonly kind: Tracer.SpanKind
  readonly attributes = new Map<string, unknown>()
  readonly above: Told | undefined
  status: Tracer.SpanStatus

  constructor(given: Given, above: Told | undefined) {
    this.name = given.name
    this.parent = given.parent
    this.context = given.context
    this.links = given.links
    this.kind = given.kind
    this.status = { _tag: "Started", startTime: given.startTime }
    this.above = above
    this.spanId = above?.spanId ?? ""
    this.traceId = above?.traceId ?? ""
  }

  attribute(): void {}

  event(name: string, startTime: bigint, attributes?: Readonly<Record<string, unknown>>): void {
    this.above?.event(name, startTime, attributes)
  }

  addLinks(): void {}

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    this.status = { _tag: "Ended", startTime: this.status.startTime, endTime, exit }
  }
}

const toldOf = (span: Tracer.AnySpan | undefined): Told | undefined => {
  if (span instanceof Told) return span
  return span instanceof Passing ? span.above : undefined
}

/** `constant` are attributes by the name of a span, such as the model that all calls ask. */
export const tracer = (watcher: Watcher, constant: Readonly<Record<string, Attributes>>): Tracer.Tracer =>
  Tracer.make({
    span: (name, parent, context, links, startTime, kind) => {
      const above = toldOf(Option.getOrUndefined(parent))
      const given = { name, parent, context, links, startTime, kind }
      if (!isOurs(name)) return new Passing(given, above)
      const span = new Told(given, above, watcher)
      for (const [key, value] of Object.entries(constant[name] ?? {})) span.attribute(key, value)
      watcher.began(name)
      return span
    },
    context: (run) => run()
  })
