/** Failed calls are tried again by the clock of the tests, a bounded number of times. */
import {
  Duration,
  Effect,
  Either,
  Fiber,
  Layer,
  Logger,
  LogLevel,
  Option,
  Random,
  Ref,
  TestClock,
  TestContext
} from "effect"
import { describe, expect, it } from "vitest"
import { type Answer, Model, ModelError } from "../../src/model/Model.ts"
import * as OpenAi from "../../src/model/OpenAi.ts"
import * as Retry from "../../src/model/Retry.ts"
import * as Server from "../support/ModelServer.ts"
import { ask, request } from "./asks.ts"

const good: Answer = {
  content: "Hi",
  reasoning: "",
  toolCalls: [],
  finishReason: "stop",
  usage: { prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0, cost_usd: 0 },
  echo: { role: "assistant", content: "Hi" }
}

const failing = (reason: ModelError["reason"], retryAfter?: Duration.Duration): ModelError =>
  new ModelError({ reason, detail: `It failed as ${reason}`, ...(retryAfter === undefined ? {} : { retryAfter }) })

/** Runs a call over the given outcomes, lets `hours` pass, and tells the end and when each try began, in milliseconds. */
const run = (outcomes: ReadonlyArray<ModelError | Answer>, options?: Partial<Retry.Options>) =>
  Effect.gen(function* () {
    const started = yield* Ref.make<ReadonlyArray<number>>([])
    const inner = {
      complete: () =>
        Effect.gen(function* () {
          const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
          const earlier = yield* Ref.getAndUpdate(started, (times) => [...times, now])
          const outcome = outcomes[Math.min(earlier.length, outcomes.length - 1)] ?? good
          return outcome instanceof ModelError ? yield* outcome : outcome
        })
    }
    const fiber = yield* Effect.fork(Effect.either(Retry.retrying(inner, options).complete(ask())))
    yield* TestClock.adjust("2 hours")
    const end = yield* Fiber.poll(fiber)
    expect(Option.isSome(end)).toBe(true)
    return { end: yield* Fiber.join(fiber), times: yield* Ref.get(started) }
  })

const test = <A>(effect: Effect.Effect<A>, chance: number = 1): Promise<A> =>
  Effect.runPromise(effect.pipe(Effect.withRandom(Random.fixed([chance])), Effect.provide(TestContext.TestContext)))

const gaps = (times: ReadonlyArray<number>) => times.slice(1).map((time, place) => time - (times[place] ?? 0))

