/** No more calls at once than the endpoint takes, none beyond what its headers leave, and everybody is served. */
import { Deferred, Duration, Effect, Fiber, TestClock, TestContext } from "effect"
import { describe, expect, it } from "vitest"
import type * as Events from "../../src/events/Events.ts"
import type { Answer, Ask, ModelError, RateLimit } from "../../src/model/Model.ts"
import * as Throttle from "../../src/model/Throttle.ts"
import { answer, failure, heard, usage, word } from "./answers.ts"
import { ask } from "./asks.ts"

const test = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, TestContext.TestContext))

const now = Effect.clockWith((clock) => clock.currentTimeMillis)

type End = Answer | ModelError

/** A model that ends each call as it is told, and keeps when each was begun. */
const made = (
  most: number,
  adaptive: boolean,
  ends: (call: number, ask: Ask) => Effect.Effect<End>,
  longestPause = Duration.hours(1)
) => {
  const begun: Array<{ readonly at: number; readonly place: number }> = []
  const { model, endpoint } = Throttle.throttled(
    {
      complete: (ask) =>
        Effect.gen(function* () {
          begun.push({ at: yield* now, place: ask.place })
          const end = yield* ends(begun.length, ask)
          return "reason" in end ? yield* end : end
        })
    },
    { most, adaptive, longestPause }
  )
  const call = (place: number) => Effect.map(Effect.either(model.complete(ask({ place }))), word)
  return { begun, call, model, told: endpoint.told }
}

const slowly = (end: End) => Effect.as(Effect.sleep("1 second"), end)

const limits = (remaining: number, resetAt: number): { readonly limits: ReadonlyArray<RateLimit> } => ({
  limits: [{ of: "requests", remaining, resetAt }]
})

const places = (count: number) => Array.from({ length: count }, (_, place) => place)

