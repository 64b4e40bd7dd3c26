/** `--events`: one line for each happening, in order, whole, without a word of the conversation, and never at the run's cost. */
import { execFileSync } from "node:child_process"
import { linkSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { expectRefused, until, Workplace } from "../support/Command.ts"
import { ended } from "../support/FireRecord.ts"
import * as Fire from "../support/FireRun.ts"
import * as FireServer from "../support/FireServer.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { final, promptOf, runs, runsThenEnds, serve, turnOf } from "../support/Talk.ts"

type Line = Readonly<Record<string, unknown>>

const read = (text: string): ReadonlyArray<Line> => {
  expect(text.endsWith("\n")).toBe(true)
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line))
}

const eventsOf = (place: Workplace, name = "events.jsonl") => read(readFileSync(place.path(name), "utf8"))

const ofPrompt = (lines: ReadonlyArray<Line>, place: number) =>
  lines.filter(({ prompt_index }) => prompt_index === place)

const named = (lines: ReadonlyArray<Line>, name: string) => lines.filter(({ event }) => event === name)

const many = (count: number) => Array.from({ length: count }, (_, n) => `prompt ${n}`)

const warnings = (stderr: string) => stderr.split("\n").filter((line) => /warning: --events/.test(line))

/** A named pipe of the place. */
const pipe = (place: Workplace): string => {
  execFileSync("mkfifo", [place.path("pipe")])
  return "pipe"
}

