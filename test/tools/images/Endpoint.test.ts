/** Pictures of an endpoint: its images API as OpenAI documents it, and a chat model that answers with pictures. */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { expect, test } from "vitest"
import * as Budget from "../../../src/model/Budget.ts"
import { type Answer, type Ask, Model, ModelError, noUsage, type Usage } from "../../../src/model/Model.ts"
import * as ImageGeneration from "../../../src/tools/ImageGeneration.ts"
import * as ImagesApi from "../../../src/tools/images/ImagesApi.ts"
import * as Picture from "../../../src/tools/images/Picture.ts"
import * as Access from "../../../src/tools/net/Access.ts"
import * as Api from "../../../src/tools/net/Api.ts"
import * as Paid from "../../../src/tools/Paid.ts"
import type { Setting } from "../../../src/tools/Setting.ts"
import { ToolSession } from "../../../src/tools/ToolSession.ts"
import type { Handler, Reaction, Recorded } from "../../support/ModelServer.ts"
import { call, folder, gif, jpeg, png, scoped, serve, toolset, webp } from "../made.ts"
import { sh } from "../support.ts"

const key = "sk-very-secret-key-0123456789"

const endpoint = (baseUrl: string, more: object = {}) => ({
  endpoint: { baseUrl, apiKey: Redacted.make(key), model: "m", offline: false, ...more }
})

/** The images API's answer with a picture. */
const drawn = (bytes: Buffer, usage?: object): Reaction => ({
  body: { created: 1, data: [{ b64_json: bytes.toString("base64") }], ...(usage === undefined ? {} : { usage }) }
})

const problem = (status: number, message: string, code: string | null = null, headers = {}): Reaction => ({
  status,
  headers,
  body: { error: { message, type: "invalid_request_error", code } }
})

/** The tool against a server, with a session whose spending is told. */
const painter = async (handler: Handler, setting: Partial<Omit<Setting, "variables">> = {}, more: object = {}) => {
  const server = await serve(handler)
  const made = toolset(ImageGeneration.make, { imageModel: "gpt-image-1", ...endpoint(server.url, more), ...setting })
  return { server, made }
}

const sizes = (requests: ReadonlyArray<Recorded>) => requests.map(({ body }) => body.size)

test("A picture lands in the sandbox and under its hash in the media folder, and no base64 in the result", async () => {
  const [picture, other] = [await png(), await png(200)]
  const media = join(folder(), "media")
  const { server, made } = await painter((_, place) => drawn(place === 0 ? picture : other), { mediaFolder: media })
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      const used = yield* call(tools, { prompt: "A red fox\ud800", aspect_ratio: "portrait" })
      const hash = createHash("sha256").update(picture).digest("hex").slice(0, 32)
      expect(used).toMatchObject({ ok: true, valid: true })
      expect(used.result).toEqual({
        success: true,
        image: `images/1-${hash.slice(0, 8)}.png`,
        media: `media/${hash}.png`
      })
      expect(used.text.length).toBeLessThan(200)
      expect(readFileSync(join(media, `${hash}.png`)).equals(picture)).toBe(true)
      expect(yield* sh(`sha256sum < ${used.result.image} | cut -c1-32`)).toBe(`${hash}\n`)
      const second = yield* call(tools, { prompt: "Another" })
      expect(second.result.image).toMatch(/^images\/2-/)
      expect(readdirSync(media)).toHaveLength(2)
    })
  )
  const [first] = server.requests
  expect(first?.path).toBe("/v1/images/generations")
  expect(first?.headers.authorization).toBe(`Bearer ${key}`)
  expect(first?.body).toEqual({ model: "gpt-image-1", prompt: "A red fox\ufffd", n: 1, size: "1024x1536" })
  expect(sizes(server.requests)).toEqual(["1024x1536", "1536x1024"])
})

