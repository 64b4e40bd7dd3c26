/** What goes to an endpoint: no field that was not asked for, and each message in its own form. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import * as RequestBody from "../../../src/model/openai/RequestBody.ts"
import * as Wire from "../../../src/model/openai/Wire.ts"
import * as Server from "../../support/ModelServer.ts"
import { ask, request, tool } from "../asks.ts"

describe("The body of a request", () => {
  it("holds the model and the messages, and nothing that was not asked for.", () => {
    expect(RequestBody.encoder(request("http://127.0.0.1/v1"))(ask())).toEqual({
      model: "test-model",
      messages: [{ role: "user", content: "Say hello." }]
    })
  })
  it("holds tools, max_tokens, provider, reasoning and, for OpenRouter only, usage.", () => {
    const more = { maxTokens: 9, provider: { only: ["x"], sort: "price" }, reasoning: { effort: "high" } }
    const common = {
      model: "test-model",
      messages: [{ role: "user", content: "Say hello." }],
      tools: [tool("terminal")],
      max_tokens: 9,
      provider: { only: ["x"], sort: "price" },
      reasoning: { effort: "high" }
    }
    const asked = ask({ tools: [tool("terminal")] })
    expect(RequestBody.encoder(request("https://openrouter.ai/api/v1", more))(asked)).toEqual({
      ...common,
      usage: { include: true }
    })
    expect(RequestBody.encoder(request("https://notopenrouter.ai/v1", more))(asked)).toEqual(common)
  })
  it("holds each kind of message in its own form.", () => {
    const spec = { content: null, reasoning: "Hm.", toolCalls: [{ id: "c1", name: "terminal", arguments: "{}" }] }
    const answer = Either.getOrThrow(Wire.decode(ask(), Server.completion(spec)))
    const body = RequestBody.encoder(request("http://127.0.0.1/v1"))(
      ask({
        messages: [
          { role: "system", content: "S" },
          { role: "user", content: "U \ud800" },
          { role: "assistant", content: "P" },
          { role: "answer", answer },
          { role: "tool", callId: "c1", name: "terminal", content: "R" }
        ]
      })
    )
    expect(body).toEqual({
      model: "test-model",
      messages: [
        { role: "system", content: "S" },
        { role: "user", content: "U \ufffd" },
        { role: "assistant", content: "P" },
        answer.echo,
        { role: "tool", tool_call_id: "c1", content: "R" }
      ]
    })
  })
})
