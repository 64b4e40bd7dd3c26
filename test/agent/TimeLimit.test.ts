/** Sessions that take too long are ended, each at its own time, and the others are left alone. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import * as TimeLimit from "../../src/agent/TimeLimit.ts"
import { Endpoint, steady } from "../../src/model/Endpoint.ts"

/** A session of so many seconds, which takes `release` seconds to let go of what it has. */
const session = (seconds: number, ended: Array<string>, name: string, release = 0) =>
  Effect.sleep(`${seconds} seconds`).pipe(
    Effect.as("done"),
    Effect.onInterrupt(() =>
      Effect.zipRight(
        Effect.sleep(`${release} seconds`),
        Effect.sync(() => ended.push(name))
      )
    )
  )

describe("The time limit of sessions", () => {
  it.scoped("lets one that is in time give its result, and fail with its own error.", () =>
    Effect.gen(function* () {
      const limit = yield* TimeLimit.make(10)
      const fiber = yield* Effect.fork(
        Effect.all(
          [
            limit.within(session(9, [], "a"), () => "late"),
            limit.within(Effect.flip(session(9, [], "b")), () => "late").pipe(Effect.flip)
          ],
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("9 seconds")
      expect(yield* Fiber.join(fiber)).toEqual(["done", "done"])
    })
  )
  it.scoped("ends each at its own time, whichever began before it or has ended since.", () =>
    Effect.gen(function* () {
      const limit = yield* TimeLimit.make(10)
      const ended: Array<string> = []
      const begin = (seconds: number, name: string) =>
        Effect.fork(limit.within(session(seconds, ended, name), () => `${name} is late`))
      const first = yield* begin(100, "first")
      const quick = yield* begin(3, "quick")
      yield* TestClock.adjust("4 seconds")
      const second = yield* begin(100, "second")
      yield* TestClock.adjust("5 seconds")
      expect(ended).toEqual([])
      yield* TestClock.adjust("1 seconds")
      expect(ended).toEqual(["first"])
      yield* TestClock.adjust("3 seconds")
      expect(ended).toEqual(["first"])
      yield* TestClock.adjust("1 seconds")
      expect(ended).toEqual(["first", "second"])
      expect(yield* Fiber.join(Fiber.all([first, quick, second]))).toEqual(["first is late", "done", "second is late"])
      // A long silence, then one that begins just before the watch looks again.
      yield* TestClock.adjust("99 seconds")
      const last = yield* begin(100, "last")
      yield* TestClock.adjust("9 seconds")
      expect(ended).not.toContain("last")
      yield* TestClock.adjust("1 seconds")
      expect(yield* Fiber.join(last)).toBe("last is late")
    })
  )
  it.scoped("answers when the late one has let go of everything, and keeps nobody else waiting for that.", () =>
    Effect.gen(function* () {
      const limit = yield* TimeLimit.make(10)
      const ended: Array<string> = []
      const slow = yield* Effect.fork(limit.within(session(100, ended, "slow", 50), () => "late"))
      yield* TestClock.adjust("1 seconds")
      const next = yield* Effect.fork(limit.within(session(100, ended, "next"), () => "late"))
      yield* TestClock.adjust("10 seconds")
      expect(ended).toEqual(["next"])
      expect(yield* Fiber.join(next)).toBe("late")
      expect(yield* Fiber.poll(slow)).toMatchObject({ _tag: "None" })
      yield* TestClock.adjust("50 seconds")
      expect(yield* Fiber.join(slow)).toBe("late")
    })
  )
  it.scoped("passes an interruption on to the session, and waits for its end.", () =>
    Effect.gen(function* () {
      const limit = yield* TimeLimit.make(10)
      const ended: Array<string> = []
      const fiber = yield* Effect.fork(limit.within(session(5, ended, "a", 2), () => "late"))
      yield* TestClock.adjust("1 seconds")
      const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1 seconds")
      expect(ended).toEqual([])
      yield* TestClock.adjust("1 seconds")
      expect(ended).toEqual(["a"])
      expect((yield* Fiber.join(interrupting))._tag).toBe("Failure")
    })
  )
  it.scoped("lets a defect of the session through.", () =>
    Effect.gen(function* () {
      const limit = yield* TimeLimit.make(10)
      const exit = yield* Effect.exit(limit.within(Effect.die("broken"), () => "late"))
      expect(exit).toMatchObject({ _tag: "Failure", cause: { _tag: "Die", defect: "broken" } })
    })
  )
  it.scoped("stands still while the endpoint is down, for those that began before as for those that begin then.", () =>
    Effect.gen(function* () {
      let before = 0
      let since: number | undefined
      const clock = Effect.clockWith(({ currentTimeMillis }) => currentTimeMillis)
      const downFor = Effect.map(clock, (now) => before + (since === undefined ? 0 : now - since))
      const limit = yield* Effect.provideService(TimeLimit.make(10), Endpoint, { ...steady, downFor })
      const ended: Array<string> = []
      const begin = (name: string) => Effect.fork(limit.within(session(1000, ended, name), () => `${name} is late`))
      yield* begin("first")
      yield* TestClock.adjust("4 seconds")
      since = yield* clock
      yield* TestClock.adjust("7 seconds")
      yield* begin("second")
      yield* TestClock.adjust("93 seconds")
      before += (yield* clock) - since
      since = undefined
      yield* TestClock.adjust("5999 millis")
      expect(ended).toEqual([])
      yield* TestClock.adjust("1 millis")
      expect(ended).toEqual(["first"])
      const third = yield* begin("third")
      yield* TestClock.adjust("3999 millis")
      expect(ended).toEqual(["first"])
      yield* TestClock.adjust("1 millis")
      expect(ended).toEqual(["first", "second"])
      // Down again, and never back: the clock stands still for good.
      since = yield* clock
      yield* TestClock.adjust("1 minute")
      expect(ended).toEqual(["first", "second"])
      yield* Fiber.interrupt(third)
    })
  )
})
