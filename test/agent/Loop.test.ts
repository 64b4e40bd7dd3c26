/** The same call with the same result is told to the model, and ends a session that does nothing else. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Schema } from "effect"
import * as Loop from "../../src/agent/Loop.ts"
import * as Tool from "../../src/tools/Tool.ts"
import { bad, type Call, calls, contents, converse, text, told, word } from "./session.ts"

const call = (args: string, name = "say") => ({ id: "1", name, arguments: args })

/** Hints of the tool results, empty where there is none. */
const hints = (results: ReadonlyArray<string>): ReadonlyArray<string> =>
  results.filter((result) => result !== "").map((result) => JSON.parse(result).hint ?? "")

const same = (count: number) => Array.from({ length: count }, () => calls(word("a")))

describe("Calls are the same", () => {
  const repeats = (a: ReturnType<typeof call>, b: ReturnType<typeof call>) => {
    const loop = new Loop.Loop()
    loop.count(a, "{}")
    return loop.count(b, "{}") === 2
  }
  it("when their names are and their arguments have the same value, however they are written.", () => {
    expect(repeats(call('{"a":1,"b":[{"c":null}]}'), call(' {"b": [{"c": null}],\n"a": 1.0} '))).toBe(true)
    expect(repeats(call(""), call("{}"))).toBe(true)
    expect(repeats(call("][ "), call("][ "))).toBe(true)
    expect(repeats(call('{"a":1}'), call('{"a":2}'))).toBe(false)
    expect(repeats(call('{"a":1}'), call('{"a":"1"}'))).toBe(false)
    expect(repeats(call('{"a":[1,2]}'), call('{"a":[2,1]}'))).toBe(false)
    expect(repeats(call('{"a":1}'), call('{"a":1,"b":2}'))).toBe(false)
    expect(repeats(call("]["), call("][ "))).toBe(false)
    expect(repeats(call("{}", "say"), call("{}", "shout"))).toBe(false)
  })
  it("for any arguments in any order of their keys.", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), (args) => {
        const turned = Object.fromEntries(Object.entries(args).toReversed())
        expect(repeats(call(JSON.stringify(args)), call(JSON.stringify(turned, null, 2)))).toBe(true)
      })
    )
  })
  it("only as long as their results are.", () => {
    const loop = new Loop.Loop()
    const results = ["x", "x", "y", "y", "y", "x"]
    expect(results.map((result) => loop.count(call("{}"), result))).toEqual([1, 2, 1, 2, 3, 1])
  })
})

describe("A hint", () => {
  it("is a further field of the result, whatever that holds.", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })), (fields) => {
        const { hint, ...rest } = JSON.parse(Loop.hinted(JSON.stringify(fields), 3))
        const { hint: own, ...others } = JSON.parse(JSON.stringify(fields))
        expect(rest).toEqual(others)
        expect(hint).toContain("3 times in a row")
        if (typeof own === "string") expect(hint).toContain(own)
      })
    )
  })
  it("stands beside one that the tool gave.", () => {
    const { hint } = JSON.parse(Loop.hinted('{"hint":"look there"}', 4))
    expect(hint).toMatch(/^look there; .* 4 times in a row/)
  })
})

describe("A session that repeats itself", () => {
  it.effect("is told from the third time on, in what the model reads and in what is kept.", () =>
    Effect.gen(function* () {
      const { ending, transcript, asks } = yield* converse([...same(4), text("Done.")])
      expect(ending._tag).toBe("Finished")
      const given = hints(told(transcript).slice(0, -1))
      expect(given.map((hint) => /gave the same result (\d+) times/.exec(hint)?.[1])).toEqual([
        undefined,
        undefined,
        "3",
        "4"
      ])
      expect(JSON.parse(told(transcript)[5] ?? "").said).toBe("a")
      expect(contents(asks[4]).slice(2)).toEqual(told(transcript).slice(0, -1))
    })
  )
  it.effect("is cut as partial after ten times, across turns.", () =>
    Effect.gen(function* () {
      const { ending, transcript } = yield* converse([...same(10), text("Never.")], { maxTurns: 20 })
      expect(ending).toEqual({ _tag: "Cut", why: "Loop" })
      expect([transcript.apiCalls, transcript.events.length]).toEqual([10, 20])
      expect((yield* converse([...same(9), text("Done.")], { maxTurns: 20 })).ending._tag).toBe("Finished")
    })
  )
  it.effect("inside one answer is cut after the other calls of that answer have run.", () =>
    Effect.gen(function* () {
      const many: ReadonlyArray<Call> = Array.from({ length: 10 }, () => word("a"))
      const { ending, transcript } = yield* converse([calls(...many, word("b")), text("Never.")])
      expect(ending).toEqual({ _tag: "Cut", why: "Loop" })
      expect(transcript.events.length).toBe(12)
      expect(told(transcript).at(-1)).toBe('{"said":"b"}')
    })
  )
  it.effect("counts anew after another call or another result.", () =>
    Effect.gen(function* () {
      const other = yield* converse([...same(9), calls(word("b")), ...same(9), text("Done.")], { maxTurns: 30 })
      expect(other.ending._tag).toBe("Finished")
      let times = 0
      const flaky = Tool.make({
        name: "say",
        description: "Gives something else every ninth time.",
        parameters: Schema.Struct({}),
        run: () => Effect.sync(() => ({ part: Math.floor(times++ / 9) }))
      })
      const result = yield* converse([...same(20), text("Done.")], { maxTurns: 30, tools: [flaky] })
      expect(result.ending._tag).toBe("Finished")
      expect(hints(told(result.transcript).slice(0, -1)).filter((hint) => hint !== "").length).toBe(7 + 7)
    })
  )
  it.effect(
    "counts calls that fail and calls that are invalid, but three answers without a valid call end it sooner.",
    () =>
      Effect.gen(function* () {
        const failing = yield* converse([...Array.from({ length: 10 }, () => calls(word("bad"))), text("Never.")], {
          maxTurns: 20
        })
        expect(failing.ending).toEqual({ _tag: "Cut", why: "Loop" })
        const wrong: Call = { name: "say", arguments: { wrod: "x" } }
        const invalid = yield* converse([calls(...Array.from({ length: 10 }, () => wrong)), text("Never.")])
        expect(invalid.ending).toEqual({ _tag: "Cut", why: "Loop" })
        const { ending, transcript } = yield* converse([bad, bad, bad, text("Never.")])
        expect(ending).toEqual({ _tag: "Cut", why: "InvalidCalls" })
        expect(hints(told(transcript))[2]).toContain("3 times")
      })
  )
})
