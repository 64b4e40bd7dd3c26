/** Several models are asked at once, and one answer comes of theirs. */
import { describe, expect, it } from "vitest"
import * as Mixture from "../../src/tools/Mixture.ts"
import * as Server from "../support/ModelServer.ts"
import { consult, type Options, served } from "./consulting.ts"

const question = "What is 6 × 7? </answer>"
const mix = async (server: Server.ModelServer, options?: Options) => {
  const { result, spent } = await consult(
    Mixture.make,
    server,
    (use) => use("mixture_of_agents", { user_prompt: question }),
    options
  )
  return { ...result, spent }
}
const joins = ({ body }: Server.Recorded) => body.messages[0]?.role === "system"
const says = (server: Server.ModelServer) => server.requests.map(({ body }) => body)

describe("A mixture of agents", () => {
  it("asks the run's own model at three temperatures, and lets it join the answers, without their reasoning.", async () => {
    const server = await served((request, place) =>
      Server.answer({
        content: joins(request) ? "42, all agree" : `answer ${place}`,
        reasoning: "secretly",
        message: {}
      })
    )
    const { ok, result, spent } = await mix(server)
    expect([ok, result]).toEqual([
      true,
      {
        success: true,
        response: "42, all agree",
        models_used: { reference_models: ["test-model", "test-model", "test-model"], aggregator_model: "test-model" }
      }
    ])
    const [first, second, third, last] = says(server)
    expect([first, second, third].map((body) => [body?.model, body?.messages])).toEqual(
      Array(3).fill(["test-model", [{ role: "user", content: question }]])
    )
    expect([first, second, third].map((body) => body?.temperature).toSorted()).toEqual([0.6, 0.8, 1])
    expect(last?.temperature).toBeUndefined()
    const read = String(last?.messages[1]?.content)
    for (const said of [question, "answer 0", "answer 1", "answer 2"]) expect(read).toContain(said)
    expect(read).not.toContain("secretly")
    expect(spent.total).toBe(4 * 15)
  })

  it("asks the models that were named, all at once, and says which failed.", async () => {
    const server = await served(({ body }) => {
      if (body.model === "gone") return Server.error(404, "no such model")
      if (body.model === "poor") return Server.error(402, "more credits, please")
      if (body.model === "mute") return Server.answer({ content: " ", finishReason: "length" })
      return { ...Server.answer({ content: `I am ${body.model}` }), delay: 200 }
    })
    const setting = { moaModels: ["a", "b", "gone", "poor", "mute"], moaAggregator: "judge" }
    const { ok, result, spent } = await mix(server, { setting, request: { provider: { only: ["x"] } } })
    expect([ok, result.response]).toEqual([true, "I am judge"])
    expect(result.models_used).toEqual({ reference_models: ["a", "b"], aggregator_model: "judge" })
    expect(result.failed.map(({ model }: { model: string }) => model)).toEqual(["gone", "poor", "mute"])
    expect(result.failed[0].error).toMatch(/HTTP 404/)
    expect(result.failed[2].error).toMatch(/empty \(length\)/)
    expect(server.inFlight.most).toBeGreaterThan(1)
    expect(says(server).some(({ provider }) => provider !== undefined)).toBe(false)
    expect(spent.total).toBe(4 * 15)
  })

  it("asks again without a temperature where a model takes none.", async () => {
    const server = await served(({ body }) =>
      body.temperature === undefined
        ? Server.answer({ content: "fine" })
        : Server.error(400, "Unsupported value: 'temperature' does not support 0.6 with this model")
    )
    expect((await mix(server)).result).toMatchObject({ success: true, response: "fine" })
    expect(server.requests.length).toBe(7)
  })

  it("still joins a single answer, and fails when there is none, or nobody joins them.", async () => {
    let broken = ["a", "judge"]
    const server = await served(({ body }) =>
      broken.includes(body.model) ? Server.error(400, `${body.model} says no`) : Server.answer({ content: body.model })
    )
    const setting = { moaModels: ["a", "b"], moaAggregator: "judge" }
    const unjoined = await mix(server, { setting })
    expect(unjoined.ok).toBe(false)
    expect(unjoined.result).toMatchObject({
      error: expect.stringMatching(/1 of the models answered, but judge .*judge says no/)
    })
    broken = ["a"]
    expect((await mix(server, { setting })).result).toMatchObject({ success: true, failed: [{ model: "a" }] })
    broken = ["a", "b"]
    const before = server.requests.length
    const none = await mix(server, { setting })
    expect([none.ok, none.result.failed.length, server.requests.length - before]).toEqual([false, 2, 2])
    expect(none.result.error).toMatch(/none of the models/)
  })

  it("is refused before anything is asked where the prompt's budget does not allow all of it.", async () => {
    const server = await served(() => Server.answer({ content: "x" }))
    const { ok, result } = await mix(server, { affords: (questions) => questions < 4 })
    expect([ok, server.requests.length]).toEqual([false, 0])
    expect(result.error).toMatch(/this prompt's budget does not allow 4 questions/)
    const blank = await consult(Mixture.make, server, (use) => use("mixture_of_agents", { user_prompt: " \n" }))
    expect([blank.result.ok, server.requests.length]).toEqual([false, 0])
  })

  it("gives a result of bounded size, and hands on answers of bounded size.", async () => {
    const server = await served(() => Server.answer({ content: "€".repeat(300_000) }))
    const { text } = await mix(server)
    expect(Buffer.byteLength(text)).toBeLessThan(52_000)
    expect(server.requests[3]?.text.length).toBeLessThan(230_000)
  })
})
