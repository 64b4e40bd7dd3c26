/** What the headers of an endpoint leave is kept to: no call beyond it before the reset. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import type { RateLimit } from "../../../src/model/Model.ts"
import { Quota } from "../../../src/model/throttle/Quota.ts"

const limit = (of: RateLimit["of"], remaining: number, resetAt = 60_000): RateLimit => ({ of, remaining, resetAt })

/** Of the calls after this one, how many may be begun at once; 20 at most. */
const open = (quota: Quota, call: number, now = 0): number => {
  for (let more = 0; more < 20; more++) if (quota.opens(call + more + 1, now) > now) return more
  return 20
}

describe("A quota", () => {
  it("holds nothing back before anything was told.", () => {
    expect(new Quota().opens(1_000_000, 0)).toBe(0)
  })
  it("lets as many calls through as are left, counted from the one whose answer told it, until the reset.", () => {
    const quota = new Quota()
    quota.read(10, [limit("requests", 3)], 0)
    expect([11, 13, 14, 99].map((call) => quota.opens(call, 59_999))).toEqual([0, 0, 60_000, 60_000])
    expect(quota.opens(99, 60_000)).toBe(0)
    expect(quota.opens(99, 59_999)).toBe(0)
  })
  it("believes the call that was begun last, whatever comes back last.", () => {
    const quota = new Quota()
    quota.read(10, [limit("requests", 3)], 0)
    quota.read(8, [limit("requests", 5)], 0)
    expect(open(quota, 10)).toBe(3)
    quota.read(12, [limit("requests", 1)], 0)
    expect(open(quota, 12)).toBe(1)
    quota.read(13, [limit("requests", 9, 120_000)], 0)
    expect(open(quota, 13)).toBe(9)
  })
  it("reckons tokens by what calls use, the newest a tenth, and rounds down.", () => {
    const quota = new Quota()
    quota.read(1, [limit("tokens", 3500)], 1000)
    expect(open(quota, 1)).toBe(3)
    quota.read(2, [limit("tokens", 3599)], 3000)
    expect(open(quota, 2)).toBe(2)
    quota.read(3, [limit("tokens", 3600)], 0)
    expect(open(quota, 3)).toBe(3)
  })
  it("lets one find out what a call uses where that is not known, and none where nothing is left.", () => {
    const quota = new Quota()
    quota.read(1, [limit("tokens", 100_000)], 0)
    expect(open(quota, 1)).toBe(1)
    quota.read(2, [limit("tokens", 0)], 0)
    expect(open(quota, 2)).toBe(0)
  })
  it("waits for the later of two limits that are used up.", () => {
    const quota = new Quota()
    quota.read(1, [limit("requests", 0, 1000), limit("tokens", 0, 5000)], 10)
    expect(quota.opens(2, 0)).toBe(5000)
    expect(quota.opens(2, 1000)).toBe(5000)
    expect(quota.opens(2, 5000)).toBe(0)
  })
  it("never opens for a call that the newest word before the reset leaves no room for.", () => {
    const reading = fc.record({ call: fc.integer({ min: 1, max: 50 }), left: fc.nat(20), resetAt: fc.nat(100) })
    fc.assert(
      fc.property(
        fc.array(reading, { minLength: 1 }),
        fc.integer({ min: 1, max: 80 }),
        fc.nat(100),
        (all, call, now) => {
          const quota = new Quota()
          for (const { call, left, resetAt } of all) quota.read(call, [limit("requests", left, resetAt)], 0)
          const newest = all.reduce((best, each) => (each.call >= best.call ? each : best))
          const shut = newest.resetAt > now && call > newest.call + newest.left
          expect(quota.opens(call, now)).toBe(shut ? newest.resetAt : 0)
        }
      )
    )
  })
})
