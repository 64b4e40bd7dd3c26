/** What a model can answer, and what its row says of it. */
import { describe, expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

const calls = (name: string, args: string | object): ModelServer.Reaction =>
  ModelServer.answer({ reasoning: "hm", toolCalls: [{ name, arguments: args }] })

describe("an empty answer", () => {
  it("is asked for again, three times at most, and is never saved", async () => {
    const place = new Workplace()
    place.dataset(["always", "once"])
    const asked = new Map<string, number>()
    const server = await serve((request) => {
      const prompt = promptOf(request)
      asked.set(prompt, (asked.get(prompt) ?? 0) + 1)
      const empty = prompt === "always" || asked.get(prompt) === 1
      return empty ? ModelServer.answer({ content: " \n", reasoning: "nothing to say" }) : final()
    })
    expect((await place.run(server)).code).toBe(1)
    expect(asked).toEqual(
      new Map([
        ["always", 4],
        ["once", 2]
      ])
    )
    expect(place.failures()).toMatchObject([{ prompt_index: 0, error: "EmptyAnswer", retryable: true, api_calls: 4 }])
    expect(place.rows()).toMatchObject([{ prompt_index: 1, completed: true, api_calls: 2 }])
    expect(place.rows()[0]?.conversations.length).toBe(2)
  })
})

it("saves an answer cut by its length as partial", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => ModelServer.answer({ content: "so far so", reasoning: "x", finishReason: "length" }))
  await place.complete(server)
  expect(place.rows()).toMatchObject([{ completed: false, partial: true, api_calls: 1 }])
})

it("answers bad calls with what is wrong, and lets the model correct itself", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const bad = [
    calls("nonsuch", {}),
    calls("terminal", '{"command": "unfinished'),
    runs("echo good"),
    calls("terminal", { command: 5, timeout: "soon" }),
    calls("read_file", {}),
    final()
  ]
  const server = await serve((request) => bad[turnOf(request)] ?? final())
  await place.complete(server)
  const [row] = place.batchRows()
  expect(row).toMatchObject({ completed: true, partial: false, api_calls: 6 })
  const results = row?.conversations.filter(({ from }) => from === "tool").map(({ value }) => JSON.parse(value))
  expect(results?.[0].error).toMatch(/no tool "nonsuch".*terminal, process, read_file, write_file, patch, search_files/)
  expect(results?.[1].error).toMatch(/JSON/)
  expect(results?.[2]).toEqual({ output: "good\n", exit_code: 0, error: "" })
  expect(results?.[3].error).toMatch(/command/)
  expect(results?.[4].error).toMatch(/path/)
  expect(row?.tool_stats.terminal).toEqual({ count: 3, success: 1, failure: 2 })
  expect(row?.tool_error_counts).toMatchObject({ terminal: 2, read_file: 1 })
})

it("cuts a session after three answers in a row without one valid call", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve((request) => (turnOf(request) === 0 ? runs("true") : calls("terminal", "][")))
  await place.complete(server)
  expect(place.rows()).toMatchObject([{ completed: false, partial: true, api_calls: 4 }])
  expect(server.requests.length).toBe(4)
})

it("drops rows with an invented tool at the merge, counted, and does not run them again", async () => {
  const place = new Workplace()
  place.dataset(["invents", "behaves"])
  const server = await serve((request) =>
    promptOf(request) === "invents" && turnOf(request) === 0 ? calls("make_coffee", { sugar: 2 }) : final()
  )
  const ended = await place.complete(server)
  expect(place.rows().map((row) => row.prompt_index)).toEqual([1])
  const invented = place.batchRows().find((row) => row.prompt_index === 0)
  expect(invented?.tool_stats.make_coffee).toEqual({ count: 1, success: 0, failure: 1 })
  expect(place.json("statistics.json")).toMatchObject({ discarded_invalid_tools: 1, discarded_no_reasoning: 0 })
  expect(ended.stdout).toContain("1 with invented tools")
  expect(ended.stderr).toMatch(/^\[B0:P0\] left out of trajectories\.jsonl, no such tool as make_coffee: /m)
  const before = server.requests.length
  await place.complete(server, { resume: true })
  expect(server.requests.length).toBe(before)
  expect(place.rows().map((row) => row.prompt_index)).toEqual([1])
})

