/** OpenTelemetry: what a collector gets of a run, and how little a run cares for a collector that is down, slow or broken. */
import { describe, expect, it } from "vitest"
import { attributesOf, collect, type Span } from "../support/Collector.ts"
import { until, Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { final, promptOf, runs, runsThenEnds, serve, turnOf } from "../support/Talk.ts"

const many = (count: number) => Array.from({ length: count }, (_, n) => `SECRET prompt ${n}`)

const warnings = (stderr: string) => stderr.split("\n").filter((line) => line.includes("OpenTelemetry collector"))

const named = (spans: ReadonlyArray<Span>, name: string) => spans.filter((span) => span.name === name)

const collected = (url: string, more: Readonly<Record<string, string>> = {}) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
  ...more
})

describe("With a collector", () => {
  it("each prompt is one trace, with a child for its sandbox, each model call and each tool call", async () => {
    const place = new Workplace()
    place.dataset(many(5))
    const collector = await collect()
    const server = await serve((request) => {
      if (promptOf(request).endsWith("4")) return ModelServer.error(400, "SECRET refusal")
      return turnOf(request) === 0 ? runs("echo SECRET", "true") : final("SECRET answer", "SECRET thought")
    })
    const { code, stderr } = await place.run(
      server,
      { num_workers: 2 },
      collected(collector.url, {
        OTEL_EXPORTER_OTLP_HEADERS: "x-key=a%20token, x-other=2",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test,team=a%2Cb",
        BATCH_RUNNER_API_KEY: "SECRET-key"
      })
    )
    expect(code).toBe(1)
    expect(warnings(stderr)).toEqual([])
    const { spans } = collector
    const prompts = named(spans, "prompt")
    expect(prompts.map((span) => attributesOf(span)["batch_runner.prompt_index"]).toSorted()).toEqual([0, 1, 2, 3, 4])
    expect(new Set(prompts.map(({ traceId }) => traceId)).size).toBe(5)
    for (const prompt of prompts) {
      const about = attributesOf(prompt)
      const children = spans.filter(({ parentSpanId }) => parentSpanId === prompt.spanId)
      expect(children.every(({ traceId }) => traceId === prompt.traceId)).toBe(true)
      expect(prompt.parentSpanId ?? "").toBe("")
      const failed = about["batch_runner.prompt_index"] === 4
      expect(children.map(({ name }) => name).toSorted()).toEqual(
        failed
          ? ["model.complete", "sandbox.open"]
          : ["execute_tool terminal", "execute_tool terminal", "model.complete", "model.complete", "sandbox.open"]
      )
      expect(about).toMatchObject({
        "batch_runner.sample": 0,
        "batch_runner.batch": 0,
        "batch_runner.attempt": 1,
        "batch_runner.outcome": failed ? "failed" : "kept",
        "batch_runner.toolsets": ["terminal", "file"],
        ...(failed && { "batch_runner.kind": "bad_request" })
      })
      expect(prompt.status.code).toBe(failed ? 2 : 0)
      for (const { startTimeUnixNano, endTimeUnixNano } of children) {
        expect(BigInt(startTimeUnixNano) >= BigInt(prompt.startTimeUnixNano)).toBe(true)
        expect(BigInt(endTimeUnixNano) <= BigInt(prompt.endTimeUnixNano)).toBe(true)
      }
    }
    expect(spans).toHaveLength(4 * 6 + 3)
    const calls = named(spans, "model.complete")
    expect(calls.filter(({ status }) => status.code === 2).map(attributesOf)).toMatchObject([
      { "error.type": "bad_request", "http.response.status_code": 400, "gen_ai.request.model": "test-model" }
    ])
    expect(attributesOf(calls.find(({ status }) => status.code === 0) ?? { attributes: [] })).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": "test-model",
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 5,
      "gen_ai.response.finish_reasons": ["tool_calls"],
      "server.address": "127.0.0.1"
    })
    expect(calls.every(({ kind }) => kind === 3)).toBe(true)
    for (const request of collector.requests) {
      expect(request.headers).toMatchObject({ "x-key": "a token", "x-other": "2", "content-type": "application/json" })
      expect(request.text).not.toContain("SECRET")
    }
    for (const resource of collector.resources) {
      expect(resource).toEqual({
        "service.name": "batch-runner",
        "service.version": expect.any(String),
        "telemetry.sdk.language": "nodejs",
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.version": expect.any(String),
        "deployment.environment": "test",
        team: "a,b"
      })
    }
  })
  it("the sums of its metrics are right", async () => {
    const place = new Workplace()
    place.dataset(many(6))
    const collector = await collect()
    const server = await serve((request) => {
      if (promptOf(request).endsWith("5")) return ModelServer.error(400, "no")
      if (turnOf(request) > 0) return final()
      return ModelServer.answer({
        reasoning: "x",
        toolCalls: [
          { id: "a", name: "terminal", arguments: { command: "true" } },
          { id: "b", name: "made up", arguments: {} }
        ],
        usage: { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107, cost: 0.25 }
      })
    })
    await place.run(server, {}, collected(collector.url, { OTEL_SERVICE_NAME: "mine" }))
    expect(collector.value("prompts", { outcome: "kept" })).toBe(5)
    expect(collector.value("prompts", { outcome: "failed", kind: "bad_request" })).toBe(1)
    expect(collector.value("prompts.in_flight")).toBe(0)
    expect(collector.value("model.calls", { outcome: "ok" })).toBe(10)
    expect(collector.value("model.calls", { outcome: "bad_request" })).toBe(1)
    expect(collector.value("model.calls.in_flight")).toBe(0)
    expect(collector.value("tokens", { type: "prompt" })).toBe(5 * 110)
    expect(collector.value("tokens", { type: "completion" })).toBe(5 * 12)
    expect(collector.value("cost_usd")).toBe(1.25)
    expect(collector.value("tool.calls", { tool: "terminal", ok: "true" })).toBe(5)
    expect(collector.value("tool.calls", { tool: "unknown", ok: "false" })).toBe(5)
    const [duration] = collector.points("model.call.duration")
    expect(duration).toMatchObject({ count: 11, sum: expect.any(Number) })
    expect(duration?.bucketCounts?.reduce((sum, count) => sum + Number(count), 0)).toBe(11)
    expect(duration?.bucketCounts).toHaveLength(Number(duration?.explicitBounds?.length) + 1)
    expect(collector.resources[0]).toMatchObject({ "service.name": "mine" })
  })
  it("what a signal released is there too", async () => {
    const place = new Workplace()
    place.dataset(many(8))
    const collector = await collect()
    const server = await serve((request) =>
      promptOf(request).endsWith("3") ? { hang: true } : runsThenEnds("true")(request, 0)
    )
    const running = place.begin(server, { num_workers: 1 }, collected(collector.url))
    await until(() => place.saved().length === 3 && server.inFlight.now === 1)
    running.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    const prompts = named(collector.spans, "prompt").map(attributesOf)
    expect(prompts.map((about) => about["batch_runner.outcome"])).toEqual(["kept", "kept", "kept", "released"])
    expect(collector.value("prompts", { outcome: "released" })).toBe(1)
    expect(collector.value("model.calls", { outcome: "ok" })).toBe(6)
  })
  it("a run of more spans than one request carries loses none", async () => {
    const place = new Workplace()
    place.dataset(many(300))
    const collector = await collect((n) => (n === 0 ? 503 : 200))
    const server = await serve(() => final())
    const { stderr } = await place.complete(server, { num_workers: 8, batch_size: 300 }, collected(collector.url))
    // The first request was refused, and sent again.
    const ids = new Set(collector.spans.map(({ spanId }) => spanId))
    expect(ids.size).toBe(900)
    expect(collector.requests.filter(({ path }) => path === "/v1/traces").length).toBeGreaterThan(1)
    expect(warnings(stderr)).toEqual([])
  })
  it("Protobuf is what it is sent without a word for JSON, packed and with a login where its variables have them", async () => {
    const place = new Workplace()
    place.dataset(many(2))
    const collector = await collect()
    const server = await serve(runsThenEnds("echo SECRET"))
    const { stderr } = await place.complete(
      server,
      {},
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url.replace("http://", "http://me:p%40ss@"),
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip"
      }
    )
    expect(warnings(stderr)).toEqual([])
    const [traces, metrics] = ["/v1/traces", "/v1/metrics"].map((at) => {
      const all = collector.requests.filter(({ path }) => path === at)
      for (const { headers, text } of all) {
        expect(headers).toMatchObject({
          "content-type": "application/x-protobuf",
          "content-encoding": "gzip",
          authorization: `Basic ${Buffer.from("me:p@ss").toString("base64")}`
        })
        expect(text).not.toContain("SECRET")
        expect(text).toContain("batch-runner")
      }
      return all.map(({ text }) => text).join()
    })
    expect(traces?.split("execute_tool terminal")).toHaveLength(2 + 1)
    expect(metrics).toContain("batch_runner.model.call.duration")
  })
  it("variables can send traces alone, elsewhere, or nothing at all", async () => {
    const place = new Workplace()
    place.dataset(many(1))
    const server = await serve(() => final())
    const collector = await collect()
    const run = (run_name: string, environment: Readonly<Record<string, string>>) =>
      place.complete(server, { run_name }, environment)
    await run("a", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path` })
    expect(collector.requests.map(({ path }) => path)).toEqual(["/own/path"])
    await run("b", collected(`${collector.url}/base/`, { OTEL_TRACES_EXPORTER: "none" }))
    expect(new Set(collector.requests.slice(1).map(({ path }) => path))).toEqual(new Set(["/base/v1/metrics"]))
    const before = collector.requests.length
    await run("c", collected(collector.url, { OTEL_SDK_DISABLED: "true" }))
    await run("d", collected("", { OTEL_SERVICE_NAME: "x" }))
    expect(collector.requests.length).toBe(before)
    const { stderr } = await run("e", collected("not an address"))
    expect(stderr).toMatch(/warning: OTEL_EXPORTER_OTLP_ENDPOINT is no http/)
  })
  it("its variables and keys do not reach sandboxes", async () => {
    const place = new Workplace()
    place.dataset(many(1))
    const collector = await collect()
    const server = await serve((request) => (turnOf(request) === 0 ? runs("env") : final()))
    await place.complete(server, {}, collected(collector.url, { OTEL_EXPORTER_OTLP_HEADERS: "x-key=HIDDEN" }))
    expect(place.text("trajectories.jsonl")).toContain("PATH=")
    expect(place.text("trajectories.jsonl")).not.toMatch(/OTEL_|HIDDEN/)
  })
})

describe("A collector that", () => {
  const fine = async (url: string, more: Readonly<Record<string, string>> = {}) => {
    const place = new Workplace()
    place.dataset(many(16))
    const server = await serve(() => ({ ...final(), delay: 500 }))
    const before = await place.complete(server, { run_name: "without" })
    const ended = await place.complete(server, {}, collected(url, { OTEL_BSP_SCHEDULE_DELAY: "200", ...more }))
    expect(place.rows()).toHaveLength(16)
    expect(ended.stderr).not.toMatch(/x-key|HIDDEN/)
    return { ...ended, longer: ended.took - before.took }
  }
  it("is not there is one warning", async () => {
    const gone = await ModelServer.start(() => final())
    await gone.close()
    const { origin } = new URL(gone.url)
    const { stderr, longer } = await fine(origin, { OTEL_EXPORTER_OTLP_HEADERS: "x-key=HIDDEN" })
    expect(warnings(stderr)).toHaveLength(1)
    expect(stderr).toContain(`at ${origin} does not take what it is sent (ECONNREFUSED)`)
    expect(longer).toBeLessThan(5000)
  })
  it("answers with errors is one warning", async () => {
    const collector = await collect(() => 500)
    const { stderr, longer } = await fine(collector.url)
    expect(warnings(stderr)).toHaveLength(1)
    expect(stderr).toMatch(/\(HTTP 500\)/)
    expect(longer).toBeLessThan(5000)
  })
  it("never answers is one warning, and waited for no longer than a few seconds", async () => {
    const collector = await collect(() => undefined)
    const { stderr, longer } = await fine(collector.url)
    expect(warnings(stderr)).toHaveLength(1)
    expect(longer).toBeLessThan(7000)
  })
})
