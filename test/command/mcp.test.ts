/** The built command with `--mcp_config`: servers as toolsets of a run, their tools in its rows, their ends with its own. */
import { execFileSync } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { expectRefused, type Options, until, Workplace } from "../support/Command.ts"

const source = readFileSync(fileURLToPath(new URL("../support/mcp/server.mjs", import.meta.url)), "base64")

/** The server of the tests without a file: its manner, and a word by which its process is found. */
const server = (manner: string, word: string, more: object = {}) => ({
  command: "node",
  args: ["-e", `import("data:text/javascript;base64,${source}")`, word, manner],
  ...more
})

/** A place with prompts whose sessions call some tools, then answer. */
const placeOf = (prompts: ReadonlyArray<string>, ...calls: ReadonlyArray<string>) => {
  const place = new Workplace()
  place.dataset(prompts)
  script(place, ...calls)
  return place
}

const script = (place: Workplace, ...calls: ReadonlyArray<string>) =>
  place.write(
    "prompts.script.json",
    JSON.stringify({
      default: [
        ...calls.map((name) => ({ reasoning: "I need it.", tool_calls: [{ name, arguments: { a: 1 } }] })),
        { reasoning: "Done.", content: "done" }
      ]
    })
  )

const config = (place: Workplace, mcpServers: object) => place.write("mcp.json", JSON.stringify({ mcpServers }))

const distribution = (place: Workplace, ...names: ReadonlyArray<string>) =>
  place.write("mine.json", JSON.stringify({ toolsets: Object.fromEntries(names.map((name) => [name, 100])) }))

const given: Options = { model: "scripted", distribution: "mine.json", mcp_config: "mcp.json" }
const offline = { url: "http://127.0.0.1:9/v1" }

/** Processes whose command line holds a word. */
const processes = (word: string): number => {
  return execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(word) && !line.startsWith("ps ")).length
}

it("offers a server's tools to the sessions of a distribution that names it, and counts them in rows, statistics and card", async () => {
  const place = placeOf(["one", "two"], "mcp_mine_echo", "mcp_mine_environment", "mcp_mine_fail")
  config(place, { mine: server("plain", "w-run"), other: server("many", "w-other") })
  distribution(place, "terminal", "mine")
  const keys = { OPENROUTER_API_KEY: "sk-or-secret", BATCH_RUNNER_API_KEY: "sk-secret", OPENAI_API_KEY: "sk-secret" }
  const { stderr } = await place.complete(offline, given, keys)
  expect(stderr).not.toContain("outside")
  const rows = place.rows()
  expect(rows.map(({ toolsets_used }) => toolsets_used)).toEqual(Array(2).fill(["terminal", "mine"]))
  for (const row of rows) {
    expect(row.tool_stats.mcp_mine_echo).toEqual({ count: 1, success: 1, failure: 0 })
    expect(row.tool_stats.mcp_mine_counter).toEqual({ count: 0, success: 0, failure: 0 })
    expect(row.tool_error_counts.mcp_mine_fail).toBe(1)
    expect(JSON.parse(row.tools).map((tool: { function: { name: string } }) => tool.function.name)).toContain(
      "mcp_mine_echo"
    )
    const results = row.conversations.filter(({ from }) => from === "tool").map(({ value }) => JSON.parse(value))
    expect(results[0]).toEqual({ result: '{"a":1}' })
    expect(results[1].result).toContain("PATH=")
    expect(results[1].result).not.toMatch(/secret|API_KEY/)
  }
  expect(place.json("statistics.json")).toMatchObject({
    tool_statistics: { mcp_mine_echo: { count: 2, success: 2 }, mcp_mine_pid: { count: 0 } }
  })
  expect(place.text("README.md")).toContain('name: "mcp_mine_echo"')
  expect(place.text("README.md")).not.toContain("mcp_other")
  expect(processes("w-run")).toBe(0)
})

