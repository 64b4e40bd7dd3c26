/** Which signals the variables of OpenTelemetry want, and in which encoding. */
import { describe, expect, it } from "@effect/vitest"
import * as Collector from "../../src/events/Collector.ts"

const endpoint = "http://collector:4318"

describe("The collector", () => {
  it("is none without an address, with an empty one, or when the SDK is switched off.", () => {
    expect(Collector.find({})).toBeUndefined()
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: " ", OTEL_SERVICE_NAME: "x" })).toBeUndefined()
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "TRUE" })).toBeUndefined()
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "1" })).toBeDefined()
  })
  it("takes both signals, each where it is wanted.", () => {
    const receiver = { origin: endpoint, protocol: "http/protobuf" }
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/base/` })).toEqual({
      traces: receiver,
      metrics: receiver,
      every: 10_000,
      remarks: []
    })
    expect(
      Collector.find({
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://me:SECRET@collector:4318",
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "https://other/x?y=1"
      })
    ).toMatchObject({ traces: receiver, metrics: { origin: "https://other" } })
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_METRICS_EXPORTER: "none" })).toMatchObject({
      traces: receiver,
      metrics: undefined
    })
    expect(Collector.find({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint })?.metrics).toBeUndefined()
  })
  it("is sent Protobuf, or JSON where its variables say so.", () => {
    const protocols = (more: Collector.Environment) => {
      const found = Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more })
      return [found?.traces?.protocol, found?.metrics?.protocol]
    }
    expect(protocols({ OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" })).toEqual(["http/json", "http/json"])
    expect(
      protocols({ OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf", OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json" })
    ).toEqual(["http/protobuf", "http/json"])
  })
  it("hears of metrics at its pace, which odd values do not change.", () => {
    const every = (OTEL_METRIC_EXPORT_INTERVAL: string) =>
      Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_METRIC_EXPORT_INTERVAL })?.every
    expect(["100", "-1", "soon", ""].map(every)).toEqual([100, 10_000, 10_000, 10_000])
  })
  it("says what of the variables is not heeded, without repeating an address.", () => {
    const found = Collector.find({
      OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317/SECRET",
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc"
    })
    expect([found?.traces, found?.metrics]).toEqual([undefined, undefined])
    expect(found?.remarks).toEqual([
      "OTEL_EXPORTER_OTLP_ENDPOINT is no http:// or https:// address, and nothing is sent there"
    ])
    expect(
      Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })
    ).toMatchObject({
      traces: { protocol: "http/protobuf" },
      remarks: ["OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not spoken here, http/protobuf is sent"]
    })
  })
})
