/** Where traces and metrics go, as the variables of OpenTelemetry say it. */
import { Duration, Either } from "effect"

/** One address that takes OTLP over HTTP. */
export interface Receiver {
  /** Without a password. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** How often something is sent, and how long a request may take. */
  readonly every: Duration.Duration
  readonly limit: Duration.Duration
}

export interface Collector {
  /** Undefined where these are not wanted. */
  readonly traces: Receiver | undefined
  readonly metrics: Receiver | undefined
  /** Who sends: `service.name` and others. */
  readonly resource: Readonly<Record<string, string>>
  /** What of the variables is not heeded, a sentence each. */
  readonly remarks: ReadonlyArray<string>
}

export type Environment = Readonly<Record<string, string | undefined>>

type Kind = "TRACES" | "METRICS"

/** The collector that the environment names; undefined for none. An empty variable counts as not set. */
export const find = (environment: Environment): Collector | undefined => {
  const remarks: Array<string> = []
  const value = (name: string) => environment[`OTEL_${name}`]?.trim() || undefined
  const of = (kind: Kind, name: string) => value(`EXPORTER_OTLP_${kind}_${name}`) ?? value(`EXPORTER_OTLP_${name}`)
  const millis = (text: string | undefined, byDefault: number) =>
    Duration.millis(text !== undefined && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : byDefault)

  const receiver = (kind: Kind, every: Duration.Duration): Receiver | undefined => {
    const own = value(`EXPORTER_OTLP_${kind}_ENDPOINT`)
    const base = value("EXPORTER_OTLP_ENDPOINT")
    const address = own ?? base?.replace(/\/*$/, `/v1/${kind.toLowerCase()}`)
    if (address === undefined || value(`${kind}_EXPORTER`)?.toLowerCase() === "none") return
    const name = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : `OTEL_EXPORTER_OTLP_${kind}_ENDPOINT`
    const url = Either.getOrUndefined(Either.try(() => new URL(address)))
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      remarks.push(`${name} is no http:// or https:// address, and nothing is sent there`)
      return
    }
    const protocol = of(kind, "PROTOCOL")
    if (protocol !== undefined && protocol !== "http/json") {
      remarks.push(`OTEL_EXPORTER_OTLP_PROTOCOL: ${protocol.slice(0, 40)} is not spoken here, http/json is sent`)
    }
    const { username, password } = url
    url.username = ""
    url.password = ""
    const login = `${decoded(username)}:${decoded(password)}`
    return {
      url: url.href,
      headers: {
        ...(login !== ":" && { authorization: `Basic ${Buffer.from(login).toString("base64")}` }),
        ...lowerCase(pairs(of(kind, "HEADERS")))
      },
      every,
      limit: millis(of(kind, "TIMEOUT"), 10_000)
    }
  }

  if (value("SDK_DISABLED")?.toLowerCase() === "true") return
  const traces = receiver("TRACES", millis(value("BSP_SCHEDULE_DELAY"), 5000))
  const metrics = receiver("METRICS", millis(value("METRIC_EXPORT_INTERVAL"), 10_000))
  if (traces === undefined && metrics === undefined && remarks.length === 0) return
  const named = pairs(value("RESOURCE_ATTRIBUTES"))
  const resource = { ...named, "service.name": value("SERVICE_NAME") ?? named["service.name"] ?? "batch-runner" }
  return { traces, metrics, resource, remarks: [...new Set(remarks)] }
}

const decoded = (text: string): string =>
  Either.getOrElse(
    Either.try(() => decodeURIComponent(text)),
    () => text
  )

/** `name=value` by commas, values percent-encoded, as W3C Baggage writes it. */
const pairs = (text: string | undefined): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (text ?? "").split(",").flatMap((pair) => {
      const at = pair.indexOf("=")
      const name = decoded(pair.slice(0, Math.max(0, at)).trim())
      return name === "" ? [] : [[name, decoded(pair.slice(at + 1).trim())]]
    })
  )

const lowerCase = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
