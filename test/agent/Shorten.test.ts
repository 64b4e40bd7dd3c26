/** A conversation that is longer than the model takes is shortened once where it is old, and else ends as partial. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer } from "effect"
import * as Shorten from "../../src/agent/Shorten.ts"
import { type Ask, Model, ModelError, noUsage, type Usage } from "../../src/model/Model.ts"
import { calls, contents, converse, empty, type Line, recital, text, told } from "./session.ts"

const limits = { from: 2000, to: 1000 }
const shorten = (value: object) => Shorten.shorten(JSON.stringify(value), limits)

const strings = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: "binary", minLength: 100, maxLength: 3000 }),
  fc.stringMatching(/^(é|\n|"|\\|😀|終){50,2000}$/)
)
const { result } = fc.letrec<{ value: unknown; list: ReadonlyArray<unknown>; result: object }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, fc.integer(), fc.boolean(), fc.constant(null), strings, tie("list"), tie("result")),
  list: fc.array(tie("value"), { maxLength: 60 }),
  result: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("output", "error", "__proto__")), tie("value"), {
    maxKeys: 30
  })
}))

/** Whether neither a JSON text nor what it stands for holds half a character. */
const allWellFormed = (json: string): boolean => {
  let all = json.isWellFormed()
  JSON.parse(json, (name, value) => {
    all &&= name.isWellFormed() && (typeof value !== "string" || value.isWellFormed())
    return value
  })
  return all
}

describe("A shortened result", () => {
  it("is a JSON object of well-formed text within its limit, never longer than before, and stays as it is from then on.", () => {
    fc.assert(
      fc.property(result, fc.integer({ min: 500, max: 4000 }), (fields, to) => {
        const before = JSON.stringify(fields)
        const after = Shorten.shorten(before, { from: to, to })
        const parsed: unknown = JSON.parse(after)
        expect(typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)).toBe(true)
        expect(allWellFormed(after)).toBe(true)
        expect(after.length).toBeLessThanOrEqual(before.length)
        if (before.length > to) expect(after.length).toBeLessThanOrEqual(to)
        if (before.length <= to) expect(after).toBe(before)
        else expect(after).toMatch(/left out to make room/)
        expect(Shorten.shorten(after, { from: to, to })).toBe(after)
      }),
      { numRuns: 300 }
    )
  })
  it("keeps its short fields whole, and head and tail of its long ones.", () => {
    const output = `first\n${"x".repeat(5000)}\nlast`
    const { output: shortened, ...rest } = JSON.parse(shorten({ output, exit_code: 1, error: "no such file" }))
    expect(rest).toEqual({ exit_code: 1, error: "no such file" })
    const [, head = "", left, tail = ""] =
      /^(first\nx+)\n\[… (\d+) characters left out to make room …\]\n(x+\nlast)$/.exec(shortened) ?? []
    expect(head.length + Number(left) + tail.length).toBe(output.length)
    expect(shorten({ output, exit_code: 1, error: "no such file" }).length).toBeGreaterThan(950)
  })
  it("keeps the ends of a long list and says how many items are gone.", () => {
    const matches = Array.from({ length: 400 }, (_, line) => ({ file: "a.txt", line }))
    const parsed = JSON.parse(shorten({ matches, total: 400 }))
    expect(parsed.total).toBe(400)
    expect([parsed.matches[0], parsed.matches.at(-1)]).toEqual([matches[0], matches[399]])
    const mark = parsed.matches.find((each: unknown) => typeof each === "string")
    expect(mark).toBe(`[… ${400 - (parsed.matches.length - 1)} items left out to make room …]`)
    expect(parsed.matches.length).toBeGreaterThan(20)
  })
  it("shares its room among several long fields, at any depth.", () => {
    const long = "y".repeat(4000)
    const parsed = JSON.parse(shorten({ a: long, b: { c: [long, "short"] }, d: "z".repeat(100) }))
    expect(parsed.d.length).toBe(100)
    expect(parsed.b.c[1]).toBe("short")
    expect(Math.abs(parsed.a.length - parsed.b.c[0].length)).toBeLessThan(40)
  })
  it("is one field of text when it has too many fields, or nests too deeply, to be shortened in parts.", () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`field ${n}`, n]))
    expect(JSON.parse(shorten(many)).shortened).toMatch(/^\{"field 0":0,.*"field 499":499\}$/s)
    const deep = `{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`
    expect(JSON.parse(Shorten.shorten(deep, limits)).shortened).toMatch(/^\{"a":\[\[.*\]\]\}$/s)
  })
  it("does not split a character, and has no half of one when the tool gave it.", () => {
    const { output } = JSON.parse(shorten({ output: "😀".repeat(3000) }))
    expect(output.replaceAll("😀", "")).toMatch(/^\n\[… \d+ characters left out to make room …\]\n$/)
    expect(Shorten.shorten(`{"output":"\\ud83d${"x".repeat(3000)}"}`, limits).includes("\\ud83d")).toBe(false)
  })
})

