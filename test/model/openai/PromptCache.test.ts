/** What a long session asks begins with what it asked before, and says so to the models that want to be told. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import type { Message, Request } from "../../../src/model/Model.ts"
import * as RequestBody from "../../../src/model/openai/RequestBody.ts"
import * as Wire from "../../../src/model/openai/Wire.ts"
import * as Server from "../../support/ModelServer.ts"
import { ask, request, tool } from "../asks.ts"

const mark = { cache_control: { type: "ephemeral" } }
const claude = { model: "anthropic/claude-sonnet-4.6" }
const tools = [tool("terminal"), tool("file")]

const turn = (place: number): ReadonlyArray<Message> => {
  const toolCalls = [{ id: `c${place}`, name: "terminal", arguments: "{}" }]
  const answer = Either.getOrThrow(Wire.decode(ask({ turn: place }), Server.completion({ content: null, toolCalls })))
  return [
    { role: "answer", answer },
    { role: "tool", callId: `c${place}`, name: "terminal", content: `Result ${place} 👋` }
  ]
}

const opening: ReadonlyArray<Message> = [
  { role: "system", content: "S" },
  { role: "user", content: "P" },
  { role: "assistant", content: "Q" },
  { role: "user", content: "U" }
]

/** The conversation of a session at its call of that number, from 0. */
const messages = (calls: number): ReadonlyArray<Message> => [
  ...opening,
  ...Array.from({ length: calls }, (_, place) => turn(place)).flat()
]

const encode = (more: Partial<Request>, calls: number, url = "https://openrouter.ai/api/v1") =>
  RequestBody.textEncoder(request(url, more))(ask({ tools, messages: messages(calls) }))

const written = `,${JSON.stringify(mark).slice(1, -1)}`
const bare = (text: string): string => text.replaceAll(written, "")
const marks = (text: string): number => (text.length - bare(text).length) / written.length

describe("A request to a model that wants to be told", () => {
  it("marks the system prompt, the last tool, the end of the call before and its own.", () => {
    expect(JSON.parse(encode(claude, 2))).toEqual({
      model: claude.model,
      usage: { include: true },
      tools: [tools[0], { ...tools[1], ...mark }],
      messages: [
        { role: "system", content: [{ type: "text", text: "S", ...mark }] },
        { role: "user", content: [{ type: "text", text: "P" }] },
        { role: "assistant", content: [{ type: "text", text: "Q" }] },
        { role: "user", content: [{ type: "text", text: "U" }] },
        ...turn(0).flatMap((message) => (message.role === "answer" ? [message.answer.echo] : [])),
        { role: "tool", tool_call_id: "c0", content: [{ type: "text", text: "Result 0 👋", ...mark }] },
        ...turn(1).flatMap((message) => (message.role === "answer" ? [message.answer.echo] : [])),
        { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "Result 1 👋", ...mark }] }
      ]
    })
  })
  it("has four marks at most, and one place never two.", () => {
    for (let calls = 0; calls < 6; calls++) expect(marks(encode(claude, calls))).toBe(calls === 0 ? 3 : 4)
    const one = ask({ messages: [{ role: "system", content: "S" }] })
    expect(marks(RequestBody.textEncoder(request("https://openrouter.ai/api/v1", claude))(one))).toBe(1)
  })
  it("leaves an empty text as it is.", () => {
    const [body] = [RequestBody.encoder(request("http://127.0.0.1/v1", claude))].map((make) =>
      make(
        ask({
          messages: [
            { role: "system", content: "" },
            { role: "tool", callId: "c", name: "terminal", content: "" }
          ]
        })
      )
    )
    expect(body?.messages).toEqual([
      { role: "system", content: "" },
      { role: "tool", tool_call_id: "c", content: "" }
    ])
  })
  it("hands back an answer untouched, also at the end.", () => {
    const text = encode(claude, 1)
    const ends = ask({ messages: messages(1).slice(0, -1) })
    expect(JSON.parse(text).messages.at(-2)).toEqual(JSON.parse(JSON.stringify(turn(0)[0])).answer.echo)
    const body = RequestBody.encoder(request("https://openrouter.ai/api/v1", claude))(ends)
    expect(JSON.parse(JSON.stringify(body.messages)).at(-1)).toEqual(JSON.parse(text).messages.at(-2))
  })
})

describe("Which models are told", () => {
  const told = (url: string, more: Partial<Request>) => marks(encode(more, 1, url)) > 0
  it.each([
    ["https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.6", true],
    ["http://127.0.0.1:1/v1", "anthropic/claude-sonnet-4.6", true],
    ["https://openrouter.ai/api/v1", "~anthropic/claude-latest", true],
    ["https://openrouter.ai/api/v1", "claude-sonnet-4.6", true],
    ["https://api.example.com/v1", "claude-sonnet-4.6", false],
    ["https://openrouter.ai/api/v1", "openai/gpt-5", false],
    ["https://openrouter.ai/api/v1", "acme/anthropic/claude", false]
  ])("at %s, %s: %s.", (url, model, expected) => {
    expect(told(url, { model })).toBe(expected)
    expect(told(url, { model, promptCache: false })).toBe(false)
  })
})

describe("The bytes of a session's requests", () => {
  it.each([
    ["marked", claude],
    ["unmarked", { ...claude, promptCache: false }],
    ["of another model", { model: "openai/gpt-5" }]
  ])("%s begin with all that was asked before, but for the marks.", (_, more) => {
    for (let calls = 0; calls < 8; calls++) {
      const [before, after] = [encode(more, calls), encode(more, calls + 1)].map(bare)
      expect(before?.endsWith("]}")).toBe(true)
      expect(after?.startsWith(before?.slice(0, -2) ?? "none")).toBe(true)
    }
  })
  it("are those of the body as an object.", () => {
    for (const more of [claude, { model: "m" }]) {
      const body = RequestBody.encoder(request("https://openrouter.ai/api/v1", more))
      expect(JSON.parse(encode(more, 3))).toEqual(
        JSON.parse(JSON.stringify(body(ask({ tools, messages: messages(3) }))))
      )
    }
  })
})
