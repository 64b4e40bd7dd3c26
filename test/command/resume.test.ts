/** Going on with a run: what is done stays, what is not is run, whatever became of the data set and the options. */
import { appendFileSync, truncateSync } from "node:fs"
import { expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { final, promptOf, serve } from "../support/Talk.ts"

const prompts = (requests: ReadonlyArray<ModelServer.Recorded>): ReadonlyArray<string> =>
  requests.map(promptOf).toSorted()

it("matches by content, counted: only what is new, added once more or failed is run", async () => {
  const place = new Workplace()
  place.dataset(["A", "B", { prompt: "B", cwd: "/tmp" }, "B", "C", "D"])
  let broken = true
  const server = await serve((request) =>
    promptOf(request) === "D" && broken ? ModelServer.error(400, "not today") : final(`of ${promptOf(request)}`)
  )
  expect((await place.run(server, { batch_size: 2, num_workers: 1 })).code).toBe(1)
  expect(place.json("checkpoint.json")).toMatchObject({ completed_prompts: [[0, 4]] })
  const old = place.batchNames().map((name) => [name, place.text(name)])
  const before = server.requests.length
  broken = false

  place.dataset(["new", "C", "B", "B", "B", "D", { prompt: "B", cwd: "/tmp" }, { prompt: "C", cwd: "/tmp" }])
  const ended = await place.complete(server, { batch_size: 2, num_workers: 1, resume: true })
  expect(prompts(server.requests.slice(before))).toEqual(["B", "C", "D", "new"])
  expect(ended.stderr).toContain("8 prompts: 4 of 8 done before, 4 to do")

  const rows = place.rows()
  expect(rows.map((row) => [row.prompt_index, row.conversations[0]?.value, row.metadata.cwd])).toEqual([
    [0, "new", ""],
    [1, "C", ""],
    [2, "B", ""],
    [3, "B", ""],
    [4, "B", ""],
    [5, "D", ""],
    [6, "B", "/tmp"],
    [7, "C", "/tmp"],
    [-1, "A", ""]
  ])
  expect(ended.stdout).toContain("1 of them for prompts that the data set no longer has")
  // Old files are as they were; the new session has numbers of its own, also where a batch left no file.
  for (const [name, text] of old) expect(place.text(name ?? "")).toBe(text)
  const fresh = place.batchNames().filter((name) => !old.some(([each]) => each === name))
  expect(fresh).toEqual(["batch_3.jsonl", "batch_4.jsonl"])
  expect(place.json("checkpoint.json")).toMatchObject({ completed_prompts: [[0, 7]] })
  expect(place.json("statistics.json")).toMatchObject({ total_prompts: 8, failed: 0 })
  expect(place.json("run.json").sessions).toMatchObject([{}, {}])
})

it("calls no model for a finished run, and leaves the same files", async () => {
  const place = new Workplace()
  place.dataset(["a", "b", "a", "c"])
  const server = await serve((request) =>
    promptOf(request) === "c" ? ModelServer.answer({ content: "no thought" }) : final()
  )
  await place.complete(server)
  const before = new Map(place.names().map((name) => [name, place.text(name)]))
  for (let round = 0; round < 2; round++) {
    const ended = await place.complete(server, { resume: true })
    expect(ended.stdout).toContain("4 of 4 prompts done")
  }
  expect(server.requests.length).toBe(4)
  expect(place.names()).toEqual([...before.keys()])
  for (const name of ["trajectories.jsonl", "batch_0.jsonl", "discarded.jsonl", "README.md"]) {
    expect(place.text(name)).toBe(before.get(name))
  }
  const figures = (text: string) => ({ ...JSON.parse(text), completed_at: "", duration_seconds: 0, last_updated: "" })
  for (const name of ["statistics.json", "checkpoint.json"]) {
    expect(figures(place.text(name))).toEqual(figures(before.get(name) ?? ""))
  }
})

it("names in one line the changed options that alter the data", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => final())
  await place.run(server)
  const other = await place.run(server, {
    resume: true,
    model: "other-model",
    seed: 3,
    distribution: "default",
    reasoning_effort: "low",
    num_workers: 2,
    verbose: true
  })
  expect(other.code, other.stderr).toBe(0)
  const said = other.stderr.split("\n").filter((line) => line.startsWith("warning:"))
  expect(said.length).toBe(1)
  expect(said[0]).toContain("model: test-model → other-model")
  expect(said[0]).toContain("seed: 0 → 3")
  expect(said[0]).toContain("distribution: terminal_only → default")
  expect(said[0]).toContain("reasoning_effort: null → low")
  expect(said[0]).not.toContain("num_workers")
})

