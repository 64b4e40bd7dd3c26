/** Answers that are legal JSON and beyond all reason. */
import { Duration, Effect, Exit } from "effect"
import { expect, it } from "vitest"
import { Model } from "../../src/model/Model.ts"
import * as OpenAi from "../../src/model/OpenAi.ts"
import * as ModelServer from "../support/ModelServer.ts"

const ask = { messages: [], tools: [], prompt: "hello", turn: 0, sample: 0, place: 0, occurrence: 0 }
const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`

/** What the endpoint's answer with this body comes to. */
const asked = async (body: string, twice = false) => {
  const server = await ModelServer.start(() => ({ status: 200, headers: { "content-type": "application/json" }, body }))
  const request = {
    model: "m",
    baseUrl: server.url,
    maxTokens: undefined,
    provider: undefined,
    reasoning: undefined,
    promptCache: true,
    prices: {},
    callLimit: Duration.seconds(10)
  }
  const call = Effect.gen(function* () {
    const model = yield* Model
    const answer = yield* model.complete(ask)
    return twice ? yield* model.complete({ ...ask, messages: [{ role: "answer", answer }] }) : answer
  })
  const layer = OpenAi.layer(request, undefined)
  const exit = await Effect.runPromise(Effect.exit(Effect.provide(Effect.either(call), layer)))
  await server.close()
  return exit
}

it("An answer that is nested too deeply fails its call, and no more than that.", async () => {
  const call = `{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra": ${deep}}`
  const exit = await asked(`{"choices": [{"message": {"content": null, "tool_calls": [${call}]}}]}`, true)
  expect(Exit.isSuccess(exit) && exit.value._tag).toBe("Left")
})

it("Tokens are whole numbers of a size that sums stay exact with.", async () => {
  const usage = '{"prompt_tokens": 1.5, "completion_tokens": 1e308, "total_tokens": 1e308, "cost": 0.25}'
  const exit = await asked(`{"choices": [{"message": {"content": "x"}}], "usage": ${usage}}`)
  expect(Exit.isSuccess(exit) && exit.value._tag === "Right" && exit.value.right.usage).toMatchObject({
    prompt: 2,
    completion: 1e9,
    total: 1e9 + 2,
    cost_usd: 0.25
  })
})
