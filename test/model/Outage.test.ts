/** While the endpoint is down all calls wait together, one looks now and then, and all go on when it is back. */
import { Duration, Effect, Fiber, Logger, TestClock, TestContext } from "effect"
import { describe, expect, it } from "vitest"
import type * as Events from "../../src/events/Events.ts"
import { steady } from "../../src/model/Endpoint.ts"
import type { Answer, ModelError } from "../../src/model/Model.ts"
import * as Outage from "../../src/model/Outage.ts"
import { answer, failure, heard, word } from "./answers.ts"
import { ask } from "./asks.ts"

const silent = Logger.replace(Logger.defaultLogger, Logger.none)
const test = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(effect.pipe(Effect.provide(silent), Effect.provide(TestContext.TestContext)))

const now = Effect.clockWith((clock) => clock.currentTimeMillis)
const refused = failure("NotConnected")
const busy = failure("Overloaded", { status: 503 })

/** An endpoint that does with a call what the test says at the time, and keeps when each was made. */
const made = (maxWait: Duration.DurationInput = "1 hour") => {
  const calls: Array<{ readonly at: number; readonly place: number }> = []
  const events: Array<Events.Event> = []
  const state = { end: (_place: number): Effect.Effect<Answer, ModelError> => Effect.succeed(answer()) }
  const { model, endpoint } = Outage.waiting(
    {
      complete: ({ place }) =>
        Effect.flatMap(now, (at) => {
          calls.push({ at: at / 1000, place })
          return state.end(place)
        })
    },
    { ...steady, told: Effect.succeed("below") },
    { maxWait: Duration.decode(maxWait), most: 4 }
  )
  const call = (place: number) => Effect.map(Effect.either(model.complete(ask({ place }))), word).pipe(heard(events))
  const begin = (count: number, from = 0) =>
    Effect.forEach(
      Array.from({ length: count }, (_, n) => from + n),
      (place) => Effect.fork(call(place))
    )
  const be = (end: Answer | ModelError | ((place: number) => Effect.Effect<Answer, ModelError>)) => {
    state.end = typeof end === "function" ? end : () => ("reason" in end ? end : Effect.succeed(end))
  }
  /** When calls were made since the last question, in seconds. */
  const times = () => calls.splice(0).map(({ at }) => at)
  return { be, call, begin, times, calls, endpoint, events }
}

const all = <A>(fibers: ReadonlyArray<Fiber.Fiber<A>>) => Fiber.join(Fiber.all(fibers))

describe("An endpoint that was never reached", () => {
  it("is tried three times, and then no call can succeed.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin, times, events } = made()
        be(refused)
        const fibers = yield* begin(3)
        yield* TestClock.adjust("1499 millis")
        expect(times()).toEqual([0, 0, 0, 0.5, 0.5, 0.5])
        yield* TestClock.adjust("1 millis")
        expect(yield* all(fibers)).toEqual(["NeverReached", "NeverReached", "NeverReached"])
        expect([times(), events]).toEqual([[1.5, 1.5, 1.5], []])
      })
    ))
  it("may be slow to start.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin } = made()
        be(refused)
        const fibers = yield* begin(1)
        yield* TestClock.adjust("1 second")
        be(answer())
        yield* TestClock.adjust("500 millis")
        expect(yield* all(fibers)).toEqual(["answered"])
      })
    ))
})

/** One that has answered once, and then refuses connections. */
const gone = (maxWait?: Duration.DurationInput) =>
  Effect.gen(function* () {
    const world = made(maxWait)
    yield* world.call(0)
    world.times()
    world.be(refused)
    return world
  })

