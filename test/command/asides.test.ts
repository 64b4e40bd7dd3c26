/** Tools of a session ask models too: what that costs is in its row, in the sums and in the budgets, and it stops no run. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { promptOf, serve, turnOf } from "../support/Talk.ts"

/** A PNG of eight by eight grey dots. */
const png = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mNogAIGyhgAgIQgARDoahcAAAAASUVORK5CYII="

const nano = 1_000_000
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, cost: nano / 1e9 }

/** Whether a request is a session's own. */
const isOwn = ({ body }: ModelServer.Recorded): boolean => body.tools !== undefined

const calls: ReadonlyArray<ModelServer.CallSpec> = [
  { name: "terminal", arguments: { command: `echo ${png} | base64 -d > a.png` } },
  { name: "vision_analyze", arguments: { image_url: "a.png", question: "What is it?" } },
  { name: "mixture_of_agents", arguments: { user_prompt: "What is grey?" } }
]

/** Sessions that make each call once and then answer; what tools ask is answered by the model's name, or as a test says. */
const talk =
  (aside: (request: ModelServer.Recorded) => ModelServer.Reaction | undefined = () => undefined): ModelServer.Handler =>
  (request) => {
    if (!isOwn(request)) {
      return aside(request) ?? ModelServer.answer({ content: `${request.body.model} says`, usage })
    }
    const call = calls[turnOf(request)]
    return call === undefined
      ? ModelServer.answer({ content: "done", reasoning: "hm", usage })
      : ModelServer.answer({ reasoning: "hm", toolCalls: [call], usage })
  }

const prepare = (count: number) => {
  const place = new Workplace()
  place.dataset(Array.from({ length: count }, (_, n) => `prompt ${n}`))
  place.write("tools.json", JSON.stringify({ toolsets: { terminal: 100, vision: 100, moa: 100 } }))
  return place
}
const options = { distribution: "tools.json", sandbox: "local", vision_model: "eye", moa_models: "a,b" }

const results = (place: Workplace) =>
  place
    .rows()
    .map(({ conversations }) =>
      conversations.filter(({ from }) => from === "tool").map(({ value }) => JSON.parse(value))
    )

