/** What an endpoint does wrong: what passes is waited for, what does not is recorded, and the other prompts finish. */
import { expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { final, promptOf, serve } from "../support/Talk.ts"

const whole = JSON.stringify(ModelServer.completion({ content: "done", reasoning: "thought" }))

const passing: ReadonlyArray<readonly [what: string, reaction: ModelServer.Reaction]> = [
  ["HTTP 429", ModelServer.error(429, "slow down")],
  ["HTTP 408", ModelServer.error(408, "too late")],
  ["HTTP 409", ModelServer.error(409, "conflict")],
  ["HTTP 500", ModelServer.error(500, "oops")],
  ["HTTP 503 with HTML", { status: 503, body: "<html><h1>Unavailable</h1></html>" }],
  ["a reset connection", { reset: true }],
  ["a body cut in its middle", { body: whole, closeAfter: 40 }],
  ["bytes that are no HTTP", { garbage: "\u0000\u0001 not HTTP at all\r\n\r\n" }],
  ["a body that is no JSON", { body: "certainly { not JSON" }],
  ["an empty body", { body: "" }],
  ["HTTP 200 with an error", { body: { error: { message: "provider down", code: 502 } } }],
  ["HTTP 200 without choices", { body: { id: "x", object: "chat.completion" } }],
  ["HTTP 200 with no choice", { body: { choices: [] } }]
]

it("goes through every error that passes and keeps one clean row a prompt", async () => {
  const place = new Workplace()
  place.dataset(passing.map(([what]) => what))
  const asked = new Map<string, number>()
  const server = await serve((request) => {
    const prompt = promptOf(request)
    const times = asked.get(prompt) ?? 0
    asked.set(prompt, times + 1)
    return times === 0 ? (passing.find(([what]) => what === prompt)?.[1] ?? final()) : final(`after ${prompt}`)
  })
  await place.complete(server, { num_workers: 20 })
  expect([...asked.values()]).toEqual(passing.map(() => 2))
  const rows = place.rows()
  expect(rows.map((row) => row.conversations.at(-1)?.value)).toEqual(
    passing.map(([what]) => `<think>\nlet me think\n</think>\nafter ${what}`)
  )
  // Retries are no answers.
  expect(rows.map((row) => row.api_calls)).toEqual(passing.map(() => 1))
  expect(place.text("failures.jsonl")).toBe("")
})

it("comes back no sooner than Retry-After says, in seconds, milliseconds or as a date", async () => {
  const place = new Workplace()
  const waits: Readonly<Record<string, () => Readonly<Record<string, string>>>> = {
    seconds: () => ({ "retry-after": "2" }),
    millis: () => ({ "retry-after-ms": "1800" }),
    // Dates have whole seconds: three ahead are at least two.
    date: () => ({ "retry-after": new Date(Date.now() + 3000).toUTCString() })
  }
  place.dataset(Object.keys(waits))
  const at = new Map<string, Array<number>>()
  const server = await serve((request) => {
    const prompt = promptOf(request)
    const times = [...(at.get(prompt) ?? []), request.at]
    at.set(prompt, times)
    return times.length === 1 ? ModelServer.error(429, "wait", waits[prompt]?.()) : final()
  })
  await place.complete(server)
  for (const [prompt, [first = 0, second = 0]] of at) {
    expect(second - first, prompt).toBeGreaterThanOrEqual(prompt === "millis" ? 1795 : 1995)
    expect(second - first, prompt).toBeLessThan(8000)
  }
})

it("does not ask again what is refused for good, records it with its status, and finishes the others", async () => {
  const place = new Workplace()
  const statuses = [400, 403, 413, 422]
  place.dataset([...statuses.map(String), "good one", "good two"])
  const server = await serve((request) => {
    const status = Number(promptOf(request))
    return Number.isNaN(status) ? final() : ModelServer.error(status, `no to ${status}\nand no`)
  })
  const ended = await place.run(server, {}, { BATCH_RUNNER_API_KEY: "some-key" })
  expect(ended.code).toBe(1)
  expect(server.requests.length).toBe(statuses.length + 2)
  const failures = place.failures().toSorted((a, b) => a.prompt_index - b.prompt_index)
  expect(failures.map(({ prompt_index }) => prompt_index)).toEqual(statuses.map((_, place) => place))
  for (const [place, failure] of failures.entries()) {
    expect(failure.message).toMatch(
      new RegExp(
        `^HTTP ${statuses[place]} from 127\\.0\\.0\\.1:\\d+(?: for /v1/chat/completions)?: no to ${statuses[place]} and no$`
      )
    )
    expect(failure).toMatchObject({
      error: "ModelError",
      retryable: false,
      timestamp: expect.stringMatching(/^\d{4}-.{14}$/)
    })
  }
  expect(place.rows().map((row) => row.prompt_index)).toEqual([4, 5])
  expect(place.json("statistics.json")).toMatchObject({ failed: 4 })
  expect(place.json("checkpoint.json")).toMatchObject({ completed_prompts: [[4, 5]] })
  expect(ended.stdout).toMatch(/run: 2 of 6 prompts done/)
  expect(ended.stdout).toMatch(/4 still to do.*: batch-runner .*--dataset_file=prompts\.jsonl .*--resume$/m)
  expect(ended.stderr).not.toMatch(/^\s+at /m)
})

it("gives up on what does not pass after a bounded number of tries, and says that nobody listens", {
  timeout: 120_000
}, async () => {
  const place = new Workplace()
  const lonely = new Workplace()
  lonely.dataset(["a"])
  const alone = lonely.run({ url: "http://127.0.0.1:9/v1" })
  place.dataset(["bad", "good"])
  const server = await serve((request) => (promptOf(request) === "bad" ? ModelServer.error(500, "down") : final()))
  expect((await place.run(server)).code).toBe(1)
  const tries = server.requests.filter((request) => promptOf(request) === "bad").length
  expect(tries).toBeGreaterThanOrEqual(3)
  expect(tries).toBeLessThanOrEqual(14)
  expect(place.failures()).toMatchObject([{ prompt_index: 0, retryable: true, api_calls: 0 }])
  expect(place.failures()[0]?.message).toContain(`(${tries} tries)`)
  const told = await alone
  expect(told.code).toBe(1)
  expect(told.stderr).toMatch(/^batch-runner: No answer from 127\.0\.0\.1:9: connection refused/m)
  expect(lonely.failures()).toEqual([])
})

it("lets a server that never answers cost a prompt its --timeout, and the other prompts nothing", async () => {
  const place = new Workplace()
  place.dataset(["hangs", "good", "fine"])
  const server = await serve((request) => (promptOf(request) === "hangs" ? { hang: true } : final()))
  const ended = await place.run(server, { timeout: 2 })
  expect(ended.code).toBe(1)
  expect(ended.took).toBeGreaterThan(2000)
  expect(ended.took).toBeLessThan(15_000)
  expect(place.failures()).toMatchObject([
    { prompt_index: 0, error: "SessionTimedOut", message: "not finished after 2 s (--timeout)", retryable: true }
  ])
  expect(place.rows().map((row) => row.prompt_index)).toEqual([1, 2])
  expect(server.inFlight.now).toBe(0)
})