it("keeps one schema over sessions with other servers, and drops no row", async () => {
  const place = placeOf(["a"], "mcp_mine_echo", "mcp_mine_pid")
  config(place, { mine: server("plain", "w-one") })
  distribution(place, "terminal", "mine")
  await place.complete(offline, given)

  place.dataset(["a", "b"])
  script(place, "terminal")
  await place.complete(offline, { ...given, distribution: "terminal_only", mcp_config: undefined, resume: true })

  place.dataset(["a", "b", "c"])
  script(place, "mcp_mine_newer", "mcp_second_counter")
  config(place, { mine: server("versions", "w-two"), second: server("plain", "w-three") })
  distribution(place, "mine", "second")
  await place.complete(offline, { ...given, resume: true })

  // A look changes nothing and knows all of them.
  const dry = await place.run(offline, { ...given, resume: true, dry_run: true })
  expect(dry.stdout).toContain("3 done before")

  const rows = place.rows()
  expect(rows.map(({ conversations }) => conversations[0]?.value)).toEqual(["a", "b", "c"])
  const names = Object.keys(rows[0]?.tool_stats ?? {})
  for (const row of rows) {
    expect(Object.keys(row.tool_stats)).toEqual(names)
    expect(Object.keys(row.tool_error_counts)).toEqual(names)
  }
  expect(names).toEqual(expect.arrayContaining(["terminal", "mcp_mine_pid", "mcp_mine_newer", "mcp_second_counter"]))
  expect(rows.map(({ tool_stats }) => tool_stats.mcp_mine_pid?.count)).toEqual([1, 0, 0])
  expect(rows.map(({ tool_stats }) => tool_stats.mcp_mine_newer?.count)).toEqual([0, 0, 1])
  const statistics = place.json("statistics.json")
  expect(statistics).toMatchObject({ discarded_invalid_tools: 0 })
  expect(Object.keys(Object(statistics.tool_statistics))).toEqual(names)
  for (const name of names) expect(place.text("README.md")).toContain(`name: ${JSON.stringify(name)}`)
  const first = names.slice(0, names.indexOf("mcp_mine_newer"))
  expect(place.json("run.json")).toMatchObject({
    sessions: [{ tools: first }, { tools: first }, { tools: names }]
  })

  const python = process.env.DATASETS_PYTHON ?? ""
  if (python === "" && process.env.CI === undefined) return
  const load =
    'import json,sys\nfrom datasets import load_dataset\nrows=load_dataset(sys.argv[1],split="train")\nprint(json.dumps([list(rows.features["tool_stats"]),[row["tool_stats"]["mcp_mine_newer"]["count"] for row in rows]]))'
  const environment = { ...process.env, HF_HUB_OFFLINE: "1", HF_HOME: place.path("hf") }
  const [features, counts] = JSON.parse(
    execFileSync(python, ["-c", load, place.path("data", "run")], { encoding: "utf8", env: environment })
  )
  expect([...features].toSorted()).toEqual(names.toSorted())
  expect(counts).toEqual([0, 0, 1])
})

it("takes rows of a run whose record tells no tools", async () => {
  const place = placeOf(["a"], "terminal")
  await place.complete(offline, { model: "scripted" })
  const record = JSON.parse(place.text("run.json"))
  delete record.sessions[0].tools
  place.write("data/run/run.json", JSON.stringify(record))
  place.dataset(["a", "b"])
  await place.complete(offline, { model: "scripted", resume: true })
  expect(place.rows()).toHaveLength(2)
  expect(place.json("run.json")).toMatchObject({
    sessions: [{ tools: [] }, { tools: expect.arrayContaining(["todo"]) }]
  })
})

it.each([
  ["is gone", () => ""],
  ["is torn", (text: string) => text.slice(0, 100)],
  ["names a tool that can be none", (text: string) => text.replace('"tools": [', '"tools": ["no name", 5, ')],
  ["tells no tools", (text: string) => text.replace(/"tools": \[[^\]]*\]/, '"tools": 7')]
])("keeps the rows of a server that is gone also where run.json %s", async (_, edit) => {
  const place = placeOf(["a"])
  distribution(place, "terminal", "mine")
  config(place, { mine: server("plain", "w-lost") })
  script(place, "mcp_mine_pid")
  await place.complete(offline, given)
  const names = Object.keys(place.rows()[0]?.tool_stats ?? {})
  place.write("data/run/run.json", edit(place.text("run.json")))
  if (place.text("run.json") === "") rmSync(place.path("data", "run", "run.json"))
  place.dataset(["a", "b"])
  distribution(place, "terminal")
  script(place, "terminal")
  const resumed = { model: given.model, distribution: given.distribution, resume: true }
  const dry = await place.complete(offline, { ...resumed, dry_run: true })
  expect(dry.stdout).toContain("1 done before")
  await place.complete(offline, resumed)
  expect(place.rows().map(({ tool_stats }) => tool_stats.mcp_mine_pid?.count)).toEqual([1, 0])
  for (const row of place.rows()) expect(Object.keys(row.tool_stats)).toEqual(names)
})

