/** A session becomes ShareGPT turns, counts by tool, and a verdict on its reasoning. */
import { describe, expect, it } from "vitest"
import type { Event } from "../../src/agent/Transcript.ts"
import type { ToolCall } from "../../src/model/Model.ts"
import { noUsage } from "../../src/model/Model.ts"
import * as Quality from "../../src/trajectory/Quality.ts"
import * as ShareGpt from "../../src/trajectory/ShareGpt.ts"
import { encodeLine } from "../../src/trajectory/Trajectory.ts"

const call = (id: string, name: string, args = "{}"): ToolCall => ({ id, name, arguments: args })

const answered = (content: string, reasoning = "", toolCalls: ReadonlyArray<ToolCall> = []): Event => ({
  _tag: "Answered",
  answer: { content, reasoning, toolCalls, finishReason: "stop", usage: noUsage, echo: {} }
})

const called = (to: ToolCall, text: string, ok = true): Event => ({
  _tag: "Called",
  call: to,
  result: { name: to.name, text, ok, valid: ok }
})

const ls = call("c1", "terminal", '{"command":"ls"}')
const todo = call("c2", "todo")
const events = [
  answered("On it.", "First look.\nThen act.", [ls, todo]),
  called(ls, '{"output":"a"}'),
  called(todo, '{"error":"no"}', false),
  answered("Done.")
]

describe("A conversation", () => {
  it("is the prompt word for word, then a turn an answer and a turn a result, in order.", () => {
    expect(ShareGpt.conversation(" Say\nhi ", events)).toEqual([
      { from: "human", value: " Say\nhi ", tool_calls: [], tool_call_id: "", name: "" },
      {
        from: "gpt",
        value: "<think>\nFirst look.\nThen act.\n</think>\nOn it.",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "terminal", arguments: '{"command":"ls"}' } },
          { id: "c2", type: "function", function: { name: "todo", arguments: "{}" } }
        ],
        tool_call_id: "",
        name: ""
      },
      { from: "tool", value: '{"output":"a"}', tool_calls: [], tool_call_id: "c1", name: "terminal" },
      { from: "tool", value: '{"error":"no"}', tool_calls: [], tool_call_id: "c2", name: "todo" },
      { from: "gpt", value: "Done.", tool_calls: [], tool_call_id: "", name: "" }
    ])
  })
  it("has the same keys in the same order in every turn.", () => {
    const keys = ShareGpt.conversation("x", events).map((turn) => Object.keys(turn).join())
    expect(new Set(keys)).toEqual(new Set(["from,value,tool_calls,tool_call_id,name"]))
  })
})

describe("Tool statistics", () => {
  it("count every known tool, zeros included, in the order of the tools.", () => {
    const stats = ShareGpt.toolStats(["todo", "read_file", "terminal"], events)
    expect(Object.entries(stats)).toEqual([
      ["todo", { count: 1, success: 0, failure: 1 }],
      ["read_file", { count: 0, success: 0, failure: 0 }],
      ["terminal", { count: 1, success: 1, failure: 0 }]
    ])
    expect(Object.entries(ShareGpt.errorCounts(stats))).toEqual([
      ["todo", 1],
      ["read_file", 0],
      ["terminal", 0]
    ])
  })
  it.each(["__proto__", "constructor", "toString", "ls -la", ""])(
    "give the invented tool %j a place of its own.",
    (name) => {
      const invented = call("c9", name)
      const stats = ShareGpt.toolStats(["todo"], [called(invented, "{}", false), called(invented, "{}", false)])
      expect(Object.entries(stats).at(-1)).toEqual([name, { count: 2, success: 0, failure: 2 }])
      expect(Object.keys(ShareGpt.errorCounts(stats))).toEqual(["todo", name])
      expect(JSON.parse(encodeLine({ stats })).stats).toEqual(stats)
      expect(Quality.inventedTools({ tool_stats: stats }, new Set(["todo"]))).toEqual([name])
    }
  )
})

describe("The quality filter", () => {
  const conversations = (...all: ReadonlyArray<Event>) => ({ conversations: ShareGpt.conversation("<think>\nx", all) })
  it("finds reasoning in any turn of the model, and in no other.", () => {
    expect(Quality.lacksReasoning(conversations(...events))).toBe(false)
    expect(Quality.lacksReasoning(conversations(answered("a"), answered("b", "why")))).toBe(false)
    expect(Quality.lacksReasoning(conversations(answered("a"), called(ls, "<think>\nx\n</think>\n")))).toBe(true)
    expect(Quality.lacksReasoning(conversations())).toBe(true)
  })
  it("knows only the tools that it is told.", () => {
    expect(
      Quality.inventedTools(
        { tool_stats: ShareGpt.toolStats(["terminal", "todo"], events) },
        new Set(["terminal", "todo"])
      )
    ).toEqual([])
  })
})

describe("Counts by tool", () => {
  it("are there for a tool of any name, those of JavaScript's own objects too.", () => {
    const names = ["__proto__", "constructor", "toString"]
    const stats = ShareGpt.toolStats(names, [called(call("c", "__proto__"), "{}")])
    expect(Object.entries(stats).map(([name, { count }]) => [name, count])).toEqual([
      ["__proto__", 1],
      ["constructor", 0],
      ["toString", 0]
    ])
    expect(Object.keys(JSON.parse(encodeLine(ShareGpt.errorCounts(stats))))).toEqual(names)
  })
})
