/** The client against a real server: what it sends, what it understands, how it fails, and that no key gets out. */
import * as Net from "node:net"
import * as Zlib from "node:zlib"
import { Duration, Effect, Either, Fiber, Redacted } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { type Answer, type Ask, Model, type ModelError, type Request } from "../../src/model/Model.ts"
import * as OpenAi from "../../src/model/OpenAi.ts"
import * as Server from "../support/ModelServer.ts"
import { ask, request, tool } from "./asks.ts"

const key = "sk-test-0123456789abcdefghijklmnopqrstuvwxyz"

const open: Array<Server.ModelServer> = []
const server = async (handler: Server.Handler): Promise<Server.ModelServer> => {
  const started = await Server.start(handler)
  open.push(started)
  return started
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()))
})

interface How {
  readonly request?: Partial<Request>
  readonly ask?: Partial<Ask>
  readonly key?: string | undefined
}

const complete = (url: string, how: How = {}): Effect.Effect<Answer, ModelError> =>
  Effect.flatMap(Model, (model) => model.complete(ask(how.ask))).pipe(
    Effect.provide(
      OpenAi.layer(
        request(url, how.request),
        "key" in how && how.key === undefined ? undefined : Redacted.make(how.key ?? key)
      )
    )
  )

/** How one call ends at a server that reacts like this. */
const outcome = async (reaction: Server.Reaction, how?: How): Promise<Either.Either<Answer, ModelError>> => {
  const started = await server(() => reaction)
  return Effect.runPromise(Effect.either(complete(started.url, how)))
}
const failure = async (reaction: Server.Reaction, how?: How): Promise<ModelError> =>
  Either.getOrThrow(Either.flip(await outcome(reaction, how)))

