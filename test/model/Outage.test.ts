/** While the endpoint is down all calls wait together, some look now and then, and all go on when it is back. */
import { Effect, Fiber, TestClock } from "effect"
import { describe, expect, it } from "vitest"
import { answer, failure } from "./answers.ts"
import { all, gone, made, refused, test } from "./downtime.ts"

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

describe("An endpoint that is down", () => {
  it("is looked at by a few calls at a time, less and less often, and all go on when it answers.", () =>
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
          { event: "endpoint_down", why: "not_connected" },
          { event: "endpoint_up", down: 55_000 }
        ])
      })
    ))
  it("makes four calls a look, however many wait.", () =>
    test(
      Effect.gen(function* () {
        const { begin, times } = yield* gone()
        yield* begin(9)
        yield* TestClock.adjust("500 millis")
        expect(times()).toEqual([0])
        yield* TestClock.adjust("10 seconds")
        expect(times()).toEqual([1, 3, 7].flatMap((at) => Array(4).fill(at)))
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
        expect(times()).toEqual([1, 1])
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