describe("--events", () => {
  it("writes the turns and tool calls of each prompt in their order, with the time first", async () => {
    const place = new Workplace()
    place.dataset(many(6))
    const server = await serve(runsThenEnds("echo one", "exit 3"))
    await place.complete(server, { events: "deep/er/events.jsonl", num_workers: 3 })
    const lines = eventsOf(place, "deep/er/events.jsonl")
    for (const [n] of many(6).entries()) {
      const mine = ofPrompt(lines, n).filter(({ event }) => event === "turn" || event === "tool")
      expect(mine.map(({ event, turn, tool }) => [event, turn ?? tool])).toEqual([
        ["turn", 0],
        ["tool", "terminal"],
        ["tool", "terminal"],
        ["turn", 1]
      ])
      expect(mine[0]).toEqual({
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        event: "turn",
        prompt_index: n,
        sample: 0,
        turn: 0,
        finish_reason: "tool_calls",
        tool_calls: 2,
        prompt_tokens: 10,
        completion_tokens: 5,
        cost_usd: 0,
        took: expect.any(Number)
      })
      expect(mine[1]).toMatchObject({ sample: 0, ok: true, took: expect.any(Number) })
    }
    expect(lines.every((line) => Object.keys(line)[0] === "at")).toBe(true)
    const times = lines.map(({ at }) => String(at))
    expect(times).toEqual(times.toSorted())
  })
  it("tells of a run and of each prompt from begin to end, of each retry and of each change of the throttle", async () => {
    const prompts = ["refused", ...Fire.named(40)]
    const place = Fire.prepare(prompts)
    const server = await FireServer.serve({
      ...{ latency: 60, capacity: 4, turns: 2 },
      react: ({ prompt }) =>
        prompt === "refused" ? { kind: "status", status: 400, error: { message: "no" } } : undefined
    })
    const run = await place.run(server, { ...Fire.cheap, num_workers: 16, events: "events.jsonl" })
    expect(run.code, run.stderr).toBe(1)
    const lines = eventsOf(place)
    expect(lines[0]).toMatchObject({ event: "run_started", run_name: "run", prompts: 41, to_do: 41 })
    expect(lines.at(-1)).toMatchObject({ event: "run_done", done: 40, to_do: 1, halted: "", took: expect.any(Number) })
    for (const [at] of prompts.entries()) {
      const mine = ofPrompt(lines, at)
      const whose = { prompt_index: at, sample: 0, batch_num: 0 }
      expect(mine[0]).toMatchObject({ event: "prompt_started", ...whose, attempt: 1 })
      const came = at === 0 ? ["failed", "bad_request", 0, 0] : ["kept", "", 2, 300]
      const [outcome, kind, api_calls, tokens] = came
      expect(mine.at(-1)).toMatchObject({ event: "prompt_done", ...whose, outcome, kind, api_calls, tokens })
      expect(mine.filter(({ event }) => /^prompt_/.test(String(event))).length).toBe(2)
    }
    const refused = ended(server.calls, "busy").length
    expect(refused).toBeGreaterThan(0)
    const retries = named(lines, "retry")
    expect(retries.length).toBe(refused)
    for (const retry of retries) expect(retry).toMatchObject({ kind: "rate_limited", wait: expect.any(Number) })
    expect(Math.min(...retries.map(({ next_try }) => Number(next_try)))).toBe(2)
    const changes = named(lines, "throttle")
    expect(changes[0]).toMatchObject({ before: 16, why: "refused" })
    for (const { before, limit, why } of changes) {
      expect(why).toBe(Number(limit) < Number(before) ? "refused" : "answered")
    }
    // The endpoint as it is when there is no more to spend.
    const budget = { ...Fire.cheap, num_workers: 2, events: "budget.jsonl", run_name: "budget", max_total_tokens: 900 }
    expect((await place.run(server, budget)).code).toBe(1)
    const last = eventsOf(place, "budget.jsonl")
    expect(named(last, "budget_reached").length).toBe(1)
    expect(last.at(-1)).toMatchObject({ event: "run_done", halted: "budget_reached" })
  })
  it("holds nothing of prompts, answers, tools or keys, not even a name that the model made up", async () => {
    const place = new Workplace()
    place.dataset(["SECRET prompt"])
    const server = await serve((request) =>
      turnOf(request) === 0
        ? ModelServer.answer({
            content: "SECRET answer",
            reasoning: "SECRET thought",
            toolCalls: [
              { id: "SECRET1", name: "SECRET_tool", arguments: { x: "SECRET" } },
              { id: "c2", name: "terminal", arguments: { command: "echo SECRET" } }
            ]
          })
        : final("SECRET end")
    )
    await place.complete(server, { events: "events.jsonl" }, { BATCH_RUNNER_API_KEY: "SECRET-key" })
    const lines = eventsOf(place)
    expect(named(lines, "tool").map(({ tool, ok }) => [tool, ok])).toEqual([
      ["unknown", false],
      ["terminal", true]
    ])
    expect(JSON.stringify(lines)).not.toContain("SECRET")
  })
  it("goes on in a file that is there, and gives a torn last line its end", async () => {
    const place = new Workplace()
    place.dataset(many(1))
    place.write("events.jsonl", '{"event":"old"}\n{"event":"to')
    const server = await serve(() => final())
    await place.complete(server, { events: "events.jsonl" })
    const lines = readFileSync(place.path("events.jsonl"), "utf8").split("\n")
    expect(lines.slice(0, 2)).toEqual(['{"event":"old"}', '{"event":"to'])
    expect(lines.slice(2, -1).map((line) => JSON.parse(line).event)).toContain("turn")
    expect(lines.at(-1)).toBe("")
  })
  it("has whole lines, the last ones too, after a signal and after a failed run", async () => {
    const place = new Workplace()
    place.dataset(many(20))
    const server = await serve((request) =>
      promptOf(request) === "prompt 7" ? { hang: true } : runsThenEnds("true")(request, 0)
    )
    const running = place.begin(server, { events: "events.jsonl", num_workers: 2, max_turns: 3 })
    await until(() => place.saved().length >= 12)
    running.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    const lines = eventsOf(place)
    for (const row of place.rows()) {
      const mine = named(ofPrompt(lines, Number(row.prompt_index)), "turn")
      expect(mine.length).toBe(2)
    }
    const refusing = await serve((_, n) => (n < 3 ? final() : ModelServer.error(401, "no")))
    const failed = await place.run(refusing, { run_name: "other", events: "others.jsonl", num_workers: 1 })
    expect(failed.code).toBe(1)
    expect(named(eventsOf(place, "others.jsonl"), "turn").length).toBe(3)
  })
  it("says once that a full disk takes no more, and the run goes on", async () => {
    const place = new Workplace()
    place.dataset(many(30))
    const server = await serve(() => ({ ...final(), delay: 20 }))
    const { stderr } = await place.complete(server, { events: "/dev/full" })
    expect(warnings(stderr)).toHaveLength(1)
    expect(stderr).toMatch(/warning: --events: \/dev\/full cannot be written \(ENOSPC\)/)
    expect(stderr).toMatch(/--events: \/dev\/full lacks \d{2,} lines/)
    expect(place.rows()).toHaveLength(30)
  })
  it("goes on in a new file, and says so once, when its own was moved away", async () => {
    const place = new Workplace()
    place.dataset(many(12))
    const server = await serve((request) => {
      if (promptOf(request) === "prompt 4") {
        execFileSync("mv", [place.path("logs"), place.path("old")])
      }
      if (promptOf(request) === "prompt 8") execFileSync("mkdir", ["-p", place.path("logs")])
      return { ...final(), delay: 60 }
    })
    const { stderr } = await place.complete(server, { events: "logs/events.jsonl", num_workers: 1 })
    expect(warnings(stderr)).toHaveLength(1)
    expect(named(eventsOf(place, "old/events.jsonl"), "turn").length).toBeGreaterThan(2)
    expect(named(eventsOf(place, "logs/events.jsonl"), "turn").at(-1)).toMatchObject({ prompt_index: 11 })
  })
  it("reaches the reader of a pipe that comes late, in whole lines", async () => {
    const place = new Workplace()
    place.dataset(many(10))
    const server = await serve(runsThenEnds("true"))
    const events = pipe(place)
    const running = place.begin(server, { events, num_workers: 2 })
    await until(() => place.saved().length >= 3)
    const reader = place.shell("cat pipe")
    expect((await running.ended).code).toBe(0)
    const { stdout } = await reader.ended
    expect(named(read(stdout), "turn")).toHaveLength(20)
  })
  it("neither hangs nor fails for a pipe without a reader, and counts what it lacks", async () => {
    const place = new Workplace()
    place.dataset(many(4))
    const server = await serve(() => final())
    const { stderr, took } = await place.complete(server, { events: pipe(place) })
    expect(took).toBeLessThan(10_000)
    expect(warnings(stderr)).toHaveLength(1)
    expect(stderr).toMatch(/--events: pipe lacks \d+ lines/)
  })
  it("does not wait for a reader that stops reading", async () => {
    const place = new Workplace()
    place.dataset(many(450))
    const server = await serve(() => final())
    const events = pipe(place)
    const reader = place.shell("exec 3<pipe; read -r line <&3; sleep 60")
    const { stderr, took } = await place.complete(server, { events, num_workers: 8, batch_size: 450 })
    reader.kill("SIGKILL")
    expect(took).toBeLessThan(45_000)
    expect(warnings(stderr)).toHaveLength(1)
  })
  it("writes to standard output beside the summary, be it a pipe, a socket or a file", async () => {
    const place = new Workplace()
    place.dataset(many(2))
    const server = await serve(() => final())
    const socket = await place.complete(server, { events: "/dev/stdout", run_name: "socket" })
    const line = `$BATCH_RUNNER ${place.argv(server, { events: "/dev/stdout", run_name: "piped" }).join(" ")}`
    const piped = await place.shell(`${line} | cat`).ended
    const filed = `$BATCH_RUNNER ${place.argv(server, { events: "/dev/stdout", run_name: "filed" }).join(" ")}`
    await place.shell(`${filed} > out.txt`).ended
    for (const text of [socket.stdout, piped.stdout, readFileSync(place.path("out.txt"), "utf8")]) {
      const lines = text.split("\n").filter((each) => each.startsWith('{"at"'))
      expect(
        named(
          lines.map((each) => JSON.parse(each)),
          "turn"
        )
      ).toHaveLength(2)
      expect(text).toMatch(/2 of 2 prompts done/)
    }
  })
  it("is refused before anything starts where no line can go", async () => {
    const server = await serve(() => final())
    const cases: ReadonlyArray<readonly [string, RegExp]> = [
      ["taken/events.jsonl", /--events: taken\/events\.jsonl cannot be written/],
      [".", /--events: \. cannot be written: it is a folder/],
      ["/proc/nothing/here", /--events: \/proc\/nothing\/here cannot be written/],
      ["prompts.jsonl", /--events: prompts\.jsonl is the data set/],
      ["linked.jsonl", /--events: linked\.jsonl is the data set/],
      ["soft.jsonl", /--events: soft\.jsonl is the data set/],
      ["data/run/batch_0.jsonl", /--events: \S+ is one of the files that the run run writes/],
      ["data/run/../run/trajectories.jsonl", /--events: \S+ is one of the files that the run run writes/],
      ["data/run/.lock", /--events: \S+ is one of the files that the run run writes/]
    ]
    for (const [events, says] of cases) {
      const place = new Workplace()
      place.dataset(many(1))
      writeFileSync(place.path("taken"), "")
      linkSync(place.path("prompts.jsonl"), place.path("linked.jsonl"))
      symlinkSync(place.path("prompts.jsonl"), place.path("soft.jsonl"))
      expectRefused(place, await place.run(server, { events }), says)
      expect(readFileSync(place.path("prompts.jsonl"), "utf8")).toBe('{"prompt":"prompt 0"}\n')
    }
    expect(server.requests).toEqual([])
  })
  it("may lie in the run folder under a name of its own", async () => {
    const place = new Workplace()
    place.dataset(many(2))
    const server = await serve((request) => (turnOf(request) === 0 ? runs("true") : final()))
    await place.complete(server, { events: "data/run/events.jsonl" })
    expect(named(eventsOf(place, "data/run/events.jsonl"), "turn")).toHaveLength(4)
    expect(place.rows()).toHaveLength(2)
  })
})
