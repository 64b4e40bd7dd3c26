/** Which failures in a row mean that the endpoint is down, and what becomes of looks that nobody answers. */
import { Effect, Fiber, TestClock } from "effect"
import { describe, expect, it } from "vitest"
import type { ModelError } from "../../src/model/Model.ts"
import { answer, failure } from "./answers.ts"
import { all, busy, gone, made, test } from "./downtime.ts"

describe("Failures in a row", () => {
  const failing = (error: ModelError, count: number, places = count) =>
    Effect.gen(function* () {
      const world = made()
      world.be(error)
      const ends: Array<string> = []
      for (let n = 0; n < count; n++) ends.push(yield* world.call(n % places))
      return { ...world, ends }
    })

  it("mean an outage when there are ten of a kind that tells of absence, and are the calls' own until then.", () =>
    test(
      Effect.gen(function* () {
        for (const error of [failure("Unreachable"), busy]) {
          const { ends, endpoint, call } = yield* failing(error, 9, 4)
          expect([ends, yield* endpoint.told]).toEqual([Array(9).fill(error.reason), "below"])
          expect([yield* call(1), yield* endpoint.told]).toEqual([
            error.reason,
            expect.stringMatching(/^endpoint down/)
          ])
        }
      })
    ))
  it("of other kinds are the calls' own, however many.", () =>
    test(
      Effect.gen(function* () {
        for (const error of [
          failure("BadAnswer"),
          failure("TimedOut"),
          failure("Overloaded", { status: 500 }),
          failure("Overloaded", { status: 200 })
        ]) {
          const { endpoint } = yield* failing(error, 30)
          expect(yield* endpoint.told).toBe("below")
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
  it("of fewer than three prompts are their own.", () =>
    test(
      Effect.gen(function* () {
        const { endpoint } = yield* failing(busy, 30, 2)
        expect(yield* endpoint.told).toBe("below")
      })
    ))
  it("use up tries of as many prompts as may hold all places, and none once others fail too.", () =>
    test(
      Effect.gen(function* () {
        for (const [places, end] of [
          [4, "Overloaded"],
          [5, "answered"]
        ] as const) {
          const { be, begin, endpoint } = yield* failing(busy, 9, places)
          const last = yield* begin(1)
          yield* TestClock.adjust("500 millis")
          expect(yield* endpoint.told).toMatch(/^endpoint down/)
          be(answer())
          yield* TestClock.adjust("2 seconds")
          expect(yield* all(last)).toEqual([end])
        }
      })
    ))
})

describe("A look that is never answered", () => {
  it("keeps nobody from looking, and is given up with the run's patience.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin, times } = yield* gone("30 seconds")
        const hung = yield* begin(4)
        yield* TestClock.adjust("500 millis")
        be((place) => (place < 4 ? Effect.never : Effect.succeed(answer())))
        yield* TestClock.adjust("1 second")
        const others = yield* begin(2, 5)
        yield* TestClock.adjust("2 seconds")
        expect(yield* all(others)).toEqual(["answered", "answered"])
        expect(new Set(times())).toEqual(new Set([0, 1, 3]))
        yield* Fiber.interruptAll(hung)
      })
    ))
  it("stops the run in time when nothing else answers.", () =>
    test(
      Effect.gen(function* () {
        const { be, begin } = yield* gone("30 seconds")
        const first = yield* begin(1)
        yield* TestClock.adjust("500 millis")
        be(() => Effect.never)
        yield* TestClock.adjust("29499 millis")
        expect((yield* Effect.forEach(first, Fiber.poll)).map(({ _tag }) => _tag)).toEqual(["None"])
        yield* TestClock.adjust("1 millis")
        expect(yield* all(first)).toEqual(["DownTooLong"])
      })
    ))
})