it("adds the samples that are missing when each prompt is to run more often", async () => {
  const place = new Workplace()
  place.dataset(["a", "b"])
  const server = await serve(() => final())
  await place.complete(server, { samples_per_prompt: 2 })
  await place.complete(server, { samples_per_prompt: 3, resume: true })
  expect(prompts(server.requests)).toEqual(["a", "a", "a", "b", "b", "b"])
  expect(place.rows().map((row) => [row.prompt_index, row.metadata.sample])).toEqual([
    [0, 0],
    [0, 1],
    [0, 2],
    [1, 0],
    [1, 1],
    [1, 2]
  ])
})

it("runs fewer or more prompts as max_samples says", async () => {
  const place = new Workplace()
  place.dataset(["a", "b", "c"])
  const server = await serve(() => final())
  await place.complete(server, { max_samples: 1 })
  expect(place.json("statistics.json")).toMatchObject({ total_prompts: 1 })
  await place.complete(server, { max_samples: 2, resume: true })
  expect(prompts(server.requests)).toEqual(["a", "b"])
})

it("cuts off a torn last line and runs its prompt again, and goes on without its checkpoint", async () => {
  const place = new Workplace()
  place.dataset(["a", "b", "c"])
  const server = await serve(() => final())
  await place.complete(server, { num_workers: 1 })
  const path = place.path("data", "run", "batch_0.jsonl")
  const whole = place.text("batch_0.jsonl")
  truncateSync(path, whole.length - 40)
  place.write("data/run/checkpoint.json", "torn")
  place.write("data/run/run.json", "{")
  const ended = await place.complete(server, { resume: true })
  expect(ended.stderr).toContain("batch_0.jsonl: cut off a torn last line")
  expect(prompts(server.requests)).toEqual(["a", "b", "c", "c"])
  expect(place.text("batch_0.jsonl")).toBe(whole.slice(0, whole.lastIndexOf("\n", whole.length - 2) + 1))
  expect(place.rows().map((row) => row.prompt_index)).toEqual([0, 1, 2])

  // A damaged line in the middle is left where it is, named, and its prompt runs again.
  appendFileSync(place.path("data", "run", "batch_1.jsonl"), "not a row\n")
  const again = await place.complete(server, { resume: true })
  expect(again.stderr).toMatch(/batch_1\.jsonl: left out 1 unreadable line\(s\), the first at line 2/)
  expect(server.requests.length).toBe(4)
})

it("names what alters the data though its name is the same: a distribution file's content, texts that are saved nowhere", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  place.write("mine.json", '{"toolsets":{"terminal":100}}')
  const server = await serve(() => final())
  const options = { distribution: "mine.json", ephemeral_system_prompt: "be brief" }
  await place.complete(server, options)
  expect((await place.complete(server, { ...options, resume: true })).stderr).not.toContain("settings differ")
  place.write("mine.json", '{"toolsets":{"file":100}}')
  const { stderr } = await place.complete(server, { distribution: "mine.json", resume: true })
  expect(stderr).toContain('distribution_toolsets: {"terminal":100} → {"file":100}')
  expect(stderr).toContain("ephemeral_system_prompt: given before, not now")
})

it("counts a session as failed until it is done, whichever session of work it failed in", async () => {
  const place = new Workplace()
  place.dataset(["bad", "good"])
  let refuses = true
  const server = await serve((request) =>
    refuses && promptOf(request) === "bad" ? ModelServer.error(400, "no") : final()
  )
  const failed = () => expect(place.json("statistics.json"))
  expect((await place.run(server)).code).toBe(1)
  failed().toMatchObject({ failed: 1 })
  // Another data set that has the prompt, and is not run any further.
  place.dataset(["good", "bad"])
  expect((await place.run(server, { resume: true, max_samples: 1 })).code).toBe(0)
  failed().toMatchObject({ failed: 0 })
  expect((await place.run(server, { resume: true })).code).toBe(1)
  failed().toMatchObject({ failed: 1 })
  refuses = false
  await place.complete(server, { resume: true })
  failed().toMatchObject({ failed: 0 })
})

it("finds the rows of a default directory also when run.json is gone, and takes them for no other prompt's", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => final())
  await place.complete(server, { cwd: "/opt/x" })
  place.write("data/run/run.json", "garbage")
  const { stderr } = await place.complete(server, { resume: true })
  expect(stderr).toContain("run.json cannot be read")
  expect(server.requests.length).toBe(1)
  place.dataset([{ prompt: "a", cwd: "/opt/x" }])
  await place.complete(server, { resume: true, cwd: "/opt/x" })
  expect(server.requests.length).toBe(2)
})
