import { Effect, Redacted, Schema } from "effect"
import { describe, expect, it } from "vitest"
import * as Api from "../../../src/tools/net/Api.ts"
import * as PageServer from "../../support/PageServer.ts"

const secret = "sk-very-secret-0123456789"
const key = { header: "x-key", before: "Token ", secret: Redacted.make(secret), name: "SOME_KEY" }
const Word = Schema.Struct({ word: Api.text })

const within = <A, E>(use: (api: Api.Api) => Effect.Effect<A, E>) =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(Api.make({ environment: {} }), use)))

const json = (url: string, more: Partial<Api.Call> = {}) =>
  within((api) => api.json({ service: "Some", url, key, ...more }, Word))

const error = (url: string, more: Partial<Api.Call> = {}) =>
  within((api) => Effect.flip(api.json({ service: "Some", url, key, ...more }, Word))).then(({ message }) => message)

describe("A call of a service", () => {
  it("sends JSON with the key, and reads JSON back.", async () => {
    const server = await PageServer.start(() => ({ body: `\uFEFF{"word":"hello"}` }))
    expect(await json(server.url, { json: { a: 1 } })).toEqual({ word: "hello" })
    expect(server.asked[0]).toMatchObject({
      method: "POST",
      body: '{"a":1}',
      headers: { "x-key": `Token ${secret}`, "content-type": "application/json" }
    })
    await json(server.url)
    expect(server.asked[1]).toMatchObject({ method: "GET", body: "" })
  })
  it("sends and gives bytes.", async () => {
    const server = await PageServer.start(() => ({
      headers: { "content-type": "Audio/MPEG; x=y" },
      body: new Uint8Array([1, 2])
    }))
    const body = { bytes: new Uint8Array([3, 4]), type: "image/png" }
    const answer = await within((api) => api.bytes({ service: "Some", url: server.url, body }))
    expect([[...answer.bytes], answer.contentType]).toEqual([[1, 2], "audio/mpeg"])
    expect(server.asked[0]).toMatchObject({
      method: "POST",
      body: "\u0003\u0004",
      headers: { "content-type": "image/png" }
    })
  })
  it("reads a missing or wrong field as empty, and leaves the key out of an answer.", async () => {
    const words = [{}, { word: null }, { word: 3 }, { word: `it is ${secret}` }]
    const server = await PageServer.start((_, __, place) => ({ body: words[place] ?? {} }))
    const read = [await json(server.url), await json(server.url), await json(server.url), await json(server.url)]
    expect(read.map(({ word }) => word)).toEqual(["", "", "", "it is ***"])
  })
  it("says that a key is refused without showing it, even where the server does.", async () => {
    const server = await PageServer.start(({ headers }) => ({
      status: 401,
      body: { error: { message: `Invalid key ${headers["x-key"]} (${secret.slice(0, 14)}...)` } }
    }))
    const said = await error(server.url)
    expect(said).toMatch(/^Some refuses the key in SOME_KEY \(HTTP 401\): Invalid key Token \*\*\*/)
    expect(said).not.toContain(secret.slice(0, 8))
    expect(server.asked.length).toBe(1)
    expect(await error(server.url, { key: undefined })).toContain("wants a key")
  })
  it("is tried again when the service is busy or fails, as it asks to.", async () => {
    const ends = [
      { status: 429, headers: { "retry-after": "0" } },
      { status: 503, headers: { "retry-after-ms": "20" } },
      { body: { word: "at last" } }
    ]
    const server = await PageServer.start((_, __, place) => ends[place])
    expect(await json(server.url)).toEqual({ word: "at last" })
    expect(server.asked.length).toBe(3)
  })
  it("gives up after its tries, and at once where the wait is long or nothing would help.", async () => {
    const server = await PageServer.start(({ path }) => ({
      status: Number(path.slice(1, 4)),
      headers: { "retry-after": path.endsWith("late") ? "600" : "0" },
      body: { detail: "so it is" }
    }))
    expect(await error(`${server.url}/429`)).toBe("Some takes no more calls now (HTTP 429): try again later: so it is")
    expect(server.asked.length).toBe(4)
    expect(await error(`${server.url}/500`, { tries: 2 })).toBe("Some answers HTTP 500: so it is")
    expect(server.asked.length).toBe(6)
    expect(await error(`${server.url}/429late`)).toContain("HTTP 429")
    expect(await error(`${server.url}/400`)).toBe("Some answers HTTP 400: so it is")
    expect(server.asked.length).toBe(8)
  })
  it("follows no redirect: the key goes nowhere else.", async () => {
    const other = await PageServer.start(() => ({ body: {} }))
    const server = await PageServer.start(() => ({ status: 307, headers: { location: `${other.url}/?k=${secret}` } }))
    const said = await error(server.url, { json: {} })
    expect(said).toContain(`Some has moved to ${other.url}/?k=***`)
    expect(other.asked).toEqual([])
  })
  it("is bounded in size and in time.", async () => {
    const server = await PageServer.start(({ path }, response) => {
      if (path === "/hang") return undefined
      const timer = setInterval(() => response.write("x".repeat(100_000)), 1)
      response.on("close", () => clearInterval(timer))
      return undefined
    })
    expect(await error(server.url, { maxBytes: 1_000_000 })).toBe("Some answered with more than 1000000 bytes")
    expect(await error(`${server.url}/hang`, { timeout: 0.2 })).toBe("Some gave no answer within 0.2 seconds")
    await expect.poll(server.gone).toBe(2)
  })
  it("says when there is no answer, or none that can be read.", async () => {
    const server = await PageServer.start(({ path }) => ({ body: path === "/deep" ? "[".repeat(100_000) : "<html>" }))
    expect(await error(server.url)).toBe("Some answered, but not with the JSON that it documents")
    expect(await error(`${server.url}/deep`)).toBe("Some answered, but not with the JSON that it documents")
    expect(await error("http://127.0.0.1:9", { tries: 1 })).toMatch(/^Some cannot be reached: /)
    expect(await error("nonsense")).toBe("the address of Some is no http or https URL")
    const broken = { ...key, secret: Redacted.make("line one\nline two") }
    const said = await error(server.url, { key: broken })
    expect(said).toContain("characters that HTTP does not allow")
    expect(said).not.toContain("line")
  })
})
