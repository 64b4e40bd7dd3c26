/** Which signals go to a collector of OpenTelemetry, as its variables say it; the packages of OpenTelemetry read all others themselves. */

/** Where one signal goes, and in which encoding. */
export interface Receiver {
  /** Scheme, name and port: without a password. */
  readonly origin: string
  readonly protocol: "http/json" | "http/protobuf"
}

export interface Collector {
  /** Undefined where these are not wanted. */
  readonly traces: Receiver | undefined
  readonly metrics: Receiver | undefined
  /** How often metrics are sent, in milliseconds. */
  readonly every: number
  /** What of the variables is not heeded, a sentence each. */
  readonly remarks: ReadonlyArray<string>
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The collector that the environment names; undefined for none. An empty variable counts as not set. */
export const find = (environment: Environment): Collector | undefined => {
  const remarks: Array<string> = []
  const value = (name: string) => (environment[`OTEL_${name}`]?.trim() ? environment[`OTEL_${name}`] : undefined)
  const word = (name: string) => value(name)?.trim().toLowerCase()

  const receiver = (kind: "TRACES" | "METRICS"): Receiver | undefined => {
    const own = value(`EXPORTER_OTLP_${kind}_ENDPOINT`)
    const address = own ?? value("EXPORTER_OTLP_ENDPOINT")?.replace(/\/*$/, `/v1/${kind.toLowerCase()}`)
    if (address === undefined || word(`${kind}_EXPORTER`) === "none") return
    // The packages would send to localhost instead.
    if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) {
      const name = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : `OTEL_EXPORTER_OTLP_${kind}_ENDPOINT`
      remarks.push(`${name} is no http:// or https:// address, and nothing is sent there`)
      return
    }
    const { origin } = new URL(address)
    const protocol = word(`EXPORTER_OTLP_${kind}_PROTOCOL`) ?? word("EXPORTER_OTLP_PROTOCOL") ?? "http/protobuf"
    if (protocol === "http/json" || protocol === "http/protobuf") return { origin, protocol }
    remarks.push(`OTEL_EXPORTER_OTLP_PROTOCOL: ${protocol.slice(0, 40)} is not spoken here, http/protobuf is sent`)
    return { origin, protocol: "http/protobuf" }
  }

  if (word("SDK_DISABLED") === "true") return
  const traces = receiver("TRACES")
  const metrics = receiver("METRICS")
  if (traces === undefined && metrics === undefined && remarks.length === 0) return
  const every = word("METRIC_EXPORT_INTERVAL") ?? ""
  return {
    traces,
    metrics,
    every: /^[1-9]\d{0,8}$/.test(every) ? Number(every) : 10_000,
    remarks: [...new Set(remarks)]
  }
}
