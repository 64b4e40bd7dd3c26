/** Answers that are kept in files: given again for the same call only, whatever happens to the files. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Either, Fiber, Logger } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import * as Cache from "../../src/model/Cache.ts"
import {
  type Answer,
  type Ask,
  Model,
  type ModelError,
  type ModelService,
  noUsage,
  type Request
} from "../../src/model/Model.ts"
import * as OpenAi from "../../src/model/OpenAi.ts"
import * as Server from "../support/ModelServer.ts"
import { ask, request, tool } from "./asks.ts"

const toolCalls = [{ id: "c1", name: "terminal", arguments: { command: "ls" } }]
const rich: Server.AnswerSpec = {
  content: "Let me look 👋",
  toolCalls,
  message: { reasoning: "Hm.", reasoning_details: [{ type: "reasoning.encrypted", data: "abc", index: 0 }] },
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, cost: 0.25 }
}

/** A server and a folder for its answers; `once` asks through a cache of its own, as each run has one. */
const setUp = async (handler: Server.Handler = () => Server.answer(rich)) => {
  const server = await Server.start(handler)
  const root = mkdtempSync(join(tmpdir(), "answers-"))
  onTestFinished(async () => {
    await server.close()
    rmSync(root, { recursive: true, force: true })
  })
  const folder = join(root, ".cache")
  const logged: Array<string> = []
  const logger = Logger.make(({ message }) => {
    logged.push(String(message))
  })
  /** Runs with one cache, whose model lasts as long. */
  const within = <A, E>(run: (model: ModelService) => Effect.Effect<A, E>, more: Partial<Request> = {}) =>
    Effect.flatMap(Model, (inner) => run(Cache.caching(inner, { folder, request: request(server.url, more) }))).pipe(
      Effect.provide(OpenAi.layer(request(server.url, more), undefined)),
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      Effect.runPromise
    )
  const all = (asks: ReadonlyArray<Ask>, more: Partial<Request> = {}) =>
    within(
      (model) => Effect.forEach(asks, (one) => Effect.either(model.complete(one)), { concurrency: "unbounded" }),
      more
    )
  const either = async (
    one: Partial<Ask> = {},
    more: Partial<Request> = {}
  ): Promise<Either.Either<Answer, ModelError>> => {
    const [end] = await all([ask(one)], more)
    return end ?? Either.right(never())
  }
  const once = async (one: Partial<Ask> = {}, more: Partial<Request> = {}): Promise<Answer> =>
    Either.getOrThrow(await either(one, more))
  const files = () =>
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((each) => !each.isDirectory())
      .map((each) => join(each.parentPath, each.name))
  return { server, root, folder, logged, within, all, either, once, files }
}
const never = (): never => {
  throw new Error("no end")
}

describe("The same call", () => {
  it("is asked once, by whatever run, and its answer is the same but for what it costs.", async () => {
    const { server, once, files } = await setUp()
    const first = await once()
    expect(first.usage).toMatchObject({ total: 15, cost_usd: 0.25 })
    const again = await once()
    expect(again).toEqual({ ...first, usage: noUsage, priced: true })
    expect(JSON.stringify(again.echo)).toBe(JSON.stringify(first.echo))
    expect(server.requests.length).toBe(1)
    const [file = "", ...others] = files()
    expect(others).toEqual([])
    expect(file).toMatch(/\/\.cache\/[0-9a-f]{2}\/[0-9a-f]{62}\.json$/)
    expect([statSync(file).mode & 0o777, statSync(dirname(file)).mode & 0o777]).toEqual([0o600, 0o700])
    expect(readFileSync(file, "utf8")).not.toContain("0.25")
  })
  it("is another one by its occurrence, sample, turn, messages, tools, model or parameters.", async () => {
    const { server, once } = await setUp()
    const calls: ReadonlyArray<readonly [Partial<Ask>, Partial<Request>]> = [
      [{}, {}],
      [{ occurrence: 1 }, {}],
      [{ sample: 1 }, {}],
      [{ turn: 1 }, {}],
      [{ messages: [{ role: "user", content: "Say goodbye." }] }, {}],
      [{ messages: [{ role: "system", content: "Say hello." }] }, {}],
      [{ tools: [tool("terminal")] }, {}],
      [{}, { model: "other-model" }],
      [{}, { maxTokens: 5 }],
      [{}, { reasoning: { effort: "low" } }],
      [{}, { provider: { only: ["a"] } }],
      [{}, { baseUrl: server.url.replace("127.0.0.1", "localhost") }]
    ]
    for (const round of [1, 2]) {
      for (const [one, more] of calls) await once(one, more)
      expect([round, server.requests.length]).toEqual([round, calls.length])
    }
  })
  it("is the same wherever its prompt stands in the data set, and with marks for prompt caching or without.", async () => {
    const { server, once } = await setUp()
    const claude = { model: "anthropic/claude-sonnet-4.6" }
    await once({ place: 0 }, claude)
    await once({ place: 7 }, { ...claude, promptCache: false })
    await once({ place: 7 }, { ...claude, prices: { "*": { prompt: 1, completion: 1 } } })
    expect(server.requests.length).toBe(1)
  })
})

