/** The calls at once follow what an endpoint takes: quickly when it takes fewer, soon when it takes more, and seldom in vain. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { type Call, Window } from "../../../src/model/throttle/Window.ts"
import { between, type End, live, type World } from "./world.ts"

const seeds = [1, 2, 3, 4, 5, 6]

/** The same world with several seeds, for a window of at most 64. */
const lives = (world: Omit<World, "workers" | "seed">): ReadonlyArray<ReadonlyArray<End>> =>
  seeds.map((seed) => live(new Window(64, true), { ...world, workers: 64, seed }))

/** When the limit first was so high or so low after a time, in seconds from then. */
const until = (ends: ReadonlyArray<End>, from: number, fits: (limit: number) => boolean): number =>
  (ends.find(({ at, limit }) => at > from && fits(limit))?.at ?? Number.POSITIVE_INFINITY) - from

describe("Calls at once in the world of a test", () => {
  it("use nearly all that an endpoint takes, and few are refused.", () => {
    for (const transit of [0, 20]) {
      for (const ends of lives({ seconds: 240, capacity: () => 20, transit })) {
        const warm = between(ends, 30, 240)
        expect(warm.refused).toBeLessThan(0.02)
        expect(warm.rate).toBeGreaterThan(0.9 * 20)
        expect(warm.least).toBeGreaterThanOrEqual(19)
        expect(warm.most).toBeLessThanOrEqual(22)
      }
    }
  })
  it("still try one more now and then where they are many for long.", () => {
    for (const ends of lives({ seconds: 240, capacity: () => 20 })) {
      expect(between(ends, 120, 240).refused).toBeGreaterThan(0.004)
    }
  })
  it("follow it down within seconds and up again within a minute or two.", () => {
    const capacity = (second: number) => (second >= 100 && second < 250 ? 5 : 20)
    for (const ends of lives({ seconds: 500, capacity, transit: 20 })) {
      expect(until(ends, 100, (limit) => limit <= 6)).toBeLessThan(8)
      const low = between(ends, 120, 250)
      expect(low.refused).toBeLessThan(0.03)
      expect(low.rate).toBeGreaterThan(0.9 * 5)
      expect(low.most).toBeLessThanOrEqual(7)
      expect(until(ends, 250, (limit) => limit >= 20)).toBeLessThan(90)
      const high = between(ends, 350, 500)
      expect(high.refused).toBeLessThan(0.02)
      expect(high.rate).toBeGreaterThan(0.9 * 20)
    }
  })
  it("grow to all where refusals are mere chance.", () => {
    for (const ends of lives({ seconds: 240, capacity: () => 1000, refuses: 0.09, transit: 20 })) {
      expect(until(ends, 0, (limit) => limit > 40)).toBeLessThan(20)
      expect(between(ends, 30, 240).mean).toBeGreaterThan(56)
      expect(ends.at(-1)?.limit).toBeGreaterThan(40)
    }
  })
  it("settle at three where three are taken, within half a minute.", () => {
    for (const ends of lives({ seconds: 240, capacity: () => 3, transit: 20 })) {
      expect(until(ends, 0, (limit) => limit <= 3)).toBeLessThan(5)
      const warm = between(ends, 30, 240)
      expect([warm.least, warm.most]).toEqual([3, 4])
      expect(warm.refused).toBeLessThan(0.03)
      expect(warm.rate).toBeGreaterThan(0.9 * 3)
    }
  })
  it("come back soon after a time in which all were refused, at the beginning or later.", () => {
    for (const ends of lives({ seconds: 60, capacity: (second) => (second < 5 ? 0 : 1000), transit: 20 })) {
      expect(until(ends, 5, (limit) => limit >= 20)).toBeLessThan(30)
    }
    const capacity = (second: number) => (second >= 60 && second < 65 ? 0 : 20)
    for (const ends of lives({ seconds: 130, capacity, transit: 20 })) {
      expect(until(ends, 65, (limit) => limit >= 19)).toBeLessThan(20)
      expect(between(ends, 70, 130).rate).toBeGreaterThan(0.8 * 20)
    }
  })
  it("are one where one is taken, and all at once where all are.", () => {
    for (const ends of lives({ seconds: 200, capacity: () => 1, transit: 20 })) {
      const warm = between(ends, 60, 200)
      expect([warm.least, warm.most]).toEqual([1, 2])
      expect(warm.refused).toBeLessThan(0.05)
    }
    for (const ends of lives({ seconds: 30, capacity: () => 1000 })) {
      expect(until(ends, 0, (limit) => limit === 64)).toBeLessThan(5)
      expect(between(ends, 0, 30).refused).toBe(0)
    }
  })
  it("never change where they are fixed, whatever becomes of them.", () => {
    for (const capacity of [3, 1000]) {
      const ends = live(new Window(40, false), { workers: 64, seconds: 60, capacity: () => capacity, refuses: 0.2 })
      expect(new Set(ends.map(({ limit }) => limit))).toEqual(new Set([40]))
    }
  })
})

/** Begins as many as are free. */
const fill = (window: Window): Array<Call> => {
  const calls: Array<Call> = []
  while (window.inFlight < window.limit) calls.push(window.begin())
  return calls
}