describe("An endpoint that is down", () => {
  it("is looked at by one call at a time, less and less often, and all go on when it answers.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin, times, endpoint, events } = yield* gone()
        const fibers = yield* begin(5)
        yield* TestClock.adjust("46 seconds")
        const [first, ...looks] = [...new Set(times())]
        expect([first, ...looks]).toEqual([0, 1, 3, 7, 15, 25, 35, 45])
        expect(yield* endpoint.told).toBe("endpoint down since 00:00:00 UTC")
        expect(yield* endpoint.downFor).toBe(46_000)
        const late = yield* begin(1, 9)
        be(answer())
        yield* TestClock.adjust("8999 millis")
        expect(times()).toEqual([])
        yield* TestClock.adjust("1 millis")
        expect(yield* all([...fibers, ...late])).toEqual(Array(6).fill("answered"))
        expect(times()).toEqual(Array(6).fill(55))
        expect(yield* endpoint.told).toBe("below")
        yield* TestClock.adjust("1 minute")
        expect(yield* endpoint.downFor).toBe(55_000)
        expect(events).toEqual([
          { event: "endpoint_down", why: refused.message },
          { event: "endpoint_up", down: 55_000 }
        ])
      })
    ))
  it("makes one call a look, whoever waits.", () =>
    test(
      Effect.gen(function* () {
        const { begin, times } = yield* gone()
        yield* begin(5)
        yield* TestClock.adjust("500 millis")
        expect(times()).toEqual([0])
        yield* TestClock.adjust("10 seconds")
        expect(times()).toEqual([1, 3, 7])
      })
    ))
  it("for longer than the run waits stops it at that very moment.", () =>
    test(
      Effect.gen(function* () {
        const { begin, times } = yield* gone("30 seconds")
        const fibers = yield* begin(1)
        yield* TestClock.adjust("29999 millis")
        expect(times().at(-1)).toBe(25)
        yield* TestClock.adjust("1 millis")
        expect(yield* all(fibers)).toEqual(["DownTooLong"])
        expect(times()).toEqual([30])
      })
    ))
  it("counts anew when it is down again.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin, times, endpoint } = yield* gone("30 seconds")
        for (const round of [1, 2]) {
          be(refused)
          const fibers = yield* begin(2)
          yield* TestClock.adjust("2 seconds")
          be(answer())
          yield* TestClock.adjust("1 second")
          expect(yield* all(fibers)).toEqual(["answered", "answered"])
          expect(yield* endpoint.downFor).toBe(round * 3000)
        }
        expect(new Set(times())).toEqual(new Set([0, 1, 3, 4, 6]))
      })
    ))
  it("is looked at by another call when the one that looks is given up, and by the next when all are.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin, times } = yield* gone()
        const [looks, ...others] = yield* begin(3)
        yield* TestClock.adjust("500 millis")
        if (looks !== undefined) yield* Fiber.interrupt(looks)
        times()
        yield* TestClock.adjust("500 millis")
        expect(times()).toEqual([1])
        yield* Fiber.interruptAll(others)
        be(answer())
        const next = yield* begin(1)
        yield* TestClock.adjust("2 seconds")
        expect([yield* all(next), times()]).toEqual([["answered"], [3]])
      })
    ))
  it("is there again as soon as it says anything of a call, be it no answer.", () =>
    test(
      Effect.gen(function* () {
        for (const error of [failure("BadRequest", { status: 400 }), failure("RateLimited", { status: 429 })]) {
          const { be, begin, endpoint } = yield* gone()
          const fibers = yield* begin(2)
          yield* TestClock.adjust("500 millis")
          be((place) => (place === 0 ? error : Effect.succeed(answer())))
          yield* TestClock.adjust("2 seconds")
          expect((yield* all(fibers)).toSorted()).toEqual([error.reason, "answered"].toSorted())
          expect(yield* endpoint.told).toBe("below")
        }
      })
    ))
  it("lets the budget have its say.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin, endpoint } = yield* gone()
        const fibers = yield* begin(1)
        yield* TestClock.adjust("500 millis")
        be(failure("BudgetReached"))
        yield* TestClock.adjust("1 second")
        expect(yield* all(fibers)).toEqual(["BudgetReached"])
        expect(yield* endpoint.told).toMatch(/^endpoint down/)
      })
    ))
})

describe("Failures in a row", () => {
  const failing = (error: ModelError, count: number, places = count) =>
    Effect.gen(function* () {
      const world = made()
      world.be(error)
      const ends: Array<string> = []
      for (let n = 0; n < count; n++) ends.push(yield* world.call(n % places))
      return { ...world, ends }
    })

  it("of any kind mean an outage when there are ten, and are the calls' own until then.", () =>
    test(
      Effect.gen(function* () {
        for (const reason of ["Unreachable", "BadAnswer", "TimedOut", "Overloaded"] as const) {
          const { ends, endpoint, call } = yield* failing(failure(reason), 9)
          expect([ends, yield* endpoint.told]).toEqual([Array(9).fill(reason), "below"])
          expect([yield* call(9), yield* endpoint.told]).toEqual([reason, expect.stringMatching(/^endpoint down/)])
        }
      })
    ))
  it("begin anew with each answer.", () =>
    test(
      Effect.gen(function* () {
        const { be, call, endpoint } = yield* failing(busy, 9)
        be(answer())
        yield* call(0)
        be(busy)
        for (let n = 0; n < 9; n++) yield* call(n)
        expect(yield* endpoint.told).toBe("below")
      })
    ))
  it("of three prompts with HTTP 503 cost none of them a try, those of one prompt do.", () =>
    test(
      Effect.gen(function* () {
        for (const [places, waits] of [
          [1, false],
          [2, false],
          [3, true]
        ] as const) {
          const { be, begin, endpoint } = yield* failing(busy, 9, places)
          const last = yield* begin(1)
          yield* TestClock.adjust("500 millis")
          expect(yield* endpoint.told).toMatch(/^endpoint down/)
          expect((yield* Effect.forEach(last, Fiber.poll)).map(({ _tag }) => _tag)).toEqual([waits ? "None" : "Some"])
          be(answer())
          yield* TestClock.adjust("1 second")
          expect(yield* all(last)).toEqual([waits ? "answered" : "Overloaded"])
        }
      })
    ))
  it("with HTTP 500 use up a try also in an outage.", () =>
    test(
      Effect.gen(function* () {
        const { begin, times } = yield* failing(failure("Overloaded", { status: 500 }), 10)
        times()
        const fibers = yield* begin(1)
        yield* TestClock.adjust("1 second")
        expect([yield* all(fibers), times()]).toEqual([["Overloaded"], [1]])
      })
    ))
})