test("Every kind of picture is known by its content, and what is none is a failure", async () => {
  const bodies = [await jpeg(), await webp(), await gif(), Buffer.from("<html>no picture</html>"), Buffer.alloc(0)]
  const { made } = await painter((_, place) => drawn(bodies[place] ?? Buffer.alloc(0)))
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      const used = yield* Effect.replicateEffect(call(tools, { prompt: "x" }), 5)
      expect(used.slice(0, 3).map(({ result }) => result.image.replace(/.*\./, ""))).toEqual(["jpg", "webp", "gif"])
      expect(used[0]?.result).not.toHaveProperty("media")
      expect(used.slice(3).map(({ ok }) => ok)).toEqual([false, false])
      expect(used[3]?.result.error).toContain("no PNG, JPEG, WebP or GIF")
    })
  )
})

test("Each model is asked in its own sizes; one that takes none is asked again without, once for the run", async () => {
  const picture = await png()
  const dall = await painter(() => drawn(picture), { imageModel: "openai/dall-e-3" })
  const fussy = await painter(({ body }) =>
    body.size === undefined ? drawn(picture) : problem(400, "Argument not supported: size")
  )
  await scoped(
    Effect.gen(function* () {
      yield* call(yield* dall.made, { prompt: "x" })
      const tools = yield* fussy.made
      expect((yield* call(tools, { prompt: "x", aspect_ratio: "square" })).ok).toBe(true)
      expect((yield* call(tools, { prompt: "x" })).ok).toBe(true)
    })
  )
  expect(dall.server.requests[0]?.body).toMatchObject({ size: "1792x1024", response_format: "b64_json" })
  expect(sizes(fussy.server.requests)).toEqual(["1024x1024", undefined, undefined])
})

test("An address of the endpoint's own host is fetched without the key; other private ones are not", async () => {
  const picture = await png()
  const elsewhere = await serve(() => ({ body: picture }))
  const { server, made } = await painter(({ path }, place) =>
    path.startsWith("/files")
      ? { body: picture, headers: { "content-type": "image/png" } }
      : place === 0
        ? { body: { data: [{ url: new URL("/files/1.png", server.url).href }] } }
        : { body: { data: [{ url: elsewhere.url, b64_json: null }] } }
  )
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      expect((yield* call(tools, { prompt: "x" })).ok).toBe(true)
      const refused = yield* call(tools, { prompt: "x" })
      expect(refused.ok).toBe(false)
      expect(refused.result.error).toMatch(/cannot be fetched: 127\.0\.0\.1 is a private or local address/)
    })
  )
  expect(server.requests.find(({ path }) => path === "/files/1.png")?.headers).not.toHaveProperty("authorization")
  expect(elsewhere.requests).toHaveLength(0)
})

test("Refusals are told in the endpoint's words without the key, and only those that pass are tried again", async () => {
  const picture = await png()
  const answers: ReadonlyArray<Reaction> = [
    problem(401, `Incorrect API key provided: ${key}`),
    problem(400, "Your request was rejected by our safety system", "moderation_blocked"),
    problem(404, "The model `gpt-image-1` does not exist", "model_not_found"),
    problem(429, "You exceeded your current quota", "insufficient_quota"),
    { body: { error: { message: "out of paint" } } },
    { body: "not json" },
    problem(429, "slow down", null, { "retry-after": "100000" }),
    problem(429, "slow down", null, { "retry-after": "1" }),
    problem(503, "busy"),
    { reset: true },
    drawn(picture)
  ]
  const { server, made } = await painter((_, place) => answers[place] ?? drawn(picture))
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      const errors: Array<string> = []
      for (let n = 0; n < 7; n++) errors.push((yield* call(tools, { prompt: "x" })).result.error)
      expect(errors[0]).toMatch(/^127\S+ refuses the key \(HTTP 401\): Incorrect API key provided: \*\*\*$/)
      expect(errors.slice(1)).toEqual([
        expect.stringContaining("safety system"),
        expect.stringMatching(/HTTP 404: The model .* does not exist/),
        expect.stringMatching(/no credit left \(HTTP 429\).*exceeded your current quota/),
        expect.stringContaining("out of paint"),
        expect.stringContaining("no picture came from"),
        expect.stringContaining("takes no more calls now")
      ])
      expect(errors.join()).not.toContain(key)
      const before = performance.now()
      expect((yield* call(tools, { prompt: "x" })).ok).toBe(true)
      expect(performance.now() - before).toBeGreaterThan(1000)
      for (const args of [{ prompt: " " }, { prompt: "x".repeat(32_001) }, { prompt: "x", aspect_ratio: "round" }]) {
        expect((yield* call(tools, args)).ok).toBe(false)
      }
    })
  )
  expect(server.requests).toHaveLength(11)
})