describe("A request", () => {
  it("goes to /chat/completions with the key, and with the body that was asked for.", async () => {
    const started = await server(() => Server.answer({ content: "Hi" }))
    const answer = await Effect.runPromise(
      complete(started.url, {
        request: { maxTokens: 5, provider: { only: ["a"] }, reasoning: { effort: "low" } },
        ask: { tools: [tool("terminal")] }
      })
    )
    expect(answer.content).toBe("Hi")
    const [sent] = started.requests
    expect([sent?.method, sent?.path]).toEqual(["POST", "/v1/chat/completions"])
    expect(sent?.headers.authorization).toBe(`Bearer ${key}`)
    expect(sent?.headers["content-type"]).toBe("application/json")
    expect(sent?.body).toEqual({
      model: "test-model",
      messages: [{ role: "user", content: "Say hello." }],
      tools: [tool("terminal")],
      max_tokens: 5,
      provider: { only: ["a"] },
      reasoning: { effort: "low" }
    })
  })
  it("carries no authorization without a key, and nothing of the OPENAI variables.", async () => {
    const variables = {
      OPENAI_API_KEY: "sk-of-the-environment",
      OPENAI_ADMIN_KEY: "sk-admin",
      OPENAI_ORG_ID: "org-x",
      OPENAI_PROJECT_ID: "proj-x",
      OPENAI_BASE_URL: "http://127.0.0.1:1/v1",
      OPENAI_CUSTOM_HEADERS: "x-custom: 1\nauthorization: Bearer other",
      OPENAI_LOG: "debug"
    }
    Object.assign(process.env, variables)
    const started = await server(() => Server.answer({ content: "Hi" }))
    await Effect.runPromise(complete(started.url, { key: undefined }))
    for (const name of Object.keys(variables)) {
      delete process.env[name]
    }
    expect(Object.keys(started.requests[0]?.headers ?? {}).sort()).toEqual(
      ["accept", "connection", "content-length", "content-type", "host", "user-agent"].sort()
    )
  })
  it("carries the name and password of its address where there is no key.", async () => {
    const started = await server(() => Server.answer({ content: "Hi" }))
    const url = started.url.replace("http://", "http://me:my%20secret%zz@")
    await Effect.runPromise(complete(url, { key: undefined }))
    await Effect.runPromise(complete(url.replace("%zz", "")))
    await Effect.runPromise(complete(url.replace("%zz", ""), { key: undefined }))
    expect(started.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Basic ${Buffer.from("me:my%20secret%zz").toString("base64")}`,
      `Bearer ${key}`,
      `Basic ${Buffer.from("me:my secret").toString("base64")}`
    ])
  })
  it("goes past the proxy variables on this machine, and through them elsewhere.", async () => {
    const started = await server(() => Server.answer({ content: "Hi" }))
    const tunnels: Array<string> = []
    const proxy = Net.createServer((socket) => {
      socket.on("error", () => {})
      socket.once("data", (bytes) => {
        tunnels.push(String(bytes).split("\r\n")[0] ?? "")
        socket.end("HTTP/1.1 502 No\r\n\r\n")
      })
    })
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", () => resolve()))
    const address = proxy.address()
    process.env.HTTPS_PROXY = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
    process.env.HTTP_PROXY = process.env.HTTPS_PROXY
    const [here, there] = await Effect.runPromise(
      Effect.all([complete(started.url), Effect.flip(complete("https://model.invalid/v1"))])
    ).finally(() => {
      delete process.env.HTTPS_PROXY
      delete process.env.HTTP_PROXY
      proxy.close()
    })
    expect(here.content).toBe("Hi")
    expect(there.reason).toBe("NotConnected")
    expect(tunnels).toEqual(["CONNECT model.invalid:443 HTTP/1.1"])
  })
})

describe("An answer", () => {
  it("comes back on the next call exactly as the endpoint gave it.", async () => {
    const details = [{ type: "reasoning.encrypted", data: "abc", id: "r", index: 0, odd: { deep: [1] } }]
    const message = { reasoning: "Hm.", reasoning_details: details }
    const started = await server((_, place) =>
      place === 0
        ? Server.answer({ message, toolCalls: [{ id: "c1", name: "terminal", arguments: { command: "ls" } }] })
        : Server.answer({ content: "Done" })
    )
    const first = await Effect.runPromise(complete(started.url))
    expect([first.reasoning, first.finishReason]).toEqual(["Hm.", "tool_calls"])
    await Effect.runPromise(
      complete(started.url, {
        ask: {
          turn: 1,
          messages: [
            { role: "answer", answer: first },
            { role: "tool", callId: "c1", name: "terminal", content: "x" }
          ]
        }
      })
    )
    expect(started.requests[1]?.body.messages).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "terminal", arguments: '{"command":"ls"}' } }],
        ...message
      },
      { role: "tool", tool_call_id: "c1", content: "x" }
    ])
  })
  it("is understood when it trickles in, comes under another content type or compressed.", async () => {
    const body = Server.completion({ content: "Grüße 👋" })
    const zipped = Zlib.gzipSync(JSON.stringify(body))
    for (const reaction of [
      { body, trickle: { bytes: 7, every: 1 } },
      { body, headers: { "content-type": "text/plain" } },
      { body: zipped, headers: { "content-encoding": "gzip" } },
      { body: Zlib.brotliCompressSync(zipped), headers: { "content-encoding": "GZIP, br" } },
      { body: Zlib.deflateSync(JSON.stringify(body)), headers: { "content-encoding": "deflate" } },
      { body: Zlib.deflateRawSync(JSON.stringify(body)), headers: { "content-encoding": "deflate" } },
      ...["Identity", "none", "utf-8", ""].map((encoding) => ({ body, headers: { "content-encoding": encoding } })),
      { body: `\n   \n${JSON.stringify(body)}` }
    ]) {
      expect(Either.getOrThrow(await outcome(reaction)).content).toBe("Grüße 👋")
    }
  })
  it("may take longer than the server's other answers, up to the limit of a call.", async () => {
    expect(Either.isRight(await outcome({ ...{ body: Server.completion({ content: "Hi" }) }, delay: 400 }))).toBe(true)
    const limit = { request: { callLimit: Duration.millis(200) } }
    const body = Server.completion({ content: "Hi" })
    for (const slow of [{ hang: true as const }, { body, delay: 1000 }, { body, trickle: { bytes: 1, every: 50 } }]) {
      const error = await failure(slow, limit)
      expect([error.reason, error.transient]).toEqual(["TimedOut", true])
      expect(error.message).toMatch(/^No answer from 127\.0\.0\.1:\d+ within 200ms$/)
    }
  })
  it("is waited for beyond the five minutes that Node's own client gives it.", async () => {
    const started = await server(() => ({ body: Server.completion({ content: "Late" }), delay: 350_000 }))
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] })
    const patient = { request: { callLimit: Duration.minutes(30) } }
    let over = false
    const call = Effect.runPromise(Effect.either(complete(started.url, patient))).finally(() => {
      over = true
    })
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    while (started.requests.length === 0) await turn()
    while (!over) {
      vi.advanceTimersByTime(1000)
      await turn()
    }
    vi.useRealTimers()
    expect(Either.getOrThrow(await call).content).toBe("Late")
  })
  it("larger than 64 MB is refused.", async () => {
    const error = await failure({ body: `"${"x".repeat(64 * 1024 * 1024)}"` })
    expect([error.reason, error.message.includes("64 MB")]).toEqual(["BadAnswer", true])
  })
})

describe("A failure", () => {
  it.each([
    [429, "RateLimited", true],
    [408, "Overloaded", true],
    [409, "Overloaded", true],
    [500, "Overloaded", true],
    [503, "Overloaded", true],
    [529, "Overloaded", true],
    [599, "Overloaded", true],
    [401, "Unauthorized", false],
    [402, "NoCredit", false],
    [403, "Forbidden", false],
    [400, "BadRequest", false],
    [404, "ModelMissing", false],
    [422, "BadRequest", false]
  ])("of HTTP %i is %s; that the call may be repeated: %s.", async (status, reason, transient) => {
    const error = await failure(Server.error(status, "the upstream timed out"))
    expect([error.reason, error.transient, error.status]).toEqual([reason, transient, status])
    expect(error.message).toMatch(
      new RegExp(`^HTTP ${status} from 127.0.0.1:\\d+(?: for /v1/chat/completions)?: the upstream timed out$`)
    )
  })
  it("of a status that HTTP does not know is one all the same.", async () => {
    const error = await failure(Server.error(999, "odd"))
    expect([error.reason, error.transient]).toEqual(["Overloaded", true])
  })
  it.each([
    ['{"detail": "Not here"}', "Not here"],
    ['{"object": "error", "message": "Not here"}', "Not here"],
    ['{"detail": [{"loc": ["body"], "msg": "Not here"}]}', "Not here"],
    ['{"error": "Not here"}', "Not here"],
    [
      '{"error": {"message": "Provider returned error", "metadata": {"raw": "Not here"}}}',
      "Provider returned error: Not here"
    ],
    ["<html><title>Not here</title></html>", "Not here"],
    ['{"error": {"code": 7, "reason": "Not here"}}', "code: 7, reason: Not here"],
    ["Not\u0007\r\n here", "Not here"]
  ])("says the endpoint's own words: %s.", async (body, expected) => {
    const error = await failure({ status: 400, body })
    expect(error.message.replace(/^.*?:\d+: /, "")).toBe(expected)
  })
  it("is one short line, whatever the body.", async () => {
    for (const body of [
      "",
      "x".repeat(100_000),
      `${`{"error":`.repeat(100_000)}1${"}".repeat(100_000)}`,
      "<".repeat(200_000),
      "\n".repeat(1000),
      '{"error": {"message": {"a": ["b"]}}}'
    ]) {
      const { message } = await failure({ status: 500, body })
      expect(message.length).toBeLessThan(400)
      expect(message).not.toMatch(/[\r\n]/)
    }
  })
  it.each([
    ["an error", { error: { message: "No luck", code: 502 } }, "Overloaded", "with an error 502: No luck"],
    ["an error of too many calls", { error: { message: "Slow down", code: 429 } }, "RateLimited", "Slow down"],
    ["no choices", { id: "x" }, "BadAnswer", "without choices"],
    ["empty choices", { choices: [] }, "BadAnswer", "without choices"],
    ["another body", "<html>Hello</html>", "BadAnswer", "no JSON: Hello"],
    ["nothing", "", "BadAnswer", "an empty body"],
    ["half a body", '{"choices": [{"message": {"cont', "BadAnswer", "no JSON"]
  ])("of HTTP 200 with %s can be repeated.", async (_, body, reason, text) => {
    const error = await failure({ body })
    expect([error.reason, error.transient, error.status]).toEqual([reason, true, 200])
    expect(error.message).toContain(text)
  })
  it("of a connection is Unreachable where it broke, NotConnected where there was none, and can be repeated.", async () => {
    const body = Server.completion({ content: "Hi" })
    for (const reaction of [
      { reset: true as const },
      { body, closeAfter: 20 },
      { body, closeAfter: 0 },
      { garbage: "Hello\r\n\r\n" }
    ]) {
      const error = await failure(reaction)
      expect([error.reason, error.transient, error.status]).toEqual(["Unreachable", true, 0])
    }
    const gone = await server(() => ({ hang: true }))
    await gone.close()
    const refused = await Effect.runPromise(Effect.flip(complete(gone.url)))
    expect([refused.reason, refused.transient]).toEqual(["NotConnected", true])
    expect(refused.message).toMatch(/^No answer from 127\.0\.0\.1:\d+: connection refused$/)
    const nowhere = await Effect.runPromise(Effect.flip(complete("http://nowhere.invalid/v1")))
    expect([nowhere.reason, nowhere.message.startsWith("No answer from nowhere.invalid: ")]).toEqual([
      "NotConnected",
      true
    ])
    const plain = await Effect.runPromise(
      Effect.flip(complete((await server(() => Server.answer({}))).url.replace("http:", "https:")))
    )
    expect(plain.reason).toBe("NotConnected")
  })
  it("of the address or the key is said in one line.", async () => {
    const address = await Effect.runPromise(Effect.flip(complete("nonsense")))
    expect([address.reason, address.transient]).toEqual(["BadRequest", false])
    const bad = await failure(Server.answer({}), { key: "two\nlines-of-a-key" })
    expect(bad.reason).toBe("BadRequest")
    expect(bad.message).not.toContain("lines-of-a-key")
  })
  it("of a redirect names the new address and takes the key nowhere.", async () => {
    const other = await server(() => Server.answer({ content: "Hi" }))
    const error = await failure({ status: 307, headers: { location: `${other.url}/chat/completions` }, body: "" })
    expect([error.reason, error.fatal, other.requests.length]).toEqual(["ModelMissing", true, 0])
    expect(error.message).toContain(other.url)
  })
})

describe("A wait that the endpoint asks for", () => {
  const waits = async (headers: Record<string, string>) => {
    const { retryAfter } = await failure(Server.error(429, "Slow down", headers))
    return retryAfter === undefined ? undefined : Duration.toMillis(retryAfter)
  }
  it("is read from seconds, milliseconds and dates.", async () => {
    expect(await waits({ "retry-after": "7" })).toBe(7000)
    expect(await waits({ "retry-after": "1.5" })).toBe(1500)
    const date = await waits({ "retry-after": new Date(Date.now() + 60_000).toUTCString() })
    expect(date).toBeGreaterThan(55_000)
    expect(date).toBeLessThanOrEqual(60_000)
    expect(await waits({ "retry-after": new Date(0).toUTCString() })).toBe(0)
  })
  it("is the longest of all that are asked for.", async () => {
    expect(await waits({ "retry-after": "3", "retry-after-ms": "10" })).toBe(3000)
    expect(await waits({ "retry-after": "3", "retry-after-ms": "4500" })).toBe(4500)
    expect(await waits({ "retry-after": "3, 5" })).toBe(5000)
    expect(await waits({ "retry-after": new Date(0).toUTCString(), "retry-after-ms": "10" })).toBe(10)
  })
  it.each([
    ["an error", { error: { message: "Slow down", code: 429 } }, "RateLimited"],
    ["an error in a choice", { choices: [{ error: { code: 502 } }] }, "Overloaded"],
    ["no choices", { id: "x" }, "BadAnswer"],
    ["another body", "<html>Hello</html>", "BadAnswer"],
    ["nothing", "", "BadAnswer"]
  ])("counts with HTTP 200 and %s.", async (_, body, reason) => {
    const asked = async (headers: Record<string, string>) => {
      const error = await failure({ body, headers })
      expect([error.reason, error.status]).toEqual([reason, 200])
      return error.retryAfter === undefined ? undefined : Duration.toMillis(error.retryAfter)
    }
    expect(await asked({ "retry-after": "2" })).toBe(2000)
    expect(await asked({ "retry-after-ms": "250" })).toBe(250)
    expect(await asked({})).toBeUndefined()
  })
  it("does not stand in the way of an answer.", async () => {
    const body = Server.completion({ content: "Hi" })
    expect(Either.getOrThrow(await outcome({ body, headers: { "retry-after": "2" } })).content).toBe("Hi")
  })
  it("is none when it is absent or senseless.", async () => {
    expect(await waits({})).toBeUndefined()
    expect(await waits({ "retry-after": "soon" })).toBeUndefined()
    expect(await waits({ "retry-after": "" })).toBeUndefined()
  })
})

describe("The key", () => {
  it("never stands in a message, whole or in pieces.", async () => {
    const bodies = [
      `{"error": {"message": "Incorrect API key provided: ${key}"}}`,
      `{"error": {"message": "Incorrect API key provided: ${key.slice(0, 16)}...${key.slice(-12)}"}}`,
      `{"detail": "${key}${key}"}`,
      `<p>${key}</p>`,
      `${"x".repeat(280)}${key}`,
      `${"x".repeat(3990)}${key}`
    ]
    for (const body of bodies) {
      for (const status of [200, 400, 401, 500]) {
        const { message } = await failure({ status, body })
        for (let from = 0; from + 8 <= key.length; from++) {
          expect(message).not.toContain(key.slice(from, from + 8))
        }
      }
    }
    expect((await failure(Server.error(401, `Wrong key ${key}.`))).message).toMatch(/: Wrong key \*\*\*\.$/)
  })
})

describe("A password in the address", () => {
  it("never stands in a message, however the endpoint repeats it.", async () => {
    const started = await server(({ headers }) => Server.error(401, `${headers.authorization} is not hunter2 2000`))
    const url = started.url.replace("http://", "http://me:hunter2%202000@")
    const { message } = Either.getOrThrow(
      Either.flip(await Effect.runPromise(Effect.either(complete(url, { key: undefined }))))
    )
    expect(message).toMatch(/^HTTP 401 from 127\.0\.0\.1:\d+: Basic \*\*\* is not \*\*\*$/)
  })
})

describe("An interrupted call", () => {
  it("closes its connection at once.", async () => {
    const started = await server(() => ({ hang: true }))
    const fiber = Effect.runFork(complete(started.url))
    while (started.requests.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const start = performance.now()
    await Effect.runPromise(Fiber.interrupt(fiber))
    await started.requests[0]?.closed
    expect(performance.now() - start).toBeLessThan(1000)
    expect(started.inFlight.now).toBe(0)
  })
})