/** Characters of all tool results of an ask. */
const weight = ({ messages }: Ask): number =>
  messages.reduce((sum, message) => sum + (message.role === "tool" ? message.content.length : 0), 0)

/** A model that refuses what is longer. */
const refusing = (atMost: number, usage: Usage = noUsage) =>
  Layer.effect(
    Model,
    Effect.map(Model, ({ complete }) => ({
      complete: (ask: Ask) =>
        weight(ask) > atMost
          ? Effect.fail(new ModelError({ reason: "ContextTooLong", detail: "too long", status: 400, usage }))
          : complete(ask)
    }))
  )

const recites = (...lengths: ReadonlyArray<number>): Line => calls(...lengths.map(recital))

describe("A session that is longer than the model takes", () => {
  it.effect("goes on with older results shortened, in what the model reads and in what is kept.", () =>
    Effect.gen(function* () {
      const script = [recites(8000, 300), recites(1500), recites(6000), text("Done.")]
      const { ending, transcript, asks } = yield* converse(script, { between: refusing(12_000) })
      expect(ending._tag).toBe("Finished")
      // The last ask was made twice.
      expect([transcript.apiCalls, asks.length, asks[4]?.turn]).toEqual([4, 5, 3])
      const results = told(transcript).filter((said) => said.startsWith("{"))
      expect(results.map(({ length }) => length)).toEqual([expect.any(Number), 311, 1511, 6011])
      expect(results[0]?.length).toBeLessThanOrEqual(1000)
      expect(results[0]).toContain("characters left out to make room")
      expect(transcript.shortened).toBe(1)
      expect(contents(asks[4]).slice(2)).toEqual(told(transcript).slice(0, -1))
    })
  )
  it.effect("shortens what the model has not read yet only where it is huge.", () =>
    Effect.gen(function* () {
      const { ending, transcript } = yield* converse([recites(40_000, 15_000), text("Done.")], {
        between: refusing(32_000)
      })
      expect(ending._tag).toBe("Finished")
      const [, huge = "", other = ""] = told(transcript)
      expect(huge.length).toBeGreaterThan(15_900)
      expect(huge.length).toBeLessThanOrEqual(16_000)
      expect(other.length).toBe(15_011)
      expect(transcript.shortened).toBe(1)
    })
  )
  it.effect("ends as partial when it is refused again, at once or later, and counts what refusals cost.", () =>
    Effect.gen(function* () {
      const usage: Usage = { prompt: 9, completion: 0, reasoning: 0, cached: 0, total: 9, cost_usd: 0.5 }
      const line = (length: number): Line => ({ ...recites(length), usage: { prompt: 1, completion: 1, cost_usd: 0 } })
      const atOnce = yield* converse([line(30_000), text("Never.")], { between: refusing(1000, usage) })
      expect(atOnce.ending).toEqual({ _tag: "Cut", why: "ContextFull" })
      expect([atOnce.asks.length, atOnce.transcript.apiCalls, atOnce.transcript.shortened]).toEqual([3, 1, 1])
      expect(atOnce.transcript.usage).toMatchObject({ total: 2 + 18, cost_usd: 1 })
      const later = yield* converse([line(5000), line(2500), line(5000), line(2600), text("Never.")], {
        between: refusing(7000, usage)
      })
      expect(later.ending).toEqual({ _tag: "Cut", why: "ContextFull" })
      expect([later.asks.length, later.transcript.apiCalls, later.transcript.shortened]).toEqual([5, 3, 1])
    })
  )
  it.effect("is not asked again as it is when nothing in it can be shortened.", () =>
    Effect.gen(function* () {
      const { ending, asks, transcript } = yield* converse([recites(1500), text("Never.")], { between: refusing(1000) })
      expect(ending).toEqual({ _tag: "Cut", why: "ContextFull" })
      expect([asks.length, transcript.shortened]).toEqual([2, 0])
    })
  )
  it.effect("before its first answer has failed.", () =>
    Effect.gen(function* () {
      for (const script of [[text("Never.")], [empty, text("Never.")]]) {
        let left = script.length - 1
        const between = Layer.effect(
          Model,
          Effect.map(Model, ({ complete }) => ({
            complete: (ask: Ask) =>
              left-- > 0 ? complete(ask) : Effect.fail(new ModelError({ reason: "ContextTooLong", detail: "too long" }))
          }))
        )
        const { ending, asks } = yield* converse(script, { between })
        expect(ending._tag === "Broke" && "reason" in ending.error && ending.error.reason).toBe("ContextTooLong")
        expect(asks.length).toBe(script.length)
      }
    })
  )
})