test("An answer that is too large is given up, and one that never comes ends with its session", async () => {
  const { server, made } = await painter((_, place) =>
    place === 0 ? { body: Buffer.alloc(42_000_000, 65) } : { hang: true }
  )
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      expect((yield* call(tools, { prompt: "x" })).result.error).toMatch(/more than \d+ bytes/)
      yield* Effect.timeoutOption(call(tools, { prompt: "x" }), "300 millis")
    })
  )
  await server.requests[1]?.closed
  expect(server.requests).toHaveLength(2)
})

test("At most three pictures of a run are made at once", async () => {
  const picture = await png()
  const { server, made } = await painter(() => ({ ...drawn(picture), delay: 60 }))
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      yield* Effect.forEach(Array(9), () => call(tools, { prompt: "x" }), { concurrency: "unbounded" })
    })
  )
  expect(server.inFlight.most).toBe(3)
})

/** A model that answers with pictures, and hears what it is asked. */
const chatting = (answer: Partial<Answer> | ModelError) => {
  const asks: Array<Ask> = []
  const complete = (ask: Ask) => {
    asks.push(ask)
    const full: Answer = {
      ...{ content: "", reasoning: "", toolCalls: [], finishReason: "stop", usage: noUsage, echo: {} },
      ...answer
    }
    return answer instanceof ModelError ? Effect.fail(answer) : Effect.succeed(full)
  }
  return { asks, provided: Effect.provideService(Model, { complete }) }
}

test("Where there is no images API the model of the name is asked, and that is remembered for the run", async () => {
  const picture = await png()
  for (const [status, message] of [
    [404, "Not Found"],
    [405, "Method Not Allowed"],
    [501, "nothing here"],
    [400, "This model does not support image generation by this API"]
  ] as const) {
    const { server, made } = await painter(() => problem(status, message), { imageModel: "chat/painter" })
    const { asks, provided } = chatting({ images: [`data:image/png;base64,${picture.toString("base64")}`] })
    await scoped(
      Effect.gen(function* () {
        const tools = yield* made
        for (const aspect_ratio of ["square", "portrait"]) {
          const used = yield* provided(call(tools, { prompt: "A fox", aspect_ratio }))
          expect(used).toMatchObject({ ok: true, result: { success: true } })
        }
      })
    )
    expect(server.requests).toHaveLength(1)
    expect(asks.map(({ aside }) => aside)).toEqual(
      Array(2).fill({ tool: "image_generate", model: "chat/painter", picture: true })
    )
    expect(asks[1]?.messages).toEqual([{ role: "user", content: expect.stringMatching(/tall[\s\S]*A fox$/) }])
  }
})

test("An answer without a picture tells what the model said, and an address that is refused is not fetched", async () => {
  const { made } = await painter(() => problem(404, "Not Found"), { imageModel: "google/painter" })
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      const words = yield* chatting({ content: "I would rather not." }).provided(call(tools, { prompt: "x" }))
      expect(words.result.error).toBe("google/painter made no picture, it answered: I would rather not.")
      const inside = yield* chatting({ images: ["http://10.0.0.1/x.png"] }).provided(call(tools, { prompt: "x" }))
      expect(inside.result.error).toContain("private or local")
    })
  )
})