describe("An answer", () => {
  it.each([
    ["is empty", { content: " " }],
    ["was cut by its length", { content: "Hi", finishReason: "length" }],
    ["was cut by a filter", { content: "Hi", finishReason: "content_filter" }]
  ])("that %s is not kept.", async (_, spec) => {
    const { server, once, files } = await setUp(() => Server.answer(spec))
    await once()
    await once()
    expect([server.requests.length, files()]).toEqual([2, []])
  })
  it("that failed is not kept, and the next is.", async () => {
    const { server, either } = await setUp((_, place) => (place === 0 ? Server.error(500, "no") : Server.answer(rich)))
    expect([await either(), await either(), await either()].map(Either.isRight)).toEqual([false, true, true])
    expect(server.requests.length).toBe(2)
  })
})

describe("An entry that is damaged", () => {
  const damages: Readonly<Record<string, (file: string) => void>> = {
    torn: (file) => writeFileSync(file, readFileSync(file).subarray(0, 100)),
    empty: (file) => writeFileSync(file, ""),
    "of zeros": (file) => writeFileSync(file, Buffer.alloc(500)),
    "no UTF-8": (file) => writeFileSync(file, Buffer.from([0xff, 0xfe, 0x22])),
    "other JSON": (file) => writeFileSync(file, '{"answer": "Hi"}'),
    "nested without end": (file) => writeFileSync(file, "[".repeat(1_000_000)),
    "that of another call": (file) => writeFileSync(file, readFileSync(file, "utf8").replace(/"key":"./, '"key":"x')),
    "without text and calls": (file) =>
      writeFileSync(
        file,
        readFileSync(file, "utf8")
          .replace(/"content":"[^"]*","reasoning"/, '"content":"","reasoning"')
          .replace(/"toolCalls":\[.*?\]/, '"toolCalls":[]')
      ),
    "a link to nowhere": (file) => {
      rmSync(file)
      execFileSync("ln", ["-s", "/nowhere/at/all", file])
    },
    "a pipe": (file) => {
      rmSync(file)
      execFileSync("mkfifo", [file])
    }
  }
  it.each(Object.keys(damages))("(%s) is none, and is replaced.", async (name) => {
    const { server, once, files } = await setUp()
    const first = await once()
    const [file = ""] = files()
    damages[name]?.(file)
    expect((await once()).usage.cost_usd).toBe(0.25)
    expect(await once()).toEqual({ ...first, usage: noUsage, priced: true })
    expect([server.requests.length, files(), statSync(file).isFile()]).toEqual([2, [file], true])
  })
  it("(a folder, or a folder's place taken by a file) stops nothing, and is told once.", async () => {
    const { server, all, files, folder, logged } = await setUp()
    await all([ask()])
    const [file = ""] = files()
    rmSync(file)
    mkdirSync(join(file, "in-the-way"), { recursive: true })
    expect((await all([ask()])).every(Either.isRight)).toBe(true)
    expect(logged.filter((line) => line.includes("cannot be kept"))).toHaveLength(1)
    expect(files()).toEqual([])
    renameSync(folder, `${folder}-before`)
    writeFileSync(folder, "")
    const asks = [0, 1, 2, 3].map((turn) => ask({ turn }))
    expect((await all(asks)).every(Either.isRight)).toBe(true)
    expect(logged.filter((line) => line.includes("cannot be kept"))).toHaveLength(2)
    expect(server.requests.length).toBe(6)
  })
})

describe("Many at once", () => {
  it("that ask the same ask once, and one of them pays.", async () => {
    const { server, all } = await setUp(() => ({ body: Server.completion(rich), delay: 100 }))
    const ends = (await all(Array.from({ length: 50 }, () => ask()))).map(Either.getOrThrow)
    expect(server.requests.length).toBe(1)
    expect(
      ends
        .map(({ usage }) => usage.cost_usd)
        .toSorted()
        .slice(-2)
    ).toEqual([0, 0.25])
    expect(new Set(ends.map(({ echo }) => JSON.stringify(echo))).size).toBe(1)
  })
  it("that ask for the same in vain all hear of it, and one of them pays.", async () => {
    const { server, all } = await setUp(() => ({
      ...{ status: 400, delay: 100 },
      body: { error: { message: "no" }, usage: { prompt_tokens: 7, cost: 0.5 } }
    }))
    const ends = (await all(Array.from({ length: 5 }, () => ask()))).map((end) => Either.getOrThrow(Either.flip(end)))
    expect(ends.map(({ reason }) => reason)).toEqual(Array.from({ length: 5 }, () => "BadRequest"))
    expect([server.requests.length, ends.filter(({ usage }) => usage.cost_usd > 0).length]).toEqual([1, 1])
  })
  it("go on when the one who asks is stopped.", async () => {
    const { server, within } = await setUp((_, place) => (place === 0 ? { hang: true } : Server.answer(rich)))
    const answers = await within((model) =>
      Effect.gen(function* () {
        const first = yield* Effect.fork(model.complete(ask()))
        while (server.requests.length === 0) yield* Effect.sleep("5 millis")
        const call = model.complete(ask())
        const others = yield* Effect.fork(Effect.all([call, call, call], { concurrency: 3 }))
        yield* Effect.sleep("20 millis")
        yield* Fiber.interrupt(first)
        return yield* Fiber.join(others)
      })
    )
    expect(answers.map(({ content }) => content)).toEqual(Array.from({ length: 3 }, () => rich.content))
    expect(server.requests.length).toBe(2)
  })
  it("write to one folder from many caches, and every entry is whole.", async () => {
    const { all, files, server } = await setUp()
    const asks = Array.from({ length: 20 }, (_, turn) => ask({ turn }))
    await Promise.all([all(asks), all(asks), all(asks), all(asks)])
    for (const file of files()) expect(() => JSON.parse(readFileSync(file, "utf8"))).not.toThrow()
    expect(files()).toHaveLength(20)
    const before = server.requests.length
    await all(asks)
    expect(server.requests.length).toBe(before)
  })
})

describe("What a tool asks", () => {
  it("is kept with its pictures, apart from other tools', models' and the session's own.", async () => {
    const images = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]
    const { server, all, once, files } = await setUp((_, place) =>
      Server.answer({ content: "", message: { images, place } })
    )
    const aside = { tool: "a", model: "other", picture: true }
    const asks = [
      ask({ aside }),
      ask({ aside, turn: 1 }),
      ask({ aside: { ...aside, tool: "b" } }),
      ask({ aside: { ...aside, model: "third" } }),
      ask({ aside: { ...aside, temperature: 1 } })
    ]
    const first = await all(asks)
    expect([server.requests.length, files().length]).toEqual([5, 5])
    expect((await once({ aside })).images).toEqual(["data:image/png;base64,AAAA"])
    const second = await all(asks)
    expect(server.requests.length).toBe(5)
    expect(second.map((end) => Either.getOrThrow(end).images)).toEqual(
      first.map((end) => Either.getOrThrow(end).images)
    )
  })
  it("does not share its answer with the session's call that says the same.", async () => {
    const { server, all } = await setUp()
    await all([ask(), ask({ aside: { tool: "a" } })])
    expect(server.requests.length).toBe(2)
  })
})
