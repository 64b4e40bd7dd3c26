/** A run from its first request to its last file. */
import { expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import * as Rows from "../support/Rows.ts"
import { final, promptOf, runs, runsThenEnds, serve, turnOf } from "../support/Talk.ts"

const turnKeys = ["from", "value", "tool_calls", "tool_call_id", "name"]

it("leaves every file of the contract, with rows of the same keys in the same order", async () => {
  const place = new Workplace()
  place.dataset([{ prompt: "first", id: 7, tags: ["a", null] }, "second", "third"])
  const server = await serve((request) => {
    if (promptOf(request) === "second") return final("no tools needed")
    return turnOf(request) === 0 ? runs("echo hello", "exit 3") : final("the end")
  })
  const ended = await place.run(server, { batch_size: 2, num_workers: 1, distribution: "default" })
  expect(ended).toMatchObject({ code: 0, signal: null })
  expect(place.names()).toEqual(
    [
      "batch_0.jsonl",
      "batch_1.jsonl",
      "checkpoint.json",
      "README.md",
      "run.json",
      "statistics.json",
      "trajectories.jsonl"
    ].toSorted()
  )

  const rows = place.rows()
  expect(rows.map((row) => row.prompt_index)).toEqual([0, 1, 2])
  for (const row of rows) {
    expect(Object.keys(row)).toEqual(Rows.rowKeys)
    expect(Object.keys(row.tool_stats)).toEqual(Object.keys(rows[0]?.tool_stats ?? {}))
    expect(Object.keys(row.tool_error_counts)).toEqual(Object.keys(row.tool_stats))
    expect(Object.keys(row.metadata)).toEqual(Object.keys(rows[0]?.metadata ?? {}))
    for (const turn of row.conversations) expect(Object.keys(turn)).toEqual(turnKeys)
  }
  // Batch files hold the same lines, byte for byte, as nothing has moved.
  expect(place.text("trajectories.jsonl")).toBe(place.text("batch_0.jsonl") + place.text("batch_1.jsonl"))

  const [first] = rows
  expect(first?.conversations).toEqual([
    { from: "human", value: "first", tool_calls: [], tool_call_id: "", name: "" },
    {
      from: "gpt",
      value: "<think>\na command will tell\n</think>\n",
      tool_calls: [
        { id: "c0", type: "function", function: { name: "terminal", arguments: '{"command":"echo hello"}' } },
        { id: "c1", type: "function", function: { name: "terminal", arguments: '{"command":"exit 3"}' } }
      ],
      tool_call_id: "",
      name: ""
    },
    {
      from: "tool",
      value: '{"output":"hello\\n","exit_code":0,"error":""}',
      tool_calls: [],
      tool_call_id: "c0",
      name: "terminal"
    },
    {
      from: "tool",
      value: '{"output":"","exit_code":3,"error":""}',
      tool_calls: [],
      tool_call_id: "c1",
      name: "terminal"
    },
    { from: "gpt", value: "<think>\nlet me think\n</think>\nthe end", tool_calls: [], tool_call_id: "", name: "" }
  ])
  expect(first).toMatchObject({
    completed: true,
    partial: false,
    api_calls: 2,
    toolsets_used: expect.arrayContaining(["web", "terminal", "file", "moa"]),
    source: expect.any(String)
  })
  expect(first?.tool_stats.terminal).toEqual({ count: 2, success: 2, failure: 0 })
  expect(first?.tool_stats.browser_close).toEqual({ count: 0, success: 0, failure: 0 })
  expect(first?.metadata).toMatchObject({ batch_num: 0, model: "test-model", image: "", cwd: "", sample: 0 })
  expect(first?.metadata.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/)
  // What the model was sent is what the row says it was sent.
  const sent = server.requests[0]?.body
  expect(JSON.parse(first?.tools ?? "")).toEqual(sent?.tools)
  expect(first?.system).toBe(sent?.messages[0]?.content)
  expect(JSON.parse(first?.source ?? "")).toEqual({ id: 7, tags: ["a", null] })
  expect(rows[1]?.source).toBe("{}")
})

it("writes checkpoint, statistics, run record and card of what was done", async () => {
  const place = new Workplace()
  place.dataset(["a", "b", "c", "d", "e"])
  await place.complete(await serve(runsThenEnds("true")), { batch_size: 2, seed: 5 })
  expect(place.json("checkpoint.json")).toEqual({
    run_name: "run",
    completed_prompts: [[0, 4]],
    batch_stats: {
      0: { processed: 2, kept: 2, discarded: 0, failed: 0 },
      1: { processed: 2, kept: 2, discarded: 0, failed: 0 },
      2: { processed: 1, kept: 1, discarded: 0, failed: 0 }
    },
    last_updated: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/)
  })
  const statistics = place.json("statistics.json")
  expect(statistics).toMatchObject({
    run_name: "run",
    distribution: "terminal_only",
    total_prompts: 5,
    total_batches: 3,
    batch_size: 2,
    model: "test-model",
    reasoning_statistics: { total_assistant_turns: 10, turns_with_reasoning: 10, turns_without_reasoning: 0 },
    discarded_no_reasoning: 0,
    discarded_invalid_tools: 0,
    failed: 0,
    tokens: { prompt: 100, completion: 50, reasoning: 0, total: 150 }
  })
  expect(statistics).not.toHaveProperty("cost_usd")
  expect(statistics.tool_statistics).toMatchObject({
    terminal: { count: 5, success: 5, failure: 0, success_rate: 100, failure_rate: 0 },
    web_search: { count: 0, success: 0, failure: 0, success_rate: 0, failure_rate: 0 }
  })
  const { sessions } = place.json("run.json")
  expect(sessions).toMatchObject([{ version: expect.stringMatching(/^\d/), seed: 5, config: { batch_size: 2 } }])
  const card = place.text("README.md")
  expect(card).toMatch(/^---\n(?:.*\n)*?dataset_info:\n(?:.*\n)*?---\n/)
  expect(card).toContain("    path: trajectories.jsonl\n")
  // The order of the features is the order of the row's keys.
  const declared = [...card.matchAll(/^ {2}- name: "(\w+)"$/gm)].map((match) => match[1])
  expect(declared).toEqual(Rows.rowKeys)
})