test("OpenRouter's images API is asked in its own words, and what it says a picture costs counts", async () => {
  expect(ImagesApi.apiOf(new URL("https://openrouter.ai/api/v1"))).toBe(ImagesApi.openRouter)
  expect(ImagesApi.apiOf(new URL("https://notopenrouter.ai/v1"))).toBe(ImagesApi.openAi)
  const picture = await png()
  const server = await serve(({ body }) =>
    body.aspect_ratio === "2:3"
      ? problem(400, "aspect_ratio is not supported by this model")
      : drawn(picture, { prompt_tokens: 0, completion_tokens: 4175, total_tokens: 4175, cost: 0.04 })
  )
  const spent: Array<Usage> = []
  await scoped(
    Effect.gen(function* () {
      const access = Access.ofEndpoint({ baseUrl: server.url, apiKey: Redacted.make("k") })
      const service = Access.open(yield* Api.make(), access, 1)
      const read = yield* Picture.reader(false, new URL(server.url))
      const model = "bytedance-seed/seedream-4.5"
      const draw = ImagesApi.make({
        api: ImagesApi.openRouter,
        service,
        model,
        price: undefined,
        read,
        paid: Paid.make()
      })
      const session = yield* ToolSession
      const counted = Effect.provideService(ToolSession, { ...session, spent: (usage) => spent.push(usage) })
      for (const ratio of ["landscape", "portrait"] as const) {
        expect((yield* counted(draw({ prompt: "A fox", ratio }))).extension).toBe("png")
      }
    })
  )
  expect(server.requests.map(({ path, body }) => [path, body])).toEqual(
    [{ aspect_ratio: "3:2" }, { aspect_ratio: "2:3" }, {}].map((shape) => [
      "/v1/images",
      { model: "bytedance-seed/seedream-4.5", prompt: "A fox", ...shape }
    ])
  )
  expect(spent.map(({ cost_usd }) => cost_usd)).toEqual([0.04, 0, 0.04])
})

test("With the offline model only the images API of the address is asked", async () => {
  const { server, made } = await painter(() => problem(404, "Not Found"), {}, { offline: true, apiKey: undefined })
  const { asks, provided } = chatting({})
  await scoped(
    Effect.gen(function* () {
      expect((yield* provided(call(yield* made, { prompt: "x" }))).ok).toBe(false)
    })
  )
  expect([asks.length, server.requests[0]?.headers.authorization]).toEqual([0, undefined])
})

test("What the endpoint says was used counts to the session and to the run, and nothing is made beyond the budget", async () => {
  const picture = await png()
  const usage = {
    total_tokens: 1100,
    input_tokens: 100,
    output_tokens: 1000,
    input_tokens_details: { text_tokens: 100 }
  }
  const { server, made } = await painter(() => drawn(picture, usage), {
    prices: { "gpt-image-1": { prompt: 5, completion: 40 } }
  })
  const { budget } = Budget.within(
    { complete: () => Effect.die("not asked") },
    { cost: 0.1, tokens: null, priced: false }
  )
  const spent: Array<Usage> = []
  await scoped(
    Effect.gen(function* () {
      const tools = yield* made
      const session = yield* ToolSession
      const paint = call(tools, { prompt: "x" }).pipe(
        Effect.provideService(Budget.Budget, budget),
        Effect.provideService(ToolSession, { ...session, spent: (usage) => spent.push(usage) })
      )
      expect([(yield* paint).ok, (yield* paint).ok]).toEqual([true, true])
      const third = yield* paint
      expect(third.ok).toBe(false)
      expect(third.result.error).toMatch(
        /not made: the budget is reached: \$0\.0810 spent, and the next call could pass/
      )
    })
  )
  expect(server.requests).toHaveLength(2)
  expect(spent).toEqual(
    Array(2).fill({ prompt: 100, completion: 1000, reasoning: 0, cached: 0, total: 1100, cost_usd: 0.0405 })
  )
  expect(Effect.runSync(budget.spent).usage).toMatchObject({ total: 2200, cost_usd: 0.081 })
})

test("What there is not is told as a clause", async () => {
  const lacks = (setting: Parameters<typeof toolset>[1]) =>
    Effect.runPromise(Effect.scoped(Effect.map(toolset(ImageGeneration.make, setting), (made) => made.lacks)))
  expect(await lacks({})).toBe("no --image_model, and no FAL_KEY")
  expect(await lacks({ imageBackend: "endpoint", variables: { FAL_KEY: "k" } })).toBe("no --image_model")
  expect(await lacks({ imageBackend: "fal", imageModel: "x" })).toBe("no FAL_KEY")
  expect(await lacks({ imageModel: "x" })).toBe("no endpoint")
  expect(await lacks({ imageModel: "x", ...endpoint("http://h/v1") })).toBe(null)
  expect(await lacks({ variables: { FAL_KEY: "k" } })).toBe(null)
  expect(await lacks({ variables: { TOOL_GATEWAY_USER_TOKEN: "t" } })).toBe(null)
})
