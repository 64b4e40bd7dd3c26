/** Sandboxes start at a pace, again after bad luck, so many at once, and are released behind the next prompt's start. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Logger, Scope, TestClock } from "effect"
import { SandboxError } from "../../src/sandbox/Sandbox.ts"
import * as Startup from "../../src/sandbox/Startup.ts"
import { box, place, spec } from "./places.ts"

const badLuck = new SandboxError({ reason: "StartFailed", detail: "bad luck" })

/** Milliseconds of the test's clock. */
const now = Clock.currentTimeMillis

describe("A ramp", () => {
  /** Begins so many starts at once that take `millis` each; when each began, and the most at one time. */
  const starts = (perSecond: number, many: number, millis: number) =>
    Effect.gen(function* () {
      const ramp = Startup.ramp(perSecond)
      const begun: Array<number> = []
      const count = { now: 0, most: 0 }
      const one = Effect.gen(function* () {
        begun.push(yield* now)
        count.now++
        count.most = Math.max(count.most, count.now)
        yield* Effect.sleep(millis)
        count.now--
      })
      const all = yield* Effect.fork(
        Effect.all(
          Array.from({ length: many }, () => ramp(one)),
          { concurrency: many }
        )
      )
      yield* TestClock.adjust(many * (1000 + millis))
      yield* Fiber.join(all)
      return { begun, most: count.most }
    })

  it.effect("begins starts evenly, so many in a second.", () =>
    Effect.gen(function* () {
      const { begun } = yield* starts(4, 20, 10)
      expect(begun).toEqual(Array.from({ length: 20 }, (_, at) => at * 250))
      expect((yield* starts(1000, 50, 0)).begun.length).toBe(50)
    })
  )

  it.effect("lets no more be under way than begin in a second.", () =>
    Effect.gen(function* () {
      const { begun, most } = yield* starts(5, 30, 3000)
      expect(most).toBe(5)
      for (const [at, when] of begun.entries()) {
        expect(begun.filter((other) => other >= when && other < when + 1000).length, `${at}`).toBeLessThanOrEqual(5)
      }
    })
  )

  it.effect("does not make up for the time when nobody came.", () =>
    Effect.gen(function* () {
      const ramp = Startup.ramp(2)
      const begun: Array<number> = []
      const one = ramp(Effect.flatMap(now, (at) => Effect.sync(() => begun.push(at))))
      yield* one
      yield* TestClock.adjust("1 minute")
      const all = yield* Effect.fork(Effect.all([one, one, one], { concurrency: 3 }))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(all)
      expect(begun).toEqual([0, 60_000, 60_500, 61_000])
    })
  )

  it.effect("goes on after starts that fail or are broken off.", () =>
    Effect.gen(function* () {
      const ramp = Startup.ramp(1)
      expect(yield* Effect.flip(ramp(badLuck))).toBe(badLuck)
      const hung = yield* Effect.fork(ramp(Effect.never))
      const waiting = yield* Effect.fork(ramp(Effect.void))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.interrupt(waiting)
      yield* Fiber.interrupt(hung)
      const last = yield* Effect.fork(ramp(now))
      yield* TestClock.adjust("2 seconds")
      expect(yield* Fiber.join(last)).toBeGreaterThan(0)
    })
  )
})

describe("A start that fails", () => {
  it.effect("by bad luck is tried four times, 1, 2 and 4 seconds apart, each try cleared away before the next.", () =>
    Effect.gen(function* () {
      const tried: Array<number> = []
      const { sandboxes, notes, count } = place(() =>
        Effect.zipRight(
          Effect.flatMap(now, (at) => Effect.sync(() => tried.push(at))),
          badLuck
        )
      )
      const opening = yield* Effect.fork(Effect.flip(Effect.scoped(Startup.persistent(sandboxes).open(spec()))))
      yield* TestClock.adjust("1 minute")
      const error = yield* Fiber.join(opening)
      expect(tried).toEqual([0, 1000, 3000, 7000])
      expect(error).toMatchObject({ reason: "StartFailed", transient: true, message: "bad luck (tried 4 times)" })
      expect(count).toEqual({ now: 0, most: 1 })
      expect(notes).toEqual(Array.from({ length: 4 }, () => ["made t0", "gone t0"]).flat())
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, Logger.none)))
  )

  it.effect("and then succeeds is told in a line for each wait, and lasts as long as its scope.", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      let left = 2
      const { sandboxes, notes } = place(() => Effect.suspend(() => (left-- > 0 ? badLuck : Effect.void)))
      const scope = yield* Scope.make()
      const opening = yield* Effect.fork(Scope.extend(Startup.persistent(sandboxes).open(spec()), scope)).pipe(
        Effect.provide(
          Logger.replace(
            Logger.defaultLogger,
            Logger.make(({ logLevel, message }) => lines.push(`${logLevel.label} ${String(message)}`))
          )
        )
      )
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(opening)).toBe(box)
      expect(lines).toEqual(["WARN bad luck; trying again in 1 s", "WARN bad luck; trying again in 2 s"])
      expect(notes.at(-1)).toBe("made t0")
      yield* Scope.close(scope, Exit.void)
      expect(notes.at(-1)).toBe("gone t0")
    })
  )

  it.effect("for a reason that stays is not tried again.", () =>
    Effect.gen(function* () {
      for (const reason of ["Unavailable", "ImageMissing", "ImageUnfit", "NoSpace"] as const) {
        const error = new SandboxError({ reason, detail: "for good" })
        const { sandboxes, notes } = place(() => error)
        expect(yield* Effect.flip(Effect.scoped(Startup.persistent(sandboxes).open(spec())))).toBe(error)
        expect(notes).toEqual(["made t0", "gone t0"])
      }
    })
  )

  it.effect("is broken off at once, also while it waits for its next try.", () =>
    Effect.gen(function* () {
      const { sandboxes, count } = place(() => badLuck)
      const opening = yield* Effect.fork(Effect.scoped(Startup.persistent(sandboxes).open(spec())))
      yield* TestClock.adjust(1500)
      yield* Fiber.interrupt(opening)
      expect(count.now).toBe(0)
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, Logger.none)))
  )
})

describe("What dead runs left", () => {
  it.live("is cleared away beside the work, and to its end when the work is over sooner.", () =>
    Effect.gen(function* () {
      const notes: Array<string> = []
      const note = (text: string) =>
        Effect.sync((): ReadonlyArray<string> => {
          notes.push(text)
          return []
        })
      yield* Effect.scoped(Effect.zipRight(Startup.sweep(Effect.delay(note("cleared"), "50 millis")), note("worked")))
      expect(notes).toEqual(["worked", "cleared"])
    })
  )

  it.live("and cannot be cleared away is no failure of the work.", () =>
    Effect.gen(function* () {
      for (const clean of [badLuck, Effect.die(new Error("it broke"))]) {
        expect(yield* Effect.scoped(Effect.as(Startup.sweep(clean), "worked"))).toBe("worked")
      }
    })
  )
})
