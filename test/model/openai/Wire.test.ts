/** Bodies of every kind that endpoints send are understood, and handed back the way they came. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import type { Answer, Ask } from "../../../src/model/Model.ts"
import * as Wire from "../../../src/model/openai/Wire.ts"
import * as Server from "../../support/ModelServer.ts"
import { ask } from "../asks.ts"

const decoded = (spec: Server.AnswerSpec, more: Partial<Ask> = {}): Answer =>
  Either.getOrThrow(Wire.decode(ask(more), Server.completion(spec)))

describe("The text of an answer", () => {
  it("may be a string, null, absent or a list of parts.", () => {
    expect(decoded({ content: "Hi" }).content).toBe("Hi")
    expect(decoded({ content: null }).content).toBe("")
    expect(decoded({ message: { content: undefined } }).content).toBe("")
    expect(
      decoded({
        content: [
          { type: "text", text: "Hi " },
          { type: "text", text: "you" }
        ]
      }).content
    ).toBe("Hi you")
  })
  it("of parts may hold reasoning.", () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "Hm." }] },
      { type: "text", text: "Hi" }
    ]
    const answer = decoded({ content })
    expect([answer.content, answer.reasoning, answer.echo]).toEqual(["Hi", "Hm.", { role: "assistant", content }])
  })
  it("is well-formed Unicode.", () => {
    expect(decoded({ content: "a\udfffb" }).content).toBe("a\ufffdb")
  })
  it("is the refusal when that is all there is.", () => {
    expect(decoded({ content: null, message: { refusal: "No." } }).content).toBe("No.")
  })
})

describe("Tool calls", () => {
  const calls = (given: unknown, more: Partial<Ask> = {}) =>
    decoded({ content: null, message: { tool_calls: given } }, more)
  it("may be absent, null or empty.", () => {
    for (const none of [undefined, null, []]) {
      expect(calls(none).toolCalls).toEqual([])
    }
  })
  it("have arguments as text, an object, null or nothing.", () => {
    const forms = ['{"a":1}', { a: 1 }, null, undefined, "", "not json"]
    const given = forms.map((form, place) => ({
      id: `c${place}`,
      type: "function",
      function: { name: "t", arguments: form }
    }))
    expect(calls(given).toolCalls.map((call) => call.arguments)).toEqual([
      '{"a":1}',
      '{"a":1}',
      "{}",
      "{}",
      "{}",
      "not json"
    ])
  })
  it("may be a single one in the field of older servers, where there is no other.", () => {
    const single = { name: "t", arguments: '{"a":1}' }
    const message = { content: null, function_call: single }
    for (const none of [undefined, null, []]) {
      const answer = decoded({ finishReason: "function_call", message: { ...message, tool_calls: none } }, { turn: 3 })
      expect(answer.toolCalls).toEqual([{ id: "call_3_0", ...single }])
      expect(answer.finishReason).toBe("tool_calls")
      expect(answer.echo).toEqual({
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_3_0", type: "function", function: single }]
      })
    }
    const given = [{ id: "c", type: "function", function: { name: "other", arguments: "{}" } }]
    expect(decoded({ message: { ...message, tool_calls: given } }).toolCalls.map((call) => call.name)).toEqual([
      "other"
    ])
    for (const empty of [null, {}, { name: "", arguments: "" }, "t"]) {
      expect(decoded({ content: "Hi", message: { function_call: empty } }).toolCalls).toEqual([])
    }
  })
  it("get ids that are unique in the session where the endpoint gives none, and the echo holds the same.", () => {
    const earlier = calls([{ id: "call_2_0", function: { name: "t", arguments: "{}" } }])
    const answer = calls(
      [
        { id: "call_2_0", type: "function", function: { name: "t", arguments: "{}" } },
        { id: "x", type: "function", function: { name: "t", arguments: "{}" } },
        { id: "x", type: "function", function: { name: "t", arguments: "{}" } },
        { id: "", type: "function", function: { name: "t", arguments: "{}" } },
        { type: "strange", index: 4, function: { name: "t", arguments: { a: 1 } }, extra_content: { signature: "s" } }
      ],
      { turn: 2, messages: [{ role: "answer", answer: earlier }] }
    )
    const ids = answer.toolCalls.map((call) => call.id)
    expect(ids).toEqual(["call_2_0_1", "x", "call_2_2", "call_2_3", "call_2_4"])
    const echo = answer.echo.tool_calls
    expect(Array.isArray(echo) ? echo.map((call: { id: string }) => call.id) : []).toEqual(ids)
    expect(Array.isArray(echo) ? echo[4] : undefined).toEqual({
      id: "call_2_4",
      type: "function",
      index: 4,
      function: { name: "t", arguments: '{"a":1}' },
      extra_content: { signature: "s" }
    })
    expect(answer.echo.content).toBeNull()
  })
})

describe("The reason why an answer ended", () => {
  it.each([
    ["stop", false, "stop"],
    ["stop", true, "tool_calls"],
    ["tool_calls", true, "tool_calls"],
    ["tool_calls", false, "stop"],
    ["length", false, "length"],
    ["length", true, "length"],
    ["content_filter", false, "content_filter"],
    ["eos", false, "stop"],
    ["eos", true, "tool_calls"],
    [null, false, "stop"]
  ])("%s, with calls %s, is %s.", (given, withCalls, expected) => {
    const message = withCalls ? { tool_calls: [{ id: "c", function: { name: "t", arguments: "{}" } }] } : {}
    const body = { choices: [{ message: { content: "", ...message }, finish_reason: given }] }
    expect(Either.getOrThrow(Wire.decode(ask(), body)).finishReason).toBe(expected)
  })
})

describe("Usage", () => {
  it("is read in full.", () => {
    const usage = {
      prompt_tokens: 1,
      completion_tokens: 2,
      total_tokens: 3,
      cost: 0.5,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 5 }
    }
    expect(decoded({ usage }).usage).toEqual({
      prompt: 1,
      completion: 2,
      reasoning: 5,
      cached: 4,
      total: 3,
      cost_usd: 0.5
    })
  })
  it("is zero where the endpoint says nothing.", () => {
    const zero = { prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0, cost_usd: 0 }
    for (const usage of [null, undefined, {}, { prompt_tokens: null, prompt_tokens_details: null, cost: "x" }]) {
      expect(decoded({ body: { usage } }).usage).toEqual(zero)
    }
  })
})

describe("A tag that is opened in the middle and never closed", () => {
  const text = "The tag <think> is used. Done"
  it("is text in an answer that came to its own end, and reasoning in one that was cut or goes on.", () => {
    expect(decoded({ content: text })).toMatchObject({ content: text, reasoning: "" })
    const cut = { content: "The tag", reasoning: "is used. Done" }
    expect(decoded({ content: text, finishReason: "length" })).toMatchObject(cut)
    expect(decoded({ content: text, toolCalls: [{ name: "t", arguments: "{}" }] })).toMatchObject(cut)
  })
})

describe("The echo", () => {
  it("holds the endpoint's own reasoning fields unchanged.", () => {
    const details = [
      { type: "reasoning.encrypted", data: "abc", id: "r1", format: "f-v1", index: 0, odd: { deep: [1, null] } }
    ]
    const message = { reasoning: "Hm.", reasoning_content: "Hm.", reasoning_details: details }
    expect(decoded({ content: "Hi", message }).echo).toEqual({ role: "assistant", content: "Hi", ...message })
  })
  it("holds an object of reasoning as it is.", () => {
    const message = { reasoning: { text: "Hm.", id: "r" } }
    const answer = decoded({ content: "Hi", message })
    expect([answer.reasoning, answer.echo]).toEqual(["Hm.", { role: "assistant", content: "Hi", ...message }])
  })
  it("leaves out what the endpoint did not give, and keeps tags in the text.", () => {
    const given = {
      content: "<think>\nHm.\n</think>\nHi",
      message: { reasoning: null, annotations: [], refusal: null }
    }
    const answer = decoded(given)
    expect([answer.content, answer.reasoning]).toEqual(["Hi", "Hm."])
    expect(answer.echo).toEqual({ role: "assistant", content: "<think>\nHm.\n</think>\nHi" })
  })
})

describe("A body that is no answer", () => {
  const problem = (text: string) => Either.getOrThrow(Either.flip(Wire.decodeText(ask(), text)))
  it.each([
    ["", "Malformed"],
    ["<html>Bad gateway</html>", "Malformed"],
    ['{"choices": [{"mess', "Malformed"],
    ["null", "Malformed"],
    ["[]", "Malformed"],
    ["{}", "Malformed"],
    ['{"choices": []}', "Malformed"],
    ['{"choices": null}', "Malformed"],
    ['{"choices": "x"}', "Malformed"],
    ['{"choices": [{"finish_reason": "stop"}]}', "Malformed"],
    ['{"error": {"message": "no", "code": 502}}', "Failed"],
    ['{"error": "no", "choices": [{"message": {"content": "x"}}]}', "Failed"],
    ['{"choices": [{"error": {"message": "no"}}]}', "Failed"],
    ['{"choices": [{"message": {"content": "x"}, "finish_reason": "error"}]}', "Failed"]
  ])("%s is %s.", (text, tag) => {
    expect(problem(text)._tag).toBe(tag)
  })
  it("but one with an empty error is an answer.", () => {
    expect(
      Either.isRight(Wire.decodeText(ask(), '\n  {"error": null, "choices": [{"message": {"content": "x"}}]}'))
    ).toBe(true)
  })
})
