/** One exchange with a real server that is generous, stingy or hostile: limits, what failures cost, and answers without end. */
import * as Http from "node:http"
import * as Net from "node:net"
import * as Zlib from "node:zlib"
import { Duration, Effect, Either } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { type Answer, Model, type ModelError, type Request } from "../../src/model/Model.ts"
import * as OpenAi from "../../src/model/OpenAi.ts"
import * as Server from "../support/ModelServer.ts"
import { ask, request } from "./asks.ts"

const at = (url: string, more: Partial<Request> = {}): Promise<Either.Either<Answer, ModelError>> =>
  Effect.flatMap(Model, (model) => model.complete(ask())).pipe(
    Effect.either,
    Effect.provide(OpenAi.layer(request(url, more), undefined)),
    Effect.runPromise
  )

const outcome = async (reaction: Server.Reaction, more?: Partial<Request>) => {
  const server = await Server.start(() => reaction)
  onTestFinished(() => server.close())
  return at(server.url, more)
}
const failure = async (reaction: Server.Reaction, more?: Partial<Request>) =>
  Either.getOrThrow(Either.flip(await outcome(reaction, more)))

/** Where this server listens; it and its connections are gone after the test. */
const listening = async (server: Net.Server): Promise<string> => {
  const sockets = new Set<Net.Socket>()
  server.on("connection", (socket) => sockets.add(socket.on("error", () => {})))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/v1`
}

describe("Limits that the headers tell", () => {
  const headers = {
    "x-ratelimit-remaining-requests": "7",
    "x-ratelimit-reset-requests": "10s",
    "x-ratelimit-remaining-tokens": "900",
    "x-ratelimit-reset-tokens": "soon"
  }
  const expected = [{ of: "requests", remaining: 7, resetAt: expect.any(Number) }]
  it("come with an answer.", async () => {
    const before = Date.now()
    const answer = Either.getOrThrow(await outcome({ body: Server.completion({ content: "Hi" }), headers }))
    expect(answer.limits).toEqual(expected)
    expect(answer.limits?.[0]?.resetAt).toBeGreaterThanOrEqual(before + 10_000)
    expect(answer.limits?.[0]?.resetAt).toBeLessThanOrEqual(Date.now() + 10_000)
  })
  it("are no field of an answer that tells none.", async () => {
    const answer = Either.getOrThrow(await outcome(Server.answer({ content: "Hi" })))
    expect("limits" in answer).toBe(false)
  })
  it("come with a failure, whatever its status.", async () => {
    expect((await failure(Server.error(429, "Slow down", headers))).limits).toEqual(expected)
    expect((await failure({ body: { error: { code: 429 } }, headers })).limits).toEqual(expected)
    expect((await failure({ body: {}, headers })).limits).toEqual(expected)
  })
})

describe("A failure", () => {
  const usage = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 }
  const prices = { "*": { prompt: 3, completion: 15 } }
  it.each([
    ["HTTP 200 without choices", { body: { usage } }],
    ["HTTP 200 with an error", { body: { usage, error: { message: "no", code: 502 } } }],
    ["HTTP 200 that broke off", { body: { usage, choices: [{ message: {}, finish_reason: "error" }] } }],
    ["HTTP 500", { status: 500, body: { usage, error: { message: "no" } } }]
  ])("of %s counts what it used, at the price of an answer.", async (_, reaction) => {
    const error = await failure(reaction, { prices })
    expect(error.usage).toMatchObject({ prompt: 1000, completion: 100, total: 1100, cost_usd: 0.0045 })
  })
  it("that says nothing of it costs nothing.", async () => {
    expect((await failure(Server.error(500, "no"), { prices })).usage.cost_usd).toBe(0)
  })
  it.each([
    [401, {}, "Unauthorized"],
    ["402", {}, "NoCredit"],
    [403, { metadata: { reasons: ["violence"] } }, "ContentRefused"],
    [403, {}, "Forbidden"],
    [404, {}, "ModelMissing"],
    [400, { message: "prompt is too long: 9 tokens > 8 maximum" }, "ContextTooLong"],
    [400, {}, "BadRequest"],
    [429, {}, "RateLimited"],
    [503, {}, "Overloaded"],
    [7, {}, "Overloaded"],
    ["context_length_exceeded", {}, "ContextTooLong"]
  ])("inside HTTP 200 with the code %s and %j is %s.", async (code, more, reason) => {
    for (const body of [{ error: { code, ...more } }, { choices: [{ error: { code, ...more }, message: null }] }]) {
      const error = await failure({ body })
      expect([error.reason, error.status]).toEqual([reason, 200])
    }
  })
  it("of a model that the endpoint does not know names the run's own model only.", async () => {
    expect((await failure(Server.error(400, "test-model is not a valid model ID"))).reason).toBe("ModelMissing")
    expect((await failure(Server.error(400, "best-model is not a valid model ID"))).reason).toBe("BadRequest")
  })
})

describe("A connection that a server closed while it was idle", () => {
  it("is Unreachable for the call that finds it so, and the next has a new one.", async () => {
    let requests = 0
    const body = JSON.stringify(Server.completion({ content: "Hi" }))
    const url = await listening(
      Net.createServer((socket) => {
        let asked = 0
        socket.on("data", () => {
          requests++
          // The first request of a connection is answered; the second finds it closing.
          if (++asked > 1) socket.destroy()
          else socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
        })
      })
    )
    const call = Effect.flatMap(Model, (model) =>
      Effect.replicateEffect(Effect.either(Effect.delay(model.complete(ask()), "50 millis")), 3)
    )
    const ends = await Effect.runPromise(Effect.provide(call, OpenAi.layer(request(url), undefined)))
    expect(ends.map((end) => (Either.isLeft(end) ? end.left.reason : end.right.content))).toEqual([
      "Hi",
      "Unreachable",
      "Hi"
    ])
    expect(requests).toBe(3)
  })
})

describe("A server that has no end", () => {
  it("in its answer is left early, whether it says how long that is or not.", async () => {
    for (const announced of [{}, { "content-length": String(1024 ** 3) }]) {
      let sent = 0
      let dropped = false
      const chunk = Buffer.alloc(1024 * 1024, 32)
      const url = await listening(
        Http.createServer((_, response) => {
          response.writeHead(200, announced).on("close", () => {
            dropped = true
          })
          const more = (): void => {
            if (dropped || sent >= 1024 ** 3) return void response.end()
            sent += chunk.length
            if (response.write(chunk)) setImmediate(more)
            else response.once("drain", more)
          }
          more()
        })
      )
      const before = process.memoryUsage().rss
      const error = Either.getOrThrow(Either.flip(await at(url)))
      expect([error.reason, error.message.includes("larger than 64 MB")]).toEqual(["BadAnswer", true])
      expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 ** 2)
      while (!dropped) await new Promise((resolve) => setTimeout(resolve, 5))
      expect(sent).toBeLessThan(256 * 1024 ** 2)
    }
  })
  it("in what it packed is unpacked no further than any other answer.", async () => {
    // A gigabyte of spaces, as members of one file.
    const member = Zlib.gzipSync(Buffer.alloc(64 * 1024 ** 2, 32))
    const bomb = Buffer.concat(Array.from({ length: 16 }, () => member))
    const brotli = Zlib.brotliCompressSync(Buffer.alloc(80 * 1024 ** 2), {
      params: { [Zlib.constants.BROTLI_PARAM_QUALITY]: 1 }
    })
    for (const [encoding, body] of [
      ["gzip", bomb],
      ["gzip, gzip", Zlib.gzipSync(bomb)],
      ["br", brotli]
    ] as const) {
      const before = process.memoryUsage().rss
      const error = await failure({ body, headers: { "content-encoding": encoding } })
      expect([error.reason, error.message.includes("larger than 64 MB")]).toEqual(["BadAnswer", true])
      expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 ** 2)
    }
  })
  it("in its patience is left at the limit of a call: it only accepts, or sends a byte now and then.", async () => {
    const silent = await listening(Net.createServer(() => {}))
    const trickling = await listening(
      Net.createServer((socket) => {
        socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"))
        const timer = setInterval(() => socket.write(" "), 50)
        socket.on("close", () => clearInterval(timer))
      })
    )
    // Even its head never ends.
    const headless = await listening(
      Net.createServer((socket) => {
        socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\nx-a: "))
        const timer = setInterval(() => socket.write("a"), 50)
        socket.on("close", () => clearInterval(timer))
      })
    )
    for (const url of [silent, trickling, headless]) {
      const before = performance.now()
      const error = Either.getOrThrow(Either.flip(await at(url, { callLimit: Duration.millis(400) })))
      expect(error.reason).toBe("TimedOut")
      expect(performance.now() - before).toBeLessThan(3000)
    }
  })
  it("in its head is left too.", async () => {
    const url = await listening(
      Net.createServer((socket) => {
        const more = (): void => {
          if (!socket.destroyed) socket.write(`x-${"a".repeat(1000)}: b\r\n`, () => setImmediate(more))
        }
        socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n", more))
      })
    )
    const error = Either.getOrThrow(Either.flip(await at(url)))
    expect([error.reason, error.transient]).toEqual(["Unreachable", true])
  })
})