it("puts the summary on standard output, everything else on standard error, and no colour into a pipe", async () => {
  const place = new Workplace()
  place.dataset(["a", "b"])
  const server = await serve(runsThenEnds("printf '\\033[31mred\\033[0m'"))
  for (const environment of [
    {},
    { NO_COLOR: "1" },
    { TERM: "dumb" },
    { TERM: "xterm-256color" },
    { FORCE_COLOR: "3" }
  ]) {
    const run_name = `run${JSON.stringify(environment).replace(/\W/g, "")}`
    const ended = await place.complete(server, { run_name, verbose: true }, environment)
    expect(ended.stdout).toMatch(new RegExp(`^${run_name}: 2 of 2 prompts done\n`))
    expect(ended.stdout).toContain(`data/${run_name}/trajectories.jsonl, 2 rows`)
    expect(ended.stdout).not.toContain("[B0:P")
    expect(ended.stderr).toContain("[B0:P0] ")
    expect(ended.stderr).toContain("[B0:P1] ")
    expect(ended.stdout + ended.stderr).not.toContain("\u001b")
  }
})

it("runs each prompt as often as asked, and counts bad lines without stumbling over them", async () => {
  const place = new Workplace()
  place.write(
    "prompts.jsonl",
    `\uFEFF${JSON.stringify({ prompt: "a" })}\n\nnot json\n[1]\n{"prompt": "  "}\n{"prompt": 4}\n${JSON.stringify({ prompt: "b" })}`
  )
  const server = await serve(() => final())
  const ended = await place.complete(server, { samples_per_prompt: 3, batch_size: 1, output_dir: "elsewhere/deep" })
  for (const line of [3, 4, 5, 6]) expect(ended.stderr).toMatch(new RegExp(`prompts\\.jsonl:${line}: skipped, `))
  expect(ended.stdout).toContain("4 of the data set skipped")
  const rows = (await import("node:fs")).readFileSync(place.path("elsewhere/deep/run/trajectories.jsonl"), "utf8")
  const samples = rows
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
  expect(samples.map((row) => [row.prompt_index, row.metadata.sample])).toEqual([
    [0, 0],
    [0, 1],
    [0, 2],
    [1, 0],
    [1, 1],
    [1, 2]
  ])
})

it("adds up what the endpoint says it cost", async () => {
  const place = new Workplace()
  place.dataset(["a", "b"])
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    cost: 0.0125,
    completion_tokens_details: { reasoning_tokens: 8 }
  }
  const ended = await place.run(await serve(() => ModelServer.answer({ content: "x", reasoning: "y", usage })))
  expect(place.json("statistics.json")).toMatchObject({
    cost_usd: 0.025,
    tokens: { prompt: 200, completion: 40, reasoning: 16, total: 240 }
  })
  expect(ended.stdout).toMatch(/cost +\$0\.0250\n/)
})
