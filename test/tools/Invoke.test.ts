import { Effect, FastCheck, Schema } from "effect"
import { expect, test } from "vitest"
import * as Arguments from "../../src/tools/Arguments.ts"
import * as Invoke from "../../src/tools/Invoke.ts"
import * as Tool from "../../src/tools/Tool.ts"
import { inSandbox } from "./support.ts"

const echo = Tool.make({
  name: "echo",
  description: "Gives its arguments back",
  parameters: Schema.Struct({
    word: Arguments.text("A word"),
    times: Schema.optional(Arguments.whole("How often", 0)),
    loud: Schema.optional(Arguments.flag("Shout")),
    way: Schema.optional(Arguments.choice("Which way", "up", "down")),
    parts: Schema.optional(
      Schema.Array(Schema.Struct({ id: Arguments.text("Id") })).annotations({ description: "Parts" })
    )
  }),
  run: (args) => (args.word === "throw" ? Effect.die(new Error("a bug")) : Effect.succeed({ args }))
})

const call = async (args: string, name = "echo") => {
  const invoked = await inSandbox(Invoke.call([echo], { name, arguments: args }))
  return { ...invoked, result: JSON.parse(invoked.text) }
}

test("A call that fits runs", async () => {
  expect(await call('{"word":"hi"}')).toMatchObject({
    name: "echo",
    ok: true,
    valid: true,
    result: { args: { word: "hi" } }
  })
})

test("An unknown tool is answered with the tools on offer", async () => {
  const unknown = await call("{}", "shout")
  expect(unknown).toMatchObject({ name: "shout", ok: false, valid: false })
  expect(unknown.result).toEqual({ error: 'there is no tool "shout"; the tools on offer are echo' })
})

test("Every field that does not fit is told at once, in plain words", async () => {
  const bad = await call('{"times":"many","loud":"maybe","way":"left","parts":[{"id":1},{}]}')
  expect(bad).toMatchObject({ ok: false, valid: false })
  expect(bad.result.error).toBe(
    "bad arguments for echo: word: is missing (expected a string); " +
      'times: expected a whole number of at least 0, got "many"; loud: expected true or false, got "maybe"; ' +
      'way: expected one of "up", "down", got "left"; parts.0.id: expected a string, got 1; ' +
      "parts.1.id: is missing (expected a string)"
  )
  expect((await call('{"word":5}')).result.error).toContain("word: expected a string, got 5")
  expect((await call('{"word":null}')).result.error).toContain("word: expected a string, got null")
  expect((await call('{"word":"a","times":1.5}')).result.error).toContain(
    "times: expected a whole number of at least 0, got 1.5"
  )
  expect((await call('{"word":"a","times":1e400}')).result.error).toContain("times: expected a whole number")
})

test("A number below its least one is told as a fault, not moved into bounds", async () => {
  const bad = await call('{"word":"a","times":"-1"}')
  expect(bad).toMatchObject({ ok: false, valid: false })
  expect(bad.result.error).toBe("bad arguments for echo: times: expected a whole number of at least 0, got -1")
  expect((await call('{"word":"a","times":"0"}')).result.args).toEqual({ word: "a", times: 0 })
})

test("No arguments, blank ones and null count as an empty object", async () => {
  for (const none of ["", " \n", "null", "{}"]) {
    expect((await call(none)).result.error).toBe("bad arguments for echo: word: is missing (expected a string)")
  }
})

test("What is no JSON object says where and what was got", async () => {
  expect((await call('{"word": "a')).result.error).toMatch(/not valid JSON: .*position 11.*Got: \{"word": "a/)
  expect((await call("ls -l")).result.error).toMatch(/not valid JSON.*ls -l/)
  for (const other of ["[]", '"x"', "5", "true"]) {
    expect(await call(other)).toMatchObject({
      valid: false,
      result: { error: expect.stringContaining("one JSON object") }
    })
  }
})

test("Numbers, booleans and lists written as strings are taken, nulls and unknown fields dropped", async () => {
  const { result } = await call(
    '{"word":"a","times":" 3 ","loud":"False","way":null,"parts":"[{\\"id\\":\\"x\\",\\"no\\":1}]","extra":[1]}'
  )
  expect(result.args).toEqual({ word: "a", times: 3, loud: false, parts: [{ id: "x" }] })
})

test("Hostile arguments are answered", async () => {
  const deep = "[".repeat(100_000)
  for (const hostile of [
    deep,
    `{"word":${deep}${"]".repeat(100_000)}}`,
    `{"word":"a","parts":"${deep}"}`,
    `{"word":"a","x":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}`
  ]) {
    expect(await call(hostile)).toMatchObject({ valid: false, ok: false })
  }
  const proto = await call('{"__proto__":{"word":"x"},"constructor":1}')
  expect(proto.result.error).toContain("word: is missing")
  expect((await call('{"word":"a","word":"b","__proto__":{"times":2}}')).result.args).toEqual({ word: "b" })
  expect((await call('{"word":"\\ud800"}')).result.args.word).toBe("\ufffd")
  expect((await call(`{"word":"a","times":"${"9".repeat(100_000)}"}`)).text.length).toBeLessThan(500)
  expect((await call(`{"word":"a","times":{"a":"${"x".repeat(1_000_000)}"}}`)).text.length).toBeLessThan(500)
  expect((await call("{}", "x".repeat(1_000_000))).text.length).toBeLessThan(500)
})

test("A result that is no JSON object is a failure that the model can read, and names in one are well-formed", async () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const odd = [{ many: 10n }, circle, () => 1, [1], new Date(0), { toJSON: () => undefined }, { toJSON: () => "text" }]
  for (const result of odd) {
    for (const [run, says] of [
      [Effect.succeed(result), /no JSON object/],
      [new Tool.ToolFailure({ error: "why", result: { result } }), /why/]
    ] as const) {
      const tool = Tool.make({ name: "odd", description: "", parameters: Schema.Struct({}), run: () => run })
      const { ok, text } = await inSandbox(Invoke.call([tool], { name: "odd", arguments: "{}" }))
      expect([ok, JSON.parse(text).error]).toEqual([false, expect.stringMatching(says)])
    }
  }
  expect(Tool.render({ "a\ud800": [{ "\udfff": "\ud800" }], __proto__: null })).toBe(
    '{"a\ufffd":[{"\ufffd":"\ufffd"}]}'
  )
})

test("A defect in a tool comes through", async () => {
  await expect(call('{"word":"throw"}')).rejects.toThrow("a bug")
})

test("Whatever a model writes, the answer is a well-formed JSON object", () =>
  inSandbox(
    Effect.gen(function* () {
      const written = FastCheck.oneof(
        FastCheck.string({ unit: "binary" }),
        FastCheck.json(),
        FastCheck.json().map((json) => `{"word":"w","times":${json},"parts":${json},"way":${json}}`),
        FastCheck.string({ unit: "binary" }).map((word) => JSON.stringify({ word }))
      )
      for (const args of FastCheck.sample(written, 1000)) {
        const invoked = yield* Invoke.call([echo], { name: "echo", arguments: args })
        expect(invoked.text.isWellFormed()).toBe(true)
        const result = JSON.parse(invoked.text)
        expect("error" in result).toBe(!invoked.ok)
        if (!invoked.ok) expect(invoked.text.length).toBeLessThan(2000)
      }
    })
  ))