it("refuses a file that does not fit in one line, and tells what cannot work", async () => {
  const place = placeOf(["a"])
  distribution(place, "terminal", "mine", "broken")
  place.write("mcp.json", "{")
  expectRefused(place, await place.run(offline, given), /--mcp_config: mcp\.json is not JSON; allowed: \{"mcpServers"/)
  config(place, { web: { command: "x" } })
  expectRefused(
    place,
    await place.run(offline, given),
    /--mcp_config: .*mcpServers\.web: there is a toolset of that name/
  )
  config(place, { mine: server("plain", "w-a") })
  expectRefused(
    place,
    await place.run(offline, given),
    /there is no toolset "broken"; there are .*, mine, and the servers of --mcp_config\n/
  )
  const broken = server("broken", "w-b", { env: { SERVER_TOKEN: `$${"{MINE}"}` } })
  config(place, { mine: server("plain", "w-a"), broken })
  const environment = { MINE: "very-secret" }
  const strict = await place.run(offline, { ...given, strict_toolsets: true }, environment)
  expectRefused(
    place,
    strict,
    /--strict_toolsets: mine has tools that cannot work here: broken \(it ended with exit code 3/
  )
  const dry = await place.run(offline, { ...given, dry_run: true }, environment)
  expect(dry.stdout).toMatch(/toolsets +mine, of 1 session to do: terminal 1 \(100 %\), mine 1 \(100 %\)/)
  expect(dry.stdout).toContain("cannot work here: broken (it ended with exit code 3: cannot start: the key [secret]")
  const ended = await place.complete(offline, given, environment)
  expect(ended.stderr).toContain("left out of sampling, as they cannot work here: broken (it ended")
  expect(`${dry.stdout}${dry.stderr}${ended.stderr}${place.text("run.json")}`).not.toContain("very-secret")
})

it("says how servers are used that no distribution names, and starts none", async () => {
  const place = placeOf(["a"])
  config(place, { mine: { command: "touch", args: [place.path("started")] } })
  const { stderr } = await place.complete(offline, { ...given, distribution: "terminal_only" })
  expect(stderr).toMatch(
    /--mcp_config: no session uses mine, as the distribution terminal_only does not name them; give --distribution a file such as \{"toolsets": \{"terminal": 100, "mine": 100\}\}/
  )
  expect(execFileSync("ls", [place.root], { encoding: "utf8" })).not.toContain("started")
})

for (const [signal, sandbox] of [
  ["SIGTERM", undefined],
  ["SIGTERM", false],
  ["SIGKILL", undefined],
  ["SIGKILL", false]
] as const) {
  it(`leaves no server behind after ${signal}, ${sandbox === false ? "outside" : "in the sandbox"}, stubborn as it may be`, async () => {
    const place = placeOf(["a", "b"], "mcp_mine_pid", "mcp_mine_pid", "terminal")
    const word = `w-${signal}-${sandbox}`
    place.write(
      "prompts.script.json",
      JSON.stringify({
        default: [
          { reasoning: "r", tool_calls: [{ name: "mcp_mine_pid", arguments: {} }] },
          { reasoning: "r", tool_calls: [{ name: "terminal", arguments: { command: "sleep 100" } }] }
        ]
      })
    )
    config(place, { mine: server("stubborn", word, { sandbox }) })
    distribution(place, "terminal", "mine")
    const running = place.begin(offline, given)
    await until(() => execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("sleep 100\n").length > 2)
    expect(processes(word)).toBeGreaterThan(1)
    running.kill(signal)
    await running.ended
    if (signal === "SIGTERM") expect(processes(word)).toBe(0)
    else await until(() => processes(word) === 0, 10_000)
  })
}