it("saves a session that ran out of turns with completed false, and tells the model which turn is its last", async () => {
  const place = new Workplace()
  place.dataset(["never ends", "ends in time"])
  const server = await serve((request) =>
    promptOf(request) === "ends in time" && turnOf(request) === 2 ? final() : runs("true")
  )
  await place.complete(server, { max_turns: 3 })
  expect(place.rows()).toMatchObject([
    { completed: false, partial: false, api_calls: 3 },
    { completed: true, partial: false, api_calls: 3 }
  ])
  const last = server.requests.filter(({ text }) => text.includes("This is your last turn"))
  expect(last.map(turnOf)).toEqual([2, 2])
  expect(place.text("trajectories.jsonl")).not.toContain("This is your last turn")
})

const details = [
  { type: "reasoning.text", text: "five", signature: "sig==", id: "r1", format: "anthropic-claude-v1", index: 0 },
  { type: "reasoning.encrypted", data: "AAAA", index: 1 }
]
const forms: Readonly<Record<string, ModelServer.AnswerSpec>> = {
  reasoning: { reasoning: "one" },
  reasoning_content: { message: { reasoning_content: "two" } },
  think: { content: "<think>three</think>\n" },
  scratchpad: { content: "<REASONING_SCRATCHPAD>four</REASONING_SCRATCHPAD>" },
  reasoning_details: { message: { reasoning: "five", reasoning_details: details } }
}

it("reads reasoning in all five forms, once each, and hands it back as it was given", async () => {
  const place = new Workplace()
  place.dataset(Object.keys(forms))
  const server = await serve((request) =>
    turnOf(request) === 0
      ? ModelServer.answer({
          toolCalls: [{ id: "t", name: "terminal", arguments: { command: "true" } }],
          ...forms[promptOf(request)]
        })
      : ModelServer.answer({ content: "end" })
  )
  await place.complete(server)
  const rows = place.rows()
  expect(rows.map((row) => row.conversations[1]?.value)).toEqual(
    ["one", "two", "three", "four", "five"].map((text) => `<think>\n${text}\n</think>\n`)
  )
  const echoed = (form: string) =>
    server.requests.find((request) => promptOf(request) === form && turnOf(request) === 1)?.body.messages[2]
  expect(echoed("reasoning")).toMatchObject({ role: "assistant", reasoning: "one" })
  expect(echoed("reasoning_content")).toMatchObject({ reasoning_content: "two" })
  expect(echoed("think")?.content).toBe("<think>three</think>\n")
  expect(echoed("scratchpad")?.content).toBe("<REASONING_SCRATCHPAD>four</REASONING_SCRATCHPAD>")
  expect(echoed("reasoning_details")?.reasoning_details).toEqual(details)
})

describe("the reasoning filter", () => {
  const plain = () => ModelServer.answer({ content: "no thought" })

  it("sets rows without reasoning aside, warns with the option that changes it, and never pays for them again", async () => {
    const place = new Workplace()
    place.dataset(["a", "b", "c", "d"])
    const server = await serve(plain)
    const ended = await place.complete(server)
    expect(ended.stderr).toMatch(
      /^warning: all 2 sessions so far were discarded.*--reasoning_filter=off.*--reasoning_effort/m
    )
    expect(place.text("trajectories.jsonl")).toBe("")
    expect(place.batchNames()).toEqual([])
    const discarded = lines(place.text("discarded.jsonl"))
    expect(discarded.length).toBe(4)
    for (const row of discarded) {
      expect(row).toMatchObject({ completed: true, reason: "no_reasoning" })
      expect(Object.keys(row).at(-1)).toBe("reason")
    }
    expect(place.json("statistics.json")).toMatchObject({ discarded_no_reasoning: 4 })
    await place.complete(server, { resume: true })
    expect(server.requests.length).toBe(4)
    expect(lines(place.text("discarded.jsonl")).length).toBe(4)
  })

  it.for([{ reasoning_disabled: true }, { reasoning_effort: "none" }, { reasoning_filter: "off" }])(
    "is off with %j, and says so",
    async (options) => {
      const place = new Workplace()
      place.dataset(["a", "b", "c", "d"])
      const ended = await place.complete(await serve(plain), options)
      expect(ended.stderr).toContain("the reasoning filter is off")
      expect(ended.stderr).not.toContain("discarded")
      expect(place.rows().map((row) => row.conversations[1]?.value)).toEqual(Array(4).fill("no thought"))
    }
  )
})

const lines = (text: string): ReadonlyArray<object> =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