describe("A throttle", () => {
  it("lets through as many as its limit, and the others in their order.", () =>
    test(
      Effect.gen(function* () {
        const { begun, call } = made(3, false, () => slowly(answer()))
        const fibers = yield* Effect.forEach(places(8), (place) => Effect.fork(call(place)))
        yield* TestClock.adjust("10 seconds")
        expect(yield* Fiber.join(Fiber.all(fibers))).toEqual(places(8).map(() => "answered"))
        expect(begun.map(({ at }) => at / 1000)).toEqual([0, 0, 0, 1, 1, 1, 2, 2])
        expect(begun.map(({ place }) => place)).toEqual(places(8))
      })
    ))
  it("lets one that waits go first, though who had the place calls again at once.", () =>
    test(
      Effect.gen(function* () {
        const { begun, call } = made(1, false, () => slowly(answer()))
        const again = (place: number) => call(place).pipe(Effect.zipRight(call(place)), Effect.zipRight(call(place)))
        const fibers = yield* Effect.forEach(places(2), (place) => Effect.fork(again(place)))
        yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(Fiber.all(fibers))
        expect(begun.map(({ place }) => place)).toEqual([0, 1, 0, 1, 0, 1])
      })
    ))
  it("passes on the turn of one that is given up, waiting, called, or in a pause.", () =>
    test(
      Effect.gen(function* () {
        const { begun, call } = made(1, false, (n) => slowly(answer(n === 1 ? limits(0, 60_000) : {})))
        const begin = (place: number) => Effect.fork(call(place))
        const first = yield* begin(0)
        const [waits, sleeps, last] = [yield* begin(1), yield* begin(2), yield* begin(3)]
        yield* TestClock.adjust("500 millis")
        yield* Fiber.interrupt(waits)
        // The next is called, and finds that nothing is left until the reset.
        yield* TestClock.adjust("10 seconds")
        expect(begun.length).toBe(1)
        yield* Fiber.interrupt(sleeps)
        yield* TestClock.adjust("60 seconds")
        expect(begun).toEqual([
          { at: 0, place: 0 },
          { at: 60_000, place: 3 }
        ])
        yield* TestClock.adjust("2 seconds")
        expect(yield* Fiber.join(Fiber.zip(first, last))).toEqual(["answered", "answered"])
      })
    ))
  it("frees the place of a call that breaks in whichever way.", () =>
    test(
      Effect.gen(function* () {
        const { call, begun } = made(1, true, (n) =>
          n === 1 ? Effect.die("broken") : n === 2 ? Effect.never : Effect.succeed(failure("Unreachable"))
        )
        expect((yield* Effect.exit(call(0)))._tag).toBe("Failure")
        const hangs = yield* Effect.fork(call(1))
        yield* TestClock.adjust("1 second")
        const waits = yield* Effect.fork(call(2))
        yield* TestClock.adjust("1 second")
        expect(begun.length).toBe(2)
        yield* Fiber.interrupt(hangs)
        expect(yield* Fiber.join(waits)).toBe("Unreachable")
      })
    ))
  it("makes fewer at once when calls are refused, more when they are answered, and tells both.", () =>
    test(
      Effect.gen(function* () {
        const events: Array<Events.Event> = []
        let refuses = false
        const { call, told } = made(64, true, () => slowly(refuses ? failure("Overloaded", { status: 503 }) : answer()))
        const round = Effect.forEach(places(40), (place) => Effect.fork(call(place))).pipe(
          Effect.zipLeft(TestClock.adjust("30 seconds")),
          Effect.flatMap((fibers) => Fiber.join(Fiber.all(fibers))),
          heard(events)
        )
        expect(yield* told).toBe("16 calls at once")
        yield* round
        const grown = Number.parseInt(yield* told, 10)
        expect(grown).toBeGreaterThan(20)
        refuses = true
        yield* round
        expect(Number.parseInt(yield* told, 10)).toBeLessThan(16)
        const changes = events.flatMap((each) => (each.event === "throttle" ? [each] : []))
        expect(changes[0]).toEqual({ event: "throttle", before: 16, limit: 17, why: "answered" })
        expect(changes.at(-1)).toMatchObject({ why: "refused" })
        changes.forEach(({ before }, place) => {
          expect(before).toBe(changes[place - 1]?.limit ?? 16)
        })
      })
    ))
  it("takes for a refusal what says so, and not what broke.", () =>
    test(
      Effect.gen(function* () {
        const limitAfter = (error: ModelError) =>
          Effect.gen(function* () {
            const { call, told } = made(64, true, () => Effect.succeed(error))
            for (const place of places(60)) yield* call(place)
            return yield* told
          })
        for (const status of [503, 529])
          expect(yield* limitAfter(failure("Overloaded", { status }))).not.toMatch(/^16 /)
        expect(yield* limitAfter(failure("RateLimited"))).toBe("1 calls at once")
        expect(yield* limitAfter(failure("Overloaded", { status: 500 }))).toBe("16 calls at once")
        for (const reason of ["Unreachable", "TimedOut", "BadAnswer"] as const) {
          expect(yield* limitAfter(failure(reason))).toBe("16 calls at once")
        }
      })
    ))
  it("tells nothing when it holds nobody back.", () =>
    test(
      Effect.gen(function* () {
        expect(yield* made(64, false, () => slowly(answer())).told).toBe("")
        expect(yield* made(16, true, () => slowly(answer())).told).toBe("")
      })
    ))
})

