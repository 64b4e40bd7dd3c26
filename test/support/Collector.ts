/** A collector of OpenTelemetry that keeps what it is sent, or misbehaves as a test says. Plain node:http. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { gunzipSync } from "node:zlib"
import { onTestFinished } from "vitest"

export interface Request {
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  /** Unpacked; of Protobuf only what is text in it can be read. */
  readonly text: string
}

interface Attribute {
  readonly key: string
  readonly value: {
    readonly stringValue?: string
    readonly intValue?: string
    readonly doubleValue?: number
    readonly boolValue?: boolean
    readonly arrayValue?: { readonly values: ReadonlyArray<Attribute["value"]> }
  }
}

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<Attribute>
  readonly events: ReadonlyArray<{ readonly name: string; readonly attributes: ReadonlyArray<Attribute> }>
  readonly status: { readonly code: number; readonly message?: string }
}

interface Point {
  readonly attributes: ReadonlyArray<Attribute>
  readonly asDouble?: number
  readonly count?: string
  readonly sum?: number
  readonly bucketCounts?: ReadonlyArray<string>
  readonly explicitBounds?: ReadonlyArray<number>
}

interface Metric {
  readonly name: string
  readonly unit: string
  readonly sum?: { readonly dataPoints: ReadonlyArray<Point> }
  readonly gauge?: { readonly dataPoints: ReadonlyArray<Point> }
  readonly histogram?: { readonly dataPoints: ReadonlyArray<Point> }
}

const plain = ({ value }: Pick<Attribute, "value">): unknown =>
  value.stringValue ??
  value.boolValue ??
  value.doubleValue ??
  (value.intValue === undefined
    ? value.arrayValue?.values.map((each) => plain({ value: each }))
    : Number(value.intValue))

/** Attributes by name. */
export const attributesOf = (of: {
  readonly attributes: ReadonlyArray<Attribute>
}): Readonly<Record<string, unknown>> =>
  Object.fromEntries(of.attributes.map((attribute) => [attribute.key, plain(attribute)]))

/** Decides by the request's place, from 0; undefined is no answer at all. */
export type Reaction = (place: number) => number | undefined

export class Collector {
  readonly url: string
  readonly requests: Array<Request>

  constructor(url: string, requests: Array<Request>) {
    this.url = url
    this.requests = requests
  }

  private bodies(path: string) {
    return this.requests.filter((request) => request.path === path).map(({ text }) => JSON.parse(text))
  }

  get spans(): ReadonlyArray<Span> {
    return this.bodies("/v1/traces").flatMap(({ resourceSpans }) => resourceSpans[0].scopeSpans[0].spans)
  }

  get resources(): ReadonlyArray<Readonly<Record<string, unknown>>> {
    return [
      ...this.bodies("/v1/traces").map(({ resourceSpans }) => attributesOf(resourceSpans[0].resource)),
      ...this.bodies("/v1/metrics").map(({ resourceMetrics }) => attributesOf(resourceMetrics[0].resource))
    ]
  }

  /** Points of the metrics sent last. */
  points(name: string): ReadonlyArray<Point> {
    const all: ReadonlyArray<Metric> =
      this.bodies("/v1/metrics").at(-1)?.resourceMetrics[0].scopeMetrics[0].metrics ?? []
    const metric = all.find((each) => each.name === `batch_runner.${name}`)
    return (metric?.sum ?? metric?.gauge ?? metric?.histogram)?.dataPoints ?? []
  }

  /** The value of the point with these labels in the metrics sent last. */
  value(name: string, labels: Readonly<Record<string, unknown>> = {}): number | undefined {
    return this.points(name).find(
      (point) => JSON.stringify(sorted(attributesOf(point))) === JSON.stringify(sorted(labels))
    )?.asDouble
  }
}

const sorted = (record: Readonly<Record<string, unknown>>) =>
  Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1))

/** A collector that is closed after the test. */
export const collect = async (react: Reaction = () => 200): Promise<Collector> => {
  const requests: Array<Request> = []
  const server = Http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("error", () => {})
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const sent = Buffer.concat(chunks)
      const text = (request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent).toString("utf8")
      const place = requests.push({ path: request.url ?? "", headers: request.headers, text }) - 1
      const status = react(place)
      if (status !== undefined) response.writeHead(status, { "content-type": "application/json" }).end("{}")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
  onTestFinished(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  )
  const address: AddressInfo | string | null = server.address()
  const port = typeof address === "object" ? (address?.port ?? 0) : 0
  return new Collector(`http://127.0.0.1:${port}`, requests)
}