describe("What tools ask of models", () => {
  it("is paid for with the session's own calls: in its row, in the statistics, and in no count of its answers", async () => {
    const place = prepare(3)
    const server = await serve(talk())
    await place.complete(server, { ...options, events: "events.jsonl" })
    for (const [, vision, mixture] of results(place)) {
      expect(vision).toEqual({ success: true, analysis: "eye says" })
      expect(mixture).toEqual({
        success: true,
        response: "test-model says",
        models_used: { reference_models: ["a", "b"], aggregator_model: "test-model" }
      })
    }
    // Four of its own, one to the eye, three of the mixture.
    expect(server.requests.length).toBe(24)
    for (const { api_calls, metadata, tool_stats } of place.rows()) {
      expect(api_calls).toBe(4)
      expect(metadata.usage).toMatchObject({ prompt: 80, completion: 40, total: 120, cost_usd: 0.008 })
      expect(tool_stats.vision_analyze).toEqual({ count: 1, success: 1, failure: 0 })
      expect(tool_stats.mixture_of_agents).toEqual({ count: 1, success: 1, failure: 0 })
    }
    expect(place.json("statistics.json")).toMatchObject({ cost_usd: 0.024, tokens: { total: 360 } })
    expect(place.text("statistics.json")).not.toContain(png)
    const told = readFileSync(place.path("events.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    const asides = told.filter(({ event }) => event === "aside")
    expect(asides.length).toBe(12)
    expect(asides.find(({ model }) => model === "eye")).toMatchObject({ tool: "vision_analyze", cost_usd: 0.001 })
    const shown = server.requests.find(({ body }) => body.model === "eye")
    expect(shown?.text).toContain("data:image/png;base64,")
  })

  it("keeps to the budget of the run, to the server's own books, and goes on from there", {
    timeout: 120_000
  }, async () => {
    const place = prepare(12)
    const server = await serve(talk())
    const spent = () => server.requests.length * nano
    const run = await place.run(server, { ...options, max_cost: 0.05 })
    expect(run.code, run.stderr).toBe(1)
    expect(spent()).toBeLessThanOrEqual(50 * nano)
    expect(spent()).toBeGreaterThan(40 * nano)
    expect(Math.round(Number(place.json("statistics.json").cost_usd) * 1e9)).toBe(spent())
    expect(place.failures()).toEqual([])
    await place.complete(server, { ...options, max_cost: 1, resume: true })
    expect(place.rows().length).toBe(12)
    expect(Math.round(Number(place.json("statistics.json").cost_usd) * 1e9)).toBe(spent())
  })

  it("is refused where a prompt's own budget does not allow it, and the session goes on", async () => {
    const place = prepare(1)
    const server = await serve(talk())
    // Three of its own and the eye's are spent; its last still fits, the mixture's three do not.
    await place.complete(server, { ...options, max_cost_per_prompt: 0.0078 })
    const [row] = place.rows()
    expect(row?.tool_stats.mixture_of_agents).toEqual({ count: 1, success: 0, failure: 1 })
    expect(results(place)[0]?.[2]?.error).toMatch(/budget does not allow 3 questions/)
    expect([row?.completed, row?.metadata.usage.cost_usd]).toEqual([true, 0.005])
  })

  it("stops nothing when the models are gone, dearer than the credit or closed to the key", async () => {
    const place = prepare(8)
    const status: Readonly<Record<string, number>> = { a: 402, b: 401, eye: 404 }
    const server = await serve(
      talk(({ body }) =>
        body.model in status ? ModelServer.error(status[body.model] ?? 500, "not for you") : undefined
      )
    )
    await place.complete(server, options)
    expect(place.rows().length).toBe(8)
    for (const [, vision, mixture] of results(place)) {
      expect(vision).toEqual({ error: expect.stringMatching(/^eye gave no answer: HTTP 404/) })
      expect(mixture.failed.map(({ model }: { model: string }) => model)).toEqual(["a", "b"])
    }
    expect(new Set(server.requests.map(promptOf)).size).toBeGreaterThan(8)
  })

  it("without a price fails under a budget in money, once, and the run goes on", async () => {
    const place = prepare(3)
    const untold = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
    const server = await serve(
      talk(({ body }) => (body.model === "eye" ? ModelServer.answer({ content: "x", usage: untold }) : undefined))
    )
    const run = await place.complete(server, { ...options, num_workers: 1, max_cost: 5 })
    expect(server.requests.filter(({ body }) => body.model === "eye").length).toBe(1)
    for (const [, vision] of results(place))
      expect(vision.error).toMatch(/--max_cost does not allow it.*name eye in --prices/)
    expect(run.stderr.match(/vision_analyze asks eye no more/g)).toHaveLength(1)
  })

  it("is answered offline too, as the script says or with what was asked", async () => {
    const place = prepare(1)
    place.write(
      "prompts.script.json",
      JSON.stringify({
        default: [...calls.map((call) => ({ reasoning: "hm", tool_calls: [call] })), { content: "done" }],
        asides: { mixture_of_agents: [{ content: "one" }, { content: "joined" }] }
      })
    )
    const server = await serve(() => ModelServer.error(500, "nobody is to ask"))
    await place.complete(server, { ...options, model: "scripted", vision_model: undefined, moa_models: "a" })
    expect(results(place)[0]?.slice(1)).toEqual([
      {
        success: true,
        analysis: expect.stringMatching(/It was shown image\/png of \d+ bytes\. It was asked: What is it\?/)
      },
      { success: true, response: "joined", models_used: { reference_models: ["a"], aggregator_model: "scripted" } }
    ])
    expect(server.requests.length).toBe(0)
  })
})