describe("A pause", () => {
  const refusal = failure("RateLimited", { retryAfter: Duration.seconds(30), detail: "HTTP 429" })
  /** Calls one after the other, the first letters of their ends, `r` for refused and `a` for answered. */
  const timesOf = (ends: string) =>
    Effect.gen(function* () {
      const events: Array<Events.Event> = []
      const { begun, call } = made(8, true, (n) => Effect.succeed(ends[n - 1] === "r" ? refusal : answer()))
      const start = yield* now
      const all = yield* Effect.forEach(places(ends.length + 1), call, { discard: true }).pipe(
        heard(events),
        Effect.fork
      )
      yield* TestClock.adjust("10 minutes")
      yield* Fiber.join(all)
      const pauses = events.flatMap((each) => (each.event === "pause" ? [each] : []))
      return { times: begun.map(({ at }) => (at - start) / 1000), pauses }
    })

  it("is made when all are refused, for as long as the endpoint asks, and is told once.", () =>
    test(
      Effect.gen(function* () {
        const { times, pauses } = yield* timesOf("rrrr")
        expect(times).toEqual([0, 0, 0, 0, 30])
        expect(pauses).toEqual([{ event: "pause", wait: 30_000, why: "refused" }])
        expect((yield* timesOf("aarrrrr")).times).toEqual([0, 0, 0, 0, 0, 0, 30, 60])
      })
    ))
  it("is not made for some among answers.", () =>
    test(
      Effect.gen(function* () {
        for (const ends of ["r", "rrr", "rrarrarra"]) {
          const { times, pauses } = yield* timesOf(ends)
          expect([new Set(times), pauses]).toEqual([new Set([0]), []])
        }
      })
    ))
  it("is not made for those that were in flight together with many more.", () =>
    test(
      Effect.gen(function* () {
        const { begun, call } = made(16, false, (n) =>
          Effect.zipRight(Effect.sleep(n <= 5 ? "1 second" : "2 seconds"), Effect.succeed(n <= 5 ? refusal : answer()))
        )
        const fibers = yield* Effect.forEach(places(17), (place) => Effect.fork(call(place)))
        yield* TestClock.adjust("5 seconds")
        yield* Fiber.join(Fiber.all(fibers))
        expect(begun.at(-1)).toEqual({ at: 1000, place: 16 })
      })
    ))
  it("holds back calls beyond what the headers leave until the reset, and tells it.", () =>
    test(
      Effect.gen(function* () {
        const events: Array<Events.Event> = []
        const { begun, call } = made(8, false, (n) =>
          Effect.succeed(
            answer({ ...(n === 1 || n === 4 ? limits(2, n === 1 ? 60_000 : 90_000) : {}), usage: usage(10) })
          )
        )
        const run = Effect.forEach(places(8), call, { discard: true })
        const fiber = yield* Effect.fork(heard(events)(run))
        yield* TestClock.adjust("5 minutes")
        yield* Fiber.join(fiber)
        expect(begun.map(({ at }) => at / 1000)).toEqual([0, 0, 0, 60, 60, 60, 90, 90])
        const why = "quota"
        expect(events).toEqual([
          { event: "pause", wait: 60_000, why },
          { event: "pause", wait: 30_000, why }
        ])
      })
    ))
  it("is no longer than the run waits, and is not made for a limit that is whole again only later.", () =>
    test(
      Effect.gen(function* () {
        const begunBy = (count: number, end: End) =>
          Effect.gen(function* () {
            const { begun, call } = made(8, true, () => Effect.succeed(end), Duration.seconds(10))
            const start = yield* now
            const all = yield* Effect.fork(Effect.forEach(places(count), call, { discard: true }))
            yield* TestClock.adjust("5 minutes")
            yield* Fiber.join(all)
            return begun.map(({ at }) => (at - start) / 1000)
          })
        expect(yield* begunBy(6, refusal)).toEqual([0, 0, 0, 0, 10, 20])
        expect(yield* begunBy(3, answer({ ...limits(0, (yield* now) + 10_000_000), usage: usage(10) }))).toEqual([
          0, 0, 0
        ])
      })
    ))
  it("holds back all that come at once but those that fit.", () =>
    test(
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { begun, call } = made(50, false, (n) =>
          n === 1
            ? Effect.succeed(failure("RateLimited", limits(5, 10_000)))
            : Effect.as(Deferred.await(gate), answer())
        )
        yield* call(0)
        const fibers = yield* Effect.forEach(places(20), (place) => Effect.fork(call(place)))
        yield* TestClock.adjust("9999 millis")
        expect(begun.length).toBe(1 + 5)
        yield* TestClock.adjust("1 millis")
        expect(begun.length).toBe(1 + 20)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(Fiber.all(fibers))
      })
    ))
})
