/** What a tool asks goes out with the model and the settings of its own, and comes back with its pictures and its price. */
import { Effect, Either } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { type Ask, Model, type Request } from "../../../src/model/Model.ts"
import * as OpenAi from "../../../src/model/OpenAi.ts"
import * as RequestBody from "../../../src/model/openai/RequestBody.ts"
import * as Wire from "../../../src/model/openai/Wire.ts"
import * as Server from "../../support/ModelServer.ts"
import { ask, request, tool } from "../asks.ts"

const png = "data:image/png;base64,AAAA"
const settings = { maxTokens: 9, provider: { only: ["x"] }, reasoning: { effort: "high" } }
const aside = (more: Partial<NonNullable<Ask["aside"]>> = {}, rest: Partial<Ask> = {}) =>
  ask({ aside: { tool: "t", ...more }, ...rest })
const bodyOf = (asked: Ask, more: Partial<Request> = {}, url = "http://127.0.0.1/v1") => {
  const of = request(url, { ...settings, ...more })
  const body = RequestBody.encoder(of)(asked)
  expect(JSON.parse(RequestBody.textEncoder(of)(asked))).toEqual(body)
  return body
}
const messages = [{ role: "user", content: "Say hello." }]

describe("What a tool asks", () => {
  it("of the run's own model goes out as the session's calls do, with what it says besides.", () => {
    const own = { model: "test-model", max_tokens: 9, provider: { only: ["x"] }, reasoning: { effort: "high" } }
    expect(bodyOf(aside())).toEqual({ ...own, messages })
    expect(bodyOf(aside({ model: "test-model", temperature: 0 }))).toEqual({ ...own, messages, temperature: 0 })
  })
  it("of another model is without the providers and the reasoning of the run's own.", () => {
    expect(bodyOf(aside({ model: "other" }))).toEqual({ model: "other", max_tokens: 9, messages })
    expect(bodyOf(aside({ model: "other" }), {}, "https://openrouter.ai/api/v1")).toMatchObject({
      usage: { include: true }
    })
  })
  it("with a picture to come names both modalities, and bounds no tokens.", () => {
    expect(bodyOf(aside({ model: "other", picture: true }))).toEqual({
      model: "other",
      messages,
      modalities: ["image", "text"]
    })
  })
  it("leaves the bodies of the session as they are.", () => {
    const encode = RequestBody.textEncoder(request("http://127.0.0.1/v1", settings))
    const tools = [tool("terminal")]
    const before = encode(ask({ tools }))
    encode(aside({ model: "other", temperature: 1 }, { tools }))
    expect(encode(ask({ tools }))).toBe(before)
  })
  it("shows images behind the text, also where the session's conversation is marked for keeping.", () => {
    const shown = (content: string) => [{ role: "user", content, images: [png] }] as const
    const image = { type: "image_url", image_url: { url: png } }
    const content = (more: Partial<Ask>, model: string) => bodyOf(ask(more), { model }).messages
    for (const model of ["test-model", "anthropic/claude-x"]) {
      expect(content({ messages: shown("What?"), aside: { tool: "t" } }, model)).toEqual([
        { role: "user", content: [{ type: "text", text: "What?" }, image] }
      ])
      expect(content({ messages: shown("") }, model)).toEqual([{ role: "user", content: [image] }])
    }
    expect(content({ messages: shown("What?") }, "anthropic/claude-x")).toEqual([
      {
        role: "user",
        content: [{ type: "text", text: "What?", cache_control: { type: "ephemeral" } }, image]
      }
    ])
  })
})

describe("Pictures of an answer", () => {
  const images = (message: object) =>
    Either.getOrThrow(Wire.decode(ask(), Server.completion({ content: null, message }))).images
  const image = (url: unknown) => ({ type: "image_url", image_url: { url } })

  it("are read from their own field and from the parts of the content.", () => {
    expect(images({ images: [image(png), image("https://x.example/a.png")] })).toEqual([png, "https://x.example/a.png"])
    expect(images({ content: [{ type: "text", text: "Here" }, image(png)] })).toEqual([png])
    expect(images({ images: [{ image_url: png }] })).toEqual([png])
  })
  it("are none where nothing is one, and at most eight.", () => {
    for (const none of [
      {},
      { images: null },
      { images: "x" },
      { images: [image(5), image("file:///etc/passwd"), 7] }
    ]) {
      expect(images(none)).toBeUndefined()
    }
    expect(images({ images: Array.from({ length: 100 }, () => image(png)) })).toHaveLength(8)
  })
})

describe("The endpoint's word to a tool", () => {
  const served = async (handler: Server.Handler) => {
    const server = await Server.start(handler)
    onTestFinished(() => server.close())
    const prices = { "test-model": { prompt: 1, completion: 1 }, other: { prompt: 1000, completion: 0 } }
    return (asked: Ask) =>
      Effect.runPromise(
        Effect.either(Effect.flatMap(Model, (model) => model.complete(asked))).pipe(
          Effect.provide(OpenAi.layer(request(server.url, { prices }), undefined))
        )
      )
  }

  it("is priced by the model that was asked.", async () => {
    const call = await served(() => Server.answer({ content: "Hi" }))
    const cost = async (asked: Ask) => Either.getOrThrow(await call(asked))
    expect((await cost(ask())).usage.cost_usd).toBe(0.000015)
    expect((await cost(aside())).usage.cost_usd).toBe(0.000015)
    expect((await cost(aside({ model: "other" }))).usage.cost_usd).toBe(0.01)
    expect(await cost(aside({ model: "third" }))).toMatchObject({ priced: false, usage: { total: 15 } })
  })
  it("about its model is understood as of that model.", async () => {
    const call = await served(() => Server.error(400, "other is not a valid model ID"))
    expect(await call(aside({ model: "other" }))).toMatchObject({ left: { reason: "ModelMissing" } })
    expect(await call(ask())).toMatchObject({ left: { reason: "BadRequest" } })
  })
})
