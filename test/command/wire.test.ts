/** The request as it goes over the wire. */
import { expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import { final, serve } from "../support/Talk.ts"

it("sends the model what the options say, and nothing of what they leave out", async () => {
  const place = new Workplace()
  place.dataset(["the prompt"])
  place.write(
    "prefill.json",
    JSON.stringify([
      { role: "user", content: "before" },
      { role: "assistant", content: "yes" }
    ])
  )
  const server = await serve(() => final())
  const full = await place.run(
    server,
    {
      providers_allowed: " one , two,",
      "providers-ignored": "three",
      providers_order: "two , one",
      provider_sort: "throughput",
      reasoning_effort: "high",
      max_tokens: 321,
      ephemeral_system_prompt: "speak softly",
      prefill_messages_file: "prefill.json"
    },
    { BATCH_RUNNER_API_KEY: "the-key-of-this-test" }
  )
  expect(full.code).toBe(0)
  await place.run(server, { run_name: "off", reasoning_disabled: true, reasoning_effort: "high" })
  await place.run(
    server,
    { run_name: "bare", provider_sort: "price" },
    { BATCH_RUNNER_API_KEY: "", OPENAI_API_KEY: "other-key" }
  )
  const [one, two, three] = server.requests
  expect(one).toMatchObject({ method: "POST", path: "/v1/chat/completions" })
  expect(one?.headers.authorization).toBe("Bearer the-key-of-this-test")
  expect(one?.body).toMatchObject({
    model: "test-model",
    max_tokens: 321,
    provider: { only: ["one", "two"], ignore: ["three"], order: ["two", "one"], sort: "throughput" },
    reasoning: { effort: "high" }
  })
  expect(one?.body.messages).toEqual([
    { role: "system", content: `${place.rows()[0]?.system}\n\nspeak softly` },
    { role: "user", content: "before" },
    { role: "assistant", content: "yes" },
    { role: "user", content: "the prompt" }
  ])
  expect(two?.headers.authorization).toBeUndefined()
  expect(two?.body.reasoning).toEqual({ effort: "none" })
  expect(two?.body).not.toHaveProperty("provider")
  expect(two?.body).not.toHaveProperty("max_tokens")
  expect(three?.headers.authorization).toBe("Bearer other-key")
  expect(three?.body.provider).toEqual({ sort: "price" })
  expect(three?.body).not.toHaveProperty("reasoning")
})
