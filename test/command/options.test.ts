/** Options that steer what happens while prompts run: limits and reach of their commands, and what is told of them. */
import { expect, it } from "vitest"
import { sandboxed, Workplace } from "../support/Command.ts"
import { final, runsThenEnds, serve } from "../support/Talk.ts"

const resultsOf = (place: Workplace) =>
  place.rows()[0]?.conversations.flatMap(({ from, value }) => (from === "tool" ? [JSON.parse(value)] : []))

it("ends a command after --command_timeout seconds, and the session goes on", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(runsThenEnds("echo begun; sleep 100", "echo next"))
  await place.complete(server, { command_timeout: 1 })
  expect(resultsOf(place)).toMatchObject([
    { output: "begun\n", exit_code: 124 },
    { output: "next\n", exit_code: 0 }
  ])
  expect(place.rows()[0]).toMatchObject({ completed: true, tool_stats: { terminal: { success: 1, failure: 1 } } })
})

it("ends a session whose tools take longer than --timeout, and keeps what was said until then", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(runsThenEnds("echo first", "sleep 100"))
  const running = place.begin(server, { timeout: 2 })
  const ended = await running.ended
  expect(ended.code).toBe(1)
  expect(ended.took).toBeGreaterThan(2000)
  expect(ended.took).toBeLessThan(15_000)
  const [failure, ...others] = place.failures()
  expect(others).toEqual([])
  expect(failure).toMatchObject({ kind: "session_timed_out", api_calls: 1, usage: { total: 15 } })
  expect(failure?.conversations.map(({ from }) => from)).toEqual(["human", "gpt", "tool"])
  expect(failure?.conversations[2]?.value).toContain("first")
  expect(sandboxed(running.pid)).toEqual([])
})

it("gives commands the machine's network, and with --network=off none of it", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  let port = ""
  const server = await serve((request, at) =>
    runsThenEnds(`(: > /dev/tcp/127.0.0.1/${port}) 2>&1 && echo reached`)(request, at)
  )
  port = new URL(server.url).port
  await place.complete(server)
  expect(resultsOf(place)).toMatchObject([{ output: "reached\n", exit_code: 0 }])
  await place.complete(server, { run_name: "off", network: "off" })
  const [row] = place.rows("trajectories.jsonl", "off")
  expect(JSON.parse(row?.conversations[2]?.value ?? "").output).toContain("Connection refused")
})

it("tells each call and answer with its place in the log when --verbose, cut to --log_prefix_chars", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(runsThenEnds(`echo ${"long ".repeat(40)}`))
  const log = async (run_name: string, options: object) =>
    (await place.complete(server, { run_name, ...options })).stderr.split("\n").filter((line) => line.startsWith("["))
  expect(await log("quiet", {})).toEqual(["[B0:P0] kept: 2 answers, 1 call: done"])
  const lines = await log("verbose", { verbose: true, log_prefix_chars: 20 })
  expect(lines).toEqual([
    expect.stringMatching(/^\[B0:P0\] answer 1: .*\[calls terminal\]$/),
    expect.stringMatching(/^\[B0:P0\] call terminal \{"command":"echo lon…$/),
    expect.stringMatching(/^\[B0:P0\] terminal gave: \{"output":"long long…$/),
    "[B0:P0] answer 2: done",
    "[B0:P0] kept: 2 answers, 1 call: done"
  ])
})

it("finds the folder of its runs where --output_dir says", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  await place.complete(await serve(() => final()), { output_dir: "else where/runs" })
  expect(place.rows("../../else where/runs/run/trajectories.jsonl").length).toBe(1)
})
