/** Pictures of FAL's queue, against a server that keeps to its protocol: submit, look, fetch. */
import { Effect, Either } from "effect"
import { expect, test } from "vitest"
import * as ImageGeneration from "../../../src/tools/ImageGeneration.ts"
import * as Picture from "../../../src/tools/images/Picture.ts"
import type { ModelServer, Reaction, Recorded } from "../../support/ModelServer.ts"
import { call, png, scoped, serve, toolset } from "../made.ts"

const key = "fal-key-id:fal-key-secret-0123456789"

interface Script {
  /** What a look says, by how often that request was looked at. */
  readonly state?: (look: number) => Reaction | string
  readonly submitted?: (request: Recorded, place: number) => Reaction | undefined
  readonly result?: (origin: string) => Reaction
}

/** FAL's queue: what a model is asked, by request. */
const queue = async (picture: Buffer, script: Script = {}) => {
  const submits: Array<Recorded> = []
  let looks = 0
  const server: ModelServer = await serve((request) => {
    const { path, method } = request
    const origin = new URL(server.url).origin
    if (path === "/files/fox.jpg") return { body: picture }
    if (method === "PUT") return { status: 202, body: { status: "CANCELLATION_REQUESTED" } }
    if (method === "POST") {
      submits.push(request)
      const own = script.submitted?.(request, submits.length - 1)
      const id = `req-${submits.length}`
      looks = 0
      return (
        own ?? {
          body: {
            request_id: id,
            status_url: "http://10.0.0.1/s",
            response_url: "http://10.0.0.1/r",
            queue_position: 1
          }
        }
      )
    }
    if (path.endsWith("/status")) {
      const state = script.state?.(looks) ?? ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"][looks] ?? "COMPLETED"
      looks++
      return typeof state === "string" ? { status: state === "COMPLETED" ? 200 : 202, body: { status: state } } : state
    }
    return (
      script.result?.(origin) ?? {
        body: { images: [{ url: `${origin}/files/fox.jpg`, width: 12, height: 8 }], seed: 1 }
      }
    )
  })
  const variables = { FAL_KEY: key, FAL_API_URL: new URL(server.url).origin }
  return { server, submits, variables }
}

const told = ({ requests }: ModelServer) => requests.map(({ method, path }) => `${method} ${path}`)

test("A request is handed in, looked after until it is done, and its picture fetched, with the key for FAL alone", async () => {
  const picture = await png()
  const { server, submits, variables } = await queue(picture)
  await scoped(
    Effect.gen(function* () {
      const used = yield* call(yield* toolset(ImageGeneration.make, { variables }), { prompt: "A fox" })
      expect(used).toMatchObject({
        ok: true,
        result: { success: true, image: expect.stringMatching(/^images\/1-.*png$/) }
      })
    })
  )
  const request = "/fal-ai/flux/requests/req-1"
  expect(told(server)).toEqual([
    "POST /fal-ai/flux/schnell",
    ...Array(3).fill(`GET ${request}/status`),
    `GET ${request}`,
    "GET /files/fox.jpg"
  ])
  expect(submits[0]?.body).toEqual({ prompt: "A fox", num_images: 1, image_size: "landscape_16_9" })
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
    ...Array(5).fill(`Key ${key}`),
    undefined
  ])
})

test("The user's own model is asked, and one that knows no sizes by its ratio instead", async () => {
  const picture = await png()
  const { submits, variables } = await queue(picture, {
    submitted: ({ body }) =>
      "image_size" in body
        ? { status: 422, body: { detail: [{ loc: ["body", "image_size"], msg: "unexpected value", type: "enum" }] } }
        : undefined
  })
  await scoped(
    Effect.gen(function* () {
      const tools = yield* toolset(ImageGeneration.make, { variables, imageModel: "fal-ai/imagen4/preview/fast" })
      expect((yield* call(tools, { prompt: "x", aspect_ratio: "portrait" })).ok).toBe(true)
      expect((yield* call(tools, { prompt: "x", aspect_ratio: "square" })).ok).toBe(true)
    })
  )
  expect(submits.map(({ path, body }) => [path, body.image_size, body.aspect_ratio])).toEqual(
    [
      ["portrait_16_9", undefined],
      [undefined, "9:16"],
      [undefined, "1:1"]
    ].map((shape) => ["/fal-ai/imagen4/preview/fast", ...shape])
  )
})

test("A request that FAL may have taken is not handed in again, but to the tool gateway, which knows it for the same", async () => {
  const { server, submits, variables } = await queue(await png(), {
    submitted: (_, place) => (place < 2 ? { reset: true } : undefined)
  })
  const gateway = {
    TOOL_GATEWAY_USER_TOKEN: "token-0123456789",
    FAL_QUEUE_GATEWAY_URL: `${new URL(server.url).origin}/`
  }
  await scoped(
    Effect.gen(function* () {
      const own = yield* call(yield* toolset(ImageGeneration.make, { variables }), { prompt: "x" })
      expect(own.result.error).toMatch(/^FAL cannot be reached/)
      expect(submits).toHaveLength(1)
      const other = yield* call(yield* toolset(ImageGeneration.make, { variables: gateway }), { prompt: "x" })
      expect(other.ok).toBe(true)
    })
  )
  const names = submits.map(({ headers }) => headers["x-idempotency-key"])
  expect(names).toEqual([undefined, expect.stringMatching(/^batch-runner-/), names[1]])
})