describe("Retry", () => {
  it("gives an answer that comes at once.", async () => {
    const { end, times } = await test(run([good]))
    expect([end, times.length]).toEqual([Either.right(good), 1])
  })
  it("asks again until the answer comes.", async () => {
    const { end, times } = await test(run([failing("Overloaded"), failing("Unreachable"), failing("BadAnswer"), good]))
    expect([end, times.length]).toEqual([Either.right(good), 4])
  })
  it("waits longer each time, with a cap, and gives up after fourteen tries, which it tells.", async () => {
    const { end, times } = await test(run([failing("TimedOut")]))
    expect(gaps(times)).toEqual([200, 300, 450, 675, 1013, 1519, 2279, 3418, 5000, 5000, 5000, 5000, 5000])
    expect(Either.isLeft(end) && [end.left.reason, end.left.message]).toEqual([
      "TimedOut",
      "It failed as TimedOut (14 tries)"
    ])
    const { times: more } = await test(run([failing("RateLimited")]))
    expect(gaps(more).slice(5)).toEqual([6400, 12_800, 25_600, 30_000, 30_000, 30_000, 30_000, 30_000])
  })
  it("spreads its waits between half and whole.", async () => {
    const { times } = await test(run([failing("Overloaded")]), 0)
    expect(gaps(times).slice(0, 5)).toEqual([100, 150, 225, 338, 507])
    expect(Duration.toMillis(Retry.delay(Retry.defaults, 1, 0.5))).toBe(150)
  })
  it("never asks sooner than the endpoint wants, and not sooner than its own wait.", async () => {
    const { times } = await test(
      run([failing("RateLimited", Duration.minutes(3)), failing("RateLimited", Duration.millis(10)), good])
    )
    expect(gaps(times)).toEqual([180_000, 400])
  })
  it("waits for as long as an hour.", async () => {
    const { end, times } = await test(
      run([failing("RateLimited", Duration.minutes(11)), failing("RateLimited", Duration.hours(1)), good])
    )
    expect([end, gaps(times)]).toEqual([Either.right(good), [660_000, 3_600_000]])
  })
  it("does not wait for more than an hour, and says how long it would have been.", async () => {
    const { end, times } = await test(run([failing("RateLimited", Duration.hours(2))]))
    expect(times.length).toBe(1)
    expect(Either.isLeft(end) && end.left.message).toBe("It failed as RateLimited (the endpoint asks to wait 2h)")
    expect(Either.isLeft(end) && end.left.retryAfter).toEqual(Duration.hours(2))
  })
  it("adds what failed tries spent to what the call spent, whatever it came to.", async () => {
    const usage = { prompt: 10, completion: 2, reasoning: 1, cached: 5, total: 12, cost_usd: 0.25 }
    const costly = new ModelError({ reason: "BadAnswer", detail: "Nothing said", usage })
    const { end } = await test(run([costly, failing("Overloaded"), costly, { ...good, usage }]))
    expect(Either.isRight(end) && end.right.usage).toEqual({
      ...{ prompt: 30, completion: 6, reasoning: 3, cached: 15, total: 36, cost_usd: 0.75 }
    })
    const { end: worse } = await test(run([costly, costly, failing("BadRequest")]))
    expect(Either.isLeft(worse) && worse.left.usage.cost_usd).toBe(0.5)
  })
  it("does not repeat what cannot succeed.", async () => {
    for (const reason of ["Unauthorized", "BadRequest", "NoScript"] as const) {
      const { end, times } = await test(run([failing(reason)]))
      expect([times.length, Either.isLeft(end) && end.left.message]).toEqual([1, `It failed as ${reason}`])
    }
    const { end } = await test(run([failing("Overloaded"), failing("BadRequest")]))
    expect(Either.isLeft(end) && end.left.message).toBe("It failed as BadRequest (2 tries)")
  })
  it("logs each wait in one line, at debug level.", async () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => lines.push(`${logLevel.label} ${String(message)}`))
    await test(
      run([failing("Overloaded"), good]).pipe(
        Effect.provide(
          Layer.merge(Logger.replace(Logger.defaultLogger, logger), Logger.minimumLogLevel(LogLevel.Debug))
        )
      )
    )
    expect(lines).toEqual(["DEBUG It failed as Overloaded; try 2 of 14 in 200ms"])
  })
  it("comes back no sooner than a failure of HTTP 200 asks.", async () => {
    const bodies = [{ error: { code: 429 } }, { id: "x" }, "<html>Hello</html>"]
    const waits = [{ "retry-after": "1" }, { "retry-after-ms": "300" }, { "retry-after": "0", "retry-after-ms": "400" }]
    const server = await Server.start((_, place) =>
      place < bodies.length ? { body: bodies[place], headers: waits[place] ?? {} } : Server.answer({ content: "Hi" })
    )
    const layer = Retry.layer({ base: Duration.millis(1) }).pipe(
      Layer.provide(OpenAi.layer(request(server.url), undefined))
    )
    const answer = await Effect.runPromise(
      Effect.flatMap(Model, (model) => model.complete(ask())).pipe(Effect.provide(layer))
    )
    const [first = 0, second = 0, third = 0] = gaps(server.requests.map((one) => one.at))
    await server.close()
    expect(answer.content).toBe("Hi")
    expect(first).toBeGreaterThanOrEqual(995)
    expect(second).toBeGreaterThanOrEqual(295)
    expect(third).toBeGreaterThanOrEqual(395)
  })
  it("is a layer around the client.", async () => {
    const server = await Server.start((_, place) =>
      place < 2 ? Server.error(503, "Busy", { "retry-after-ms": "20" }) : Server.answer({ content: "Hi" })
    )
    const layer = Retry.layer({ base: Duration.millis(1) }).pipe(
      Layer.provide(OpenAi.layer(request(server.url), undefined))
    )
    const answer = await Effect.runPromise(
      Effect.flatMap(Model, (model) => model.complete(ask())).pipe(Effect.provide(layer))
    )
    const [first, second] = gaps(server.requests.map((one) => one.at))
    await server.close()
    expect([answer.content, server.requests.length]).toEqual(["Hi", 3])
    expect(Math.min(first ?? 0, second ?? 0)).toBeGreaterThanOrEqual(19)
  })
})
