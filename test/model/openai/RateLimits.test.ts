/** Headers of rate limits in every spelling that endpoints use, and garbage in their place. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as RateLimits from "../../../src/model/openai/RateLimits.ts"

const now = Date.UTC(2026, 0, 15, 10, 30)

const read = (headers: Readonly<Record<string, string>>) => RateLimits.read((name) => headers[name], now)

/** Milliseconds from now of a reset in this spelling; undefined when it is none. */
const wait = (reset: string, at = now): number | undefined => {
  const headers: Readonly<Record<string, string>> = { "x-ratelimit-remaining": "1", "x-ratelimit-reset": reset }
  const [limit] = RateLimits.read((name) => headers[name], at)
  return limit === undefined ? undefined : limit.resetAt - at
}

describe("Limits", () => {
  it("of requests and tokens are read side by side.", () => {
    expect(
      read({
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s"
      })
    ).toEqual([
      { of: "requests", remaining: 59, resetAt: now + 1000 },
      { of: "tokens", remaining: 149984, resetAt: now + 360_000 }
    ])
  })
  it("of OpenRouter and of Anthropic are read.", () => {
    expect(read({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(now + 5000) })).toEqual([
      { of: "requests", remaining: 0, resetAt: now + 5000 }
    ])
    expect(
      read({
        "anthropic-ratelimit-requests-remaining": "3",
        "anthropic-ratelimit-requests-reset": "2026-01-15T10:30:20Z",
        "anthropic-ratelimit-tokens-remaining": "5000",
        "anthropic-ratelimit-tokens-reset": "2026-01-15T10:31:00.5+00:00"
      })
    ).toEqual([
      { of: "requests", remaining: 3, resetAt: now + 20_000 },
      { of: "tokens", remaining: 5000, resetAt: now + 60_500 }
    ])
  })
  it("are none without both what is left and until when.", () => {
    expect(read({ "x-ratelimit-remaining": "5" })).toEqual([])
    expect(read({ "x-ratelimit-reset": "5" })).toEqual([])
    for (const odd of ["-1", "", "many", "1e9", "5, 5", "9".repeat(20)]) {
      expect(read({ "x-ratelimit-remaining": odd, "x-ratelimit-reset": "5" })).toEqual([])
    }
  })
})

describe("A reset", () => {
  it.each([
    ["1s", 1000],
    ["6m0s", 360_000],
    ["20ms", 20],
    ["1h2m3.5s", 3_723_500],
    ["7.66s", 7660],
    ["2m59.56s", 179_560],
    ["1m", 60_000],
    ["1s500ms", 1500],
    ["0.5ms", 1],
    ["0s", 0],
    ["12", 12_000],
    ["0.25", 250],
    [String((now + 30_000) / 1000), 30_000],
    [String(now + 1234), 1234],
    ["2026-01-15T10:30:01Z", 1000],
    ["2026-01-15T12:30:01+02:00", 1000]
  ])("of %s is in %i ms.", (text, expected) => {
    expect(wait(text)).toBe(expected)
  })
  it.each([
    "",
    "soon",
    "-5",
    "1s1h",
    "s",
    "5x",
    "1 s",
    "NaN",
    "2026-01-15",
    "Thu, 15 Jan 2026 10:30:01 GMT",
    "25h",
    "86401",
    String(now - 1000),
    String(now + 25 * 3_600_000),
    "2026-01-15T10:29:00Z",
    "2030-01-15T10:29:00Z",
    "9".repeat(400)
  ])("of %j counts for nothing.", (text) => {
    expect(wait(text)).toBeUndefined()
  })
  it("is read back from every length of time that is written out.", () => {
    fc.assert(
      fc.property(fc.record({ h: fc.nat(22), m: fc.nat(59), s: fc.nat(59), ms: fc.nat(999) }), ({ h, m, s, ms }) => {
        const expected = ((h * 60 + m) * 60 + s) * 1000 + ms
        expect(wait(`${h}h${m}m${s}s${ms}ms`)).toBe(expected)
        const seconds = (s * 1000 + ms) / 1000
        expect(wait(`${h}h${m}m${seconds}s`)).toBeGreaterThanOrEqual(expected)
        expect(wait(`${h}h${m}m${seconds}s`)).toBeLessThanOrEqual(expected + 1)
      })
    )
  })
  it("is within a day, whatever stands there.", () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom("h", "m", "s", "ms", ".", "T", "Z", ":", "-"),
      fc.nat().map(String)
    )
    fc.assert(
      fc.property(fc.array(piece), fc.array(piece), (left, reset) => {
        const text = (pieces: ReadonlyArray<string>) => pieces.join("")
        for (const limit of RateLimits.read((name) => text(name.includes("remaining") ? left : reset), now)) {
          expect(limit.remaining).toBeGreaterThanOrEqual(0)
          expect(limit.resetAt).toBeGreaterThanOrEqual(now)
          expect(limit.resetAt).toBeLessThanOrEqual(now + 86_400_000)
        }
      }),
      { numRuns: 2000 }
    )
  })
})