/** A window of 16 whose calls were answered so far, with all places taken again. */
const busy = (most = 64) => {
  const window = new Window(most, true)
  for (const call of fill(window)) window.answered(call, false)
  return { window, calls: fill(window) }
}

describe("The window", () => {
  it("begins with sixteen, or all there are, and gives out no more.", () => {
    expect([64, 7, 1].map((most) => new Window(most, true).limit)).toEqual([16, 7, 1])
    expect(new Window(64, false).limit).toBe(64)
    const window = new Window(64, true)
    expect([fill(window).length, window.inFlight, window.begun]).toEqual([16, 16, 16])
  })
  it("grows by one with each answer while more are wanted and none was refused, and never beyond the most.", () => {
    const { window, calls } = busy(20)
    for (const call of calls.slice(0, 3)) window.answered(call, true)
    expect(window.limit).toBe(19)
    window.answered(calls[3] ?? window.begin(), false)
    expect(window.limit).toBe(19)
    for (const call of calls.slice(4)) window.answered(call, true)
    expect(window.limit).toBe(20)
  })
  it("learns nothing from calls that broke.", () => {
    const { window, calls } = busy()
    for (const call of calls) window.ended(call)
    expect([window.limit, window.inFlight]).toEqual([16, 0])
  })
  it("takes the refusals of calls that were in flight already for one.", () => {
    const { window, calls } = busy()
    const limits = calls.map((call) => {
      window.refused(call)
      return window.limit
    })
    const lowered = limits.filter((limit, place) => limit !== (limits[place - 1] ?? 16))
    expect(lowered).toEqual([11])
    expect(limits.indexOf(11)).toBeLessThan(10)
    expect(window.inFlight).toBe(0)
  })
  it("does so also where they are few.", () => {
    const { window, calls } = busy(8)
    for (const call of calls) window.refused(call)
    expect(window.limit).toBe(5)
  })
  it("goes to what was in work when all that came to more was refused, and no further.", () => {
    const window = new Window(64, true)
    const calls = fill(window)
    for (const call of calls.slice(3)) window.refused(call)
    expect([window.limit, window.inFlight]).toEqual([3, 3])
    for (const call of calls.slice(0, 3)) window.answered(call, true)
    expect(window.limit).toBe(3)
  })
  it("takes one more than ever was answered for too many when it is refused twice.", () => {
    const window = new Window(64, true)
    for (let n = 0; n < 3; n++) window.begin()
    window.refused(window.begin())
    expect(window.limit).toBe(16)
    window.refused(window.begin())
    expect(window.limit).toBe(3)
  })
  it("comes back after a cut with two rounds of answers for each place that it had.", () => {
    const { window, calls } = busy()
    for (const call of calls) window.refused(call)
    const answers = (count: number) => {
      for (let n = 0; n < count; n++) window.answered(window.begin(), true)
      return window.limit
    }
    expect([answers(5), answers(1), answers(5), answers(2)]).toEqual([11, 12, 12, 13])
  })
  it("goes on down when all that was begun after a cut is refused too, three each time.", () => {
    const { window, calls } = busy()
    for (const call of calls) window.refused(call)
    const steps = [1, 2, 3].map(() => {
      for (const call of fill(window)) window.refused(call)
      return window.limit
    })
    expect(steps).toEqual([7, 4, 2])
  })
  it("takes single refusals among answers for chance, and many for a sign.", () => {
    const limitAfter = (refusedOf: (n: number) => boolean, count: number) => {
      const { window, calls } = busy()
      for (const call of calls) window.ended(call)
      for (let n = 0; n < count; n++) {
        // One at a time: it is not for want of a place that they are refused.
        const call = window.begin()
        if (refusedOf(n)) window.refused(call)
        else window.answered(call, false)
      }
      return window.limit
    }
    expect(limitAfter((n) => n % 5 === 0, 200)).toBe(16)
    expect(limitAfter((n) => n % 2 === 0, 20)).toBeLessThan(16)
    expect(limitAfter((n) => n % 3 === 0 && n < 30, 40)).toBe(16)
    expect(limitAfter((n) => n % 10 < 3, 100)).toBe(12)
  })
  it("stays between one and the most, and gives back each place, whatever happens in whatever order.", () => {
    const step = fc.tuple(fc.constantFrom("begin", "answered", "refused", "ended"), fc.nat(63), fc.boolean())
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 64 }), fc.array(step, { maxLength: 400 }), (most, steps) => {
        const window = new Window(most, true)
        const calls: Array<Call> = []
        for (const [what, which, wanted] of steps) {
          if (what === "begin") {
            if (window.inFlight < window.limit) calls.push(window.begin())
            continue
          }
          const [call] = calls.splice(which % Math.max(1, calls.length), 1)
          if (call === undefined) continue
          if (what === "answered") window.answered(call, wanted)
          else if (what === "refused") window.refused(call)
          else window.ended(call)
          expect(window.limit).toBeGreaterThanOrEqual(1)
          expect(window.limit).toBeLessThanOrEqual(most)
          expect(window.inFlight).toBe(calls.length)
          expect(Number.isInteger(window.limit)).toBe(true)
        }
      }),
      { numRuns: 300 }
    )
  })
})