test("The tool gateway is FAL's queue behind another token", async () => {
  const { server, variables } = await queue(await png())
  await scoped(
    Effect.gen(function* () {
      const gateway = {
        TOOL_GATEWAY_USER_TOKEN: "token-0123456789",
        FAL_QUEUE_GATEWAY_URL: `${variables.FAL_API_URL}/`
      }
      const tools = yield* toolset(ImageGeneration.make, { variables: gateway })
      expect((yield* call(tools, { prompt: "x" })).ok).toBe(true)
    })
  )
  expect(server.requests[0]?.headers.authorization).toBe("Bearer token-0123456789")
})

test("What goes wrong on the way is told without the key", async () => {
  const picture = await png()
  const cases: ReadonlyArray<readonly [Script, RegExp]> = [
    [
      { submitted: () => ({ status: 401, body: { detail: `no such key ${key}` } }) },
      /^FAL refuses the key in FAL_KEY \(HTTP 401\).*\*\*\*/
    ],
    [{ submitted: () => ({ body: { request_id: "../../other" } }) }, /did not take the request/],
    [{ state: () => ({ body: "?" }) }, /does not say how the request is doing/],
    [{ state: () => "FAILED" }, /ended as FAILED/],
    [
      {
        result: () => ({ status: 422, body: { detail: [{ msg: "content policy", type: "content_policy_violation" }] } })
      },
      /content policy/
    ],
    [{ result: () => ({ body: { images: [] } }) }, /no picture came/],
    [{ result: () => ({ body: { images: [{ url: "http://169.254.169.254/x" }] } }) }, /private or local/],
    [{ result: () => ({ body: { image: { url: "data:image/png;base64,AAAA" } } }) }, /no PNG/]
  ]
  for (const [script, says] of cases) {
    const { variables } = await queue(picture, script)
    await scoped(
      Effect.gen(function* () {
        const used = yield* call(yield* toolset(ImageGeneration.make, { variables }), { prompt: "x" })
        expect(used.ok).toBe(false)
        expect(used.result.error).toMatch(says)
        expect(used.text).not.toContain("fal-key-secret")
      })
    )
  }
})

test("A request that nobody waits for any more is taken back", async () => {
  const { server, variables } = await queue(await png(), { state: () => "IN_QUEUE" })
  await scoped(
    Effect.gen(function* () {
      const tools = yield* toolset(ImageGeneration.make, { variables })
      yield* Effect.timeoutOption(call(tools, { prompt: "x" }), "700 millis")
    })
  )
  expect(told(server).at(-1)).toBe("PUT /fal-ai/flux/requests/req-1/cancel")
})

test("FAL is chosen by its key alone, by its model's name, or by word; else the endpoint is", async () => {
  const endpoint = { baseUrl: "http://127.0.0.1:9/v1", apiKey: undefined, model: "m", offline: false }
  const variables = { FAL_KEY: "k", FAL_API_URL: "no address" }
  const lacks = (setting: object) =>
    Effect.runPromise(
      Effect.scoped(
        Effect.map(toolset(ImageGeneration.make, { variables, endpoint, ...setting }), (made) => made.lacks)
      )
    )
  // An address that is none tells who would have been asked.
  const fal = expect.stringContaining("no valid address of FAL")
  expect(await lacks({})).toEqual(fal)
  expect(await lacks({ imageModel: "fal-ai/x" })).toEqual(fal)
  expect(await lacks({ imageModel: "gpt-image-1", imageBackend: "fal" })).toEqual(fal)
  expect(await lacks({ imageModel: "gpt-image-1" })).toBe(null)
  expect(await lacks({ imageModel: "fal-ai/x", imageBackend: "endpoint" })).toBe(null)
  expect(await lacks({ imageModel: "fal-ai/x", variables: {} })).toBe(null)
})

test("A service's own address is reached wherever it is, but no other port of it and no neighbour", async () => {
  const guard = Picture.guardOf(false, new URL("http://localhost:8000/v1"))
  const reached = (url: string) => Either.isRight(guard.url(url))
  expect(reached("http://localhost:8000/files/a.png")).toBe(true)
  expect(reached("http://localhost:9000/a.png")).toBe(false)
  expect(reached("http://127.0.0.1:8000/a.png")).toBe(false)
  expect(reached("file:///etc/passwd")).toBe(false)
  expect(reached("https://example.org/a.png")).toBe(true)
  expect(await Effect.runPromise(Effect.isSuccess(guard.resolve("localhost")))).toBe(true)
  const other = Picture.guardOf(false, new URL("http://10.0.0.7:8000/v1"))
  expect(await Effect.runPromise(Effect.isSuccess(other.resolve("localhost")))).toBe(false)
  expect(await Effect.runPromise(Effect.isSuccess(other.resolve("10.0.0.7")))).toBe(true)
})

test("A password in the address is sent as one goes, and shown to nobody", async () => {
  const password = "a-password-0123456789"
  const { server, variables } = await queue(await png(), {
    submitted: (request) => ({ status: 403, body: { detail: `no: ${request.headers.authorization} ${password}` } })
  })
  const address = variables.FAL_API_URL.replace("//", `//user:${password}@`)
  const made = toolset(ImageGeneration.make, { variables: { FAL_KEY: key, FAL_API_URL: address } })
  const refused = await scoped(Effect.flatMap(made, (tools) => call(tools, { prompt: "x" })))
  expect(refused.result.error).toMatch(/\(HTTP 403\): no: Key \*+ \*\*\*$/)
  expect(server.requests[0]?.headers.authorization).toBe(`Key ${key}`)
})
