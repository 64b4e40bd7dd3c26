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
  it("gives bytes, or an answer whatever its status, after as many tries.", async () => {
    const server = await PageServer.start(({ path }) => ({
      status: Number(path.slice(1)),
      headers: { "retry-after": "0" },
      body: new Uint8Array([1, 2])
    }))
    const call = (status: number): Api.Call => ({
      service: "Some",
      url: `${server.url}/${status}`,
      method: "PATCH",
      key
    })
    expect([...(await within((api) => api.bytes(call(201))))]).toEqual([1, 2])
    expect(server.asked[0]).toMatchObject({ method: "PATCH", body: "" })
    const refused = await within((api) => api.reply(call(422)))
    expect([refused.status, refused.header("retry-after"), [...refused.bytes]]).toEqual([422, "0", [1, 2]])
    expect(server.asked.length).toBe(2)
    expect((await within((api) => api.reply(call(503)))).status).toBe(503)
    expect(server.asked.length).toBe(6)
    const error = Api.refused({ ...refused, bytes: Buffer.from(`it was ${secret}`) }, call(0))
    expect([error.message, error.status]).toEqual(["Some answers HTTP 422: it was ***", 422])
  })
  it("shows none of several secrets.", () => {
    const call = { key, hidden: [Redacted.make("the password")] }
    expect(Api.failed(`${secret} and the password`, call).message).toBe("*** and ***")
  })
  it("goes by the name and password of its address, which nobody is shown, where there is no key.", async () => {
    const server = await PageServer.start(({ headers }) => ({ status: 403, body: { error: headers.authorization } }))
    const address = `${server.url.replace("//", "//me:the-password@")}/x?token=0123456789abcdef`
    const said = await within((api) => Effect.flip(api.bytes({ service: "Some", url: address })))
    expect(said.message).toContain("Basic ***")
    expect(said.message).not.toMatch(/the-password|0123456789abcdef/)
    expect(server.asked[0]?.headers.authorization).toBe(`Basic ${btoa("me:the-password")}`)
    const keyed = await within((api) => Effect.flip(api.bytes({ service: "Some", url: address, key })))
    expect(keyed.message).not.toMatch(/the-password/)
    expect(server.asked[1]?.headers.authorization).toBeUndefined()
  })
  it("is not tried again where nothing would help.", async () => {
    const server = await PageServer.start(({ path }) => ({
      status: Number(path.slice(1)),
      body: { error: { message: "so it is", code: "insufficient_quota" } }
    }))
    expect(await error(`${server.url}/429`)).toBe(
      "Some has no credit left (HTTP 429); go on without this tool: so it is"
    )
    expect(await error(`${server.url}/501`)).toBe("Some answers HTTP 501: so it is")
    expect(server.asked.length).toBe(2)
  })
  it("that buys is tried again only where nothing was bought, or under a name for all tries.", async () => {
    let broken = 0
    const server = await PageServer.start(({ path }, response) => {
      if (path !== "/broken") return { status: Number(path.slice(1)), headers: { "retry-after": "0" } }
      if (broken++ === 1) return { body: { word: "bought" } }
      response.destroy()
      return undefined
    })
    const calls = async (path: string, purchase: Api.Call["purchase"]) => {
      const before = server.asked.length
      const word = await json(`${server.url}${path}`, { json: {}, purchase: purchase ?? {}, tries: 2 }).then(
        (read) => read.word,
        () => ""
      )
      const names = server.asked.slice(before).map(({ headers }) => headers["x-once"])
      return { word, names }
    }
    const none = undefined
    expect(await calls("/429", {})).toEqual({ word: "", names: [none, none] })
    expect(await calls("/503", {})).toEqual({ word: "", names: [none, none] })
    expect(await calls("/502", {})).toEqual({ word: "", names: [none] })
    expect(await calls("/502", { header: "x-once" })).toMatchObject({ names: [expect.any(String), expect.any(String)] })
    const named = await calls("/broken", { header: "x-once" })
    expect(named).toEqual({ word: "bought", names: [expect.stringMatching(/^batch-runner-/), named.names[0]] })
    expect(await calls("/broken", {})).toEqual({ word: "", names: [none] })
  })
  it("that may not be interrupted still ends in time, and its pauses are no part of it.", async () => {
    const server = await PageServer.start(({ path }) => (path === "/hang" ? undefined : { status: 503 }))
    const call = (path: string): Api.Call => ({ service: "Some", url: `${server.url}${path}`, timeout: 1 })
    const late = await within((api) => Effect.uninterruptible(Effect.flip(api.bytes(call("/hang")))))
    expect(late.message).toBe("Some gave no answer within 1 seconds")
    const begun = performance.now()
    const ended = await within((api) =>
      Effect.timeoutOption(Effect.uninterruptible(api.bytes({ ...call("/busy"), tries: 9 })), "100 millis")
    )
    expect([ended._tag, performance.now() - begun < 2000]).toEqual(["None", true])
    const before = performance.now()
    const whole = await within((api) =>
      Effect.timeoutOption(Effect.uninterruptible(Effect.exit(api.bytes(call("/hang")))), "100 millis")
    )
    expect([whole._tag, performance.now() - before > 900]).toEqual(["None", true])
  })
  it("is below the path and the query of its service's address.", () => {
    expect(Api.at("http://h/v1//", "/x?a=1")).toBe("http://h/v1/x?a=1")
    expect(Api.at("http://h/v1/?v=2?", "/x")).toBe("http://h/v1/x?v=2?")
    expect(Api.at("http://h?v=2", "/x?a=1")).toBe("http://h/x?a=1&v=2")
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
