/** The variables of OpenTelemetry, read as its specification says. */
import { describe, expect, it } from "@effect/vitest"
import { Duration } from "effect"
import * as Collector from "../../src/events/Collector.ts"

const endpoint = "http://collector:4318"

describe("The collector", () => {
  it("is none without an address, with an empty one, or when the SDK is switched off.", () => {
    expect(Collector.find({})).toBeUndefined()
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: " ", OTEL_SERVICE_NAME: "x" })).toBeUndefined()
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "TRUE" })).toBeUndefined()
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "1" })).toBeDefined()
  })
  it("takes both signals below a common address, and each at its own word for word.", () => {
    const both = Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/base/` })
    expect([both?.traces?.url, both?.metrics?.url]).toEqual([
      `${endpoint}/base/v1/traces`,
      `${endpoint}/base/v1/metrics`
    ])
    const own = Collector.find({
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "https://other/x?y=1"
    })
    expect([own?.traces?.url, own?.metrics?.url]).toEqual([`${endpoint}/v1/traces`, "https://other/x?y=1"])
    expect(Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_METRICS_EXPORTER: "none" })?.metrics).toBe(
      undefined
    )
  })
  it("is sent the headers, percent-decoded, and a login of its address as one of them.", () => {
    const found = Collector.find({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://me:p%40ss@collector:4318",
      OTEL_EXPORTER_OTLP_HEADERS: "X-Key = a%20b ,broken,=x,api=1=2",
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: "authorization=Bearer%20t"
    })
    expect(found?.traces).toMatchObject({
      url: "http://collector:4318/v1/traces",
      headers: { "x-key": "a b", api: "1=2", authorization: `Basic ${Buffer.from("me:p@ss").toString("base64")}` }
    })
    expect(found?.metrics?.headers).toEqual({ authorization: "Bearer t" })
  })
  it("knows who sends: its own name wins over that among the attributes.", () => {
    const resource = (more: Collector.Environment) =>
      Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more })?.resource
    expect(resource({})).toEqual({ "service.name": "batch-runner" })
    expect(resource({ OTEL_RESOURCE_ATTRIBUTES: "service.name=a,b=c%2Cd" })).toEqual({ "service.name": "a", b: "c,d" })
    expect(resource({ OTEL_RESOURCE_ATTRIBUTES: "service.name=a", OTEL_SERVICE_NAME: "z" })).toEqual({
      "service.name": "z"
    })
  })
  it("has a pace and a limit, which odd values do not change.", () => {
    const times = (more: Collector.Environment) => {
      const traces = Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more })?.traces
      return [traces?.every, traces?.limit].map((each) => each && Duration.toMillis(each))
    }
    expect(times({})).toEqual([5000, 10_000])
    expect(times({ OTEL_BSP_SCHEDULE_DELAY: "100", OTEL_EXPORTER_OTLP_TIMEOUT: "2000" })).toEqual([100, 2000])
    expect(times({ OTEL_BSP_SCHEDULE_DELAY: "-1", OTEL_EXPORTER_OTLP_TIMEOUT: "soon" })).toEqual([5000, 10_000])
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
      Collector.find({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })?.remarks
    ).toEqual(["OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not spoken here, http/json is sent"])
  })
})
