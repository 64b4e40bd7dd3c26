/** Prompts in containers: each in one of its own, of the image that it names, with nothing of the runner in it. */
import { existsSync } from "node:fs"
import { delimiter } from "node:path"
import { expect, it as test } from "vitest"
import { sleep, Workplace } from "../support/Command.ts"
import * as Containers from "../support/Containers.ts"
import * as Engine from "../support/Engine.ts"
import { final, promptOf, runs, runsThenEnds, serve, turnOf } from "../support/Talk.ts"

const busybox = Engine.image("busybox")
const { environment } = Containers

const results = (place: Workplace, run: string, at = 0): ReadonlyArray<string> =>
  (place.rows("trajectories.jsonl", run)[at]?.conversations ?? []).flatMap(({ from, value }) =>
    from === "tool" ? [value] : []
  )

const nowhere = { url: "http://127.0.0.1:9/v1" }

Engine.describe("A run with containers", () => {
  const it = test

  it("works on rows with an image and a directory there, and on rows without one on this machine", async () => {
    const place = new Workplace()
    const { run, given } = Containers.options({ model: "scripted:script.json" })
    place.dataset([
      { prompt: "inside", image: busybox, cwd: "/made/for it" },
      { prompt: "docker://", docker_image: `docker://${busybox}` },
      { prompt: "here" }
    ])
    const call = (name: string, args: object) => ({ reasoning: "Let me see.", tool_calls: [{ name, arguments: args }] })
    const script = [
      call("terminal", { command: "pwd; ls -d /.dockerenv 2>/dev/null; echo text > 'a file'" }),
      call("read_file", { path: "a file" }),
      call("write_file", { path: "deep/er/new.txt", content: "one\ntwo\n" }),
      call("patch", { path: "deep/er/new.txt", old_string: "two", new_string: "three" }),
      call("search_files", { pattern: "three" }),
      call("terminal", { command: "cat deep/er/new.txt" }),
      { reasoning: "That is all.", content: "done" }
    ]
    place.write("script.json", JSON.stringify({ default: script }))
    const ended = await place.complete(nowhere, given, environment)
    expect(ended.stderr).not.toContain("WARN")
    const rows = place.rows("trajectories.jsonl", run)
    expect(rows.map(({ metadata }) => [metadata.image, metadata.cwd, metadata.default_image])).toEqual([
      [busybox, "/made/for it", false],
      [`docker://${busybox}`, "", false],
      ["", "", false]
    ])
    for (const [at, row] of rows.entries()) {
      expect(row).toMatchObject({ completed: true, api_calls: 7 })
      for (const { failure } of Object.values(row.tool_stats)) expect(failure).toBe(0)
      const [where, read, , patched, searched, after] = results(place, run, at).map((text) => JSON.parse(text))
      expect(where.output.includes("/.dockerenv")).toBe(at < 2)
      expect(read.content).toContain("text")
      expect(patched).toMatchObject({ success: true })
      expect(searched.total_count).toBe(1)
      expect(after.output).toBe("one\nthree\n")
    }
    expect(JSON.parse(results(place, run)[0] ?? "").output).toBe("/made/for it\n/.dockerenv\n")
    expect(await Containers.names(run)).toEqual([])
  })

  it("gives rows without an image that of --image, and says so in the row", async () => {
    const place = new Workplace()
    const other = Engine.image("python")
    const { run, given } = Containers.options({ image: busybox, sandbox: "docker", cwd: "/work" })
    place.dataset(["a", { prompt: "b", image: other, cwd: "/own" }])
    await place.complete(await serve(runsThenEnds("pwd; command -v python3")), given, environment)
    expect(place.rows("trajectories.jsonl", run).map(({ metadata }) => metadata)).toMatchObject([
      { image: busybox, default_image: true, cwd: "/work", default_cwd: true },
      { image: other, default_image: false, cwd: "/own", default_cwd: false }
    ])
    expect(JSON.parse(results(place, run)[0] ?? "")).toMatchObject({ output: "/work\n" })
    expect(JSON.parse(results(place, run, 1)[0] ?? "").output).toMatch(/^\/own\n\/.*python3\n$/)
    // Another default does not make them run again.
    const server = await serve(() => final())
    await place.complete(server, { ...given, image: other, resume: true }, environment)
    expect(server.requests).toEqual([])
  })

  it("fails only the prompts whose image cannot be had, before any model call, and does not call them worth a retry", async () => {
    const place = new Workplace()
    const { run, given } = Containers.options()
    const missing = [Engine.image("nosuchimage"), `${Engine.registry}/batch-runner/busybox:nosuchtag`, "Not A Name"]
    const unfit = [Engine.image("noshell")]
    place.dataset([
      { prompt: "good 0", image: busybox },
      ...[...missing, ...unfit].map((image) => ({ prompt: `bad ${image}`, image })),
      { prompt: "good 1", image: busybox }
    ])
    const server = await serve(() => final())
    const ended = await place.run(server, given, environment)
    expect(ended.code, ended.stderr).toBe(1)
    expect(server.requests.map(promptOf).toSorted()).toEqual(["good 0", "good 1"])
    const failures = place.failures(run).toSorted((a, b) => a.prompt_index - b.prompt_index)
    expect(
      failures.map(({ reason, error, api_calls, retryable }) => ({ reason, error, api_calls, retryable }))
    ).toEqual(
      [...missing.map(() => "ImageMissing"), ...unfit.map(() => "ImageUnfit")].map((reason) => ({
        reason,
        error: "SandboxError",
        api_calls: 0,
        retryable: false
      }))
    )
    for (const [at, { message }] of failures.entries()) {
      expect(message).toContain([...missing, ...unfit][at])
      expect(message).not.toContain("\n")
    }
    expect(place.rows("trajectories.jsonl", run).length).toBe(2)
    expect(await Containers.names(run)).toEqual([])
  })

  it("shows no variable of the runner's environment inside, and none of its arguments", async () => {
    const place = new Workplace()
    const { run, given } = Containers.options({ api_key: "s3cr3t-key", verbose: true, log_prefix_chars: 100_000 })
    place.dataset([{ prompt: "look", image: busybox }])
    const server = await serve(
      runsThenEnds(
        "env; set",
        "cat /proc/1/environ /proc/*/environ | tr '\\0' '\\n'",
        "cat /proc/*/cmdline; ls -a ~ / /tmp"
      )
    )
    const secrets = { SECRET: "s3cr3t-value", OPENAI_API_KEY: "s3cr3t-other", http_proxy: "http://s3cr3t" }
    const ended = await place.complete(server, given, { ...environment, ...secrets })
    expect(results(place, run)[0]).toContain("PATH=")
    expect(results(place, run)[1]).toContain("PATH=")
    const seen = place.text("trajectories.jsonl", run) + ended.stderr
    expect(seen).not.toContain("s3cr3t")
    for (const name of ["SECRET", "DOCKER_HOST", "TMPDIR", place.root])
      expect(results(place, run).join()).not.toContain(name)
  })

  it("keeps prompts that run at the same time from seeing each other", async () => {
    const place = new Workplace()
    const { run, given } = Containers.options({ num_workers: 2 })
    place.dataset(["alpha", "beta"].map((prompt) => ({ prompt, image: busybox, cwd: "/w" })))
    let ready = 0
    const server = await serve(async (request) => {
      const name = promptOf(request)
      if (turnOf(request) === 0)
        return runs(`echo ${name} > own; echo ${name} > /tmp/${name}; sleep 100${name.length} & hostname`)
      if (turnOf(request) > 1) return final()
      ready++
      while (ready < 2) await sleep(10)
      return runs("cat own; ls /tmp; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    })
    await place.complete(server, given, environment)
    for (const [at, [own, other, sleeps, others]] of [
      ["alpha", "beta", "sleep 1005", "sleep 1004"],
      ["beta", "alpha", "sleep 1004", "sleep 1005"]
    ].entries()) {
      const { output } = JSON.parse(results(place, run, at)[1] ?? "")
      expect(output.startsWith(`${own}\n`)).toBe(true)
      expect(output).toContain(sleeps)
      expect(output).not.toContain(other)
      expect(output).not.toContain(others)
    }
  })

  it("has no more containers at once than --max_sandboxes, those on their way out included", async () => {
    const place = new Workplace()
    const { run, given } = Containers.options({ num_workers: 8, max_sandboxes: 2 })
    place.dataset(Array.from({ length: 10 }, (_, at) => ({ prompt: `${at}`, image: busybox })))
    const seen = await Containers.watch(run)
    await place.complete(await serve(runsThenEnds("echo")), given, environment)
    expect(place.rows("trajectories.jsonl", run).length).toBe(10)
    expect(await Containers.names(run)).toEqual([])
    expect(seen.made.length).toBe(10)
    expect(seen.most).toBe(2)
  })

  it("starts no more containers in a second than --sandbox_starts", async () => {
    const place = new Workplace()
    const { run, given } = Containers.options({ num_workers: 6, sandbox_starts: 2 })
    place.dataset(Array.from({ length: 6 }, (_, at) => ({ prompt: `${at}`, image: busybox })))
    const seen = await Containers.watch(run)
    await place.complete(await serve(() => final()), given, environment)
    const [first = 0, last = 0] = [seen.made.at(0), seen.made.at(-1)]
    expect(seen.made.length).toBe(6)
    // Five times half a second, but for what the engine takes for the first.
    expect(last - first).toBeGreaterThan(1900)
    expect(last - first).toBeLessThan(15_000)
  })

  it("does not start on an engine that has less than each container is to have", async () => {
    const place = new Workplace()
    place.dataset([{ prompt: "a", image: busybox }])
    for (const [option, says] of [
      [{ cpus: 5000 }, /^batch-runner: --cpus: given 5000, allowed: at most the \d+ of the container engine\n$/],
      [
        { memory: "900t" },
        /^batch-runner: --memory: given \d+g, allowed: at most the [\d.]+g of the container engine\n$/
      ]
    ] as const) {
      const ended = await place.run(nowhere, option, environment)
      expect(ended.stderr).toMatch(says)
      expect(ended).toMatchObject({ code: 2, stdout: "" })
    }
    expect(existsSync(place.path("data"))).toBe(false)
  })
})

test("A prompt with an image fails with what to install where nothing can run it, and the others run", async () => {
  const place = new Workplace()
  place.dataset(["here", { prompt: "there", image: "python:3.11-slim" }, { prompt: "file", image: "./x.sif" }])
  const server = await serve(runsThenEnds("echo $((6 * 7))"))
  const engineless = {
    DOCKER_HOST: "unix:///nowhere/docker.sock",
    PATH: (process.env.PATH ?? "")
      .split(delimiter)
      .filter((folder) => !["apptainer", "singularity"].some((name) => existsSync(`${folder}/${name}`)))
      .join(delimiter)
  }
  const ended = await place.run(server, {}, engineless)
  expect(ended.code, ended.stderr).toBe(1)
  expect(new Set(server.requests.map(promptOf))).toEqual(new Set(["here"]))
  expect(results(place, "run")[0]).toContain("42")
  const failures = place.failures().toSorted((a, b) => a.prompt_index - b.prompt_index)
  expect(failures).toMatchObject(
    [1, 2].map((prompt_index) => ({ prompt_index, reason: "Unavailable", retryable: false, api_calls: 0 }))
  )
  expect(failures[0]?.message).toMatch(/python:3\.11-slim.*install and start Docker or Podman, or install Apptainer/)
  expect(failures[1]?.message).toMatch(/Apptainer|Singularity/i)
  expect(ended.stderr).toMatch(/install and start Docker or Podman, or install Apptainer/)
})
