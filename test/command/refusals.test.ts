/** What is not started: exit code 2, one line that says why, nothing written. And what only prints. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { expect, it } from "vitest"
import { flags } from "../../src/cli/Flags.ts"
import { type Environment, expectRefused, type Options, Workplace } from "../support/Command.ts"
import { final, serve } from "../support/Talk.ts"

const nowhere = { url: "http://127.0.0.1:9/v1" }

/** What is typed beside a run that could start, what of it is left out, and what the line must say. */
const cases: ReadonlyArray<readonly [what: string, options: Options, says: RegExp, environment?: Environment]> = [
  ["no data set option", { dataset_file: undefined }, /--dataset_file is required/],
  ["no batch size", { batch_size: undefined }, /--batch_size is required/],
  ["no run name", { run_name: undefined }, /--run_name is required/],
  ["an unknown option", { run_nmae: "x" }, /--run_nmae is not an option; did you mean --run_name\?/],
  ["an option without a relative", { zzzzzzzzzz: "x" }, /--zzzzzzzzzz is not an option; --help/],
  ["a batch size of none", { batch_size: 0 }, /--batch_size: given "0", allowed: a whole number of at least 1/],
  ["half a worker", { num_workers: 1.5 }, /--num_workers: given "1\.5", allowed: a whole number/],
  ["negative turns", { max_turns: -1 }, /--max_turns: given "-1", allowed: a whole number/],
  ["a word for a number", { max_samples: "many" }, /--max_samples: given "many", allowed: a whole number/],
  [
    "a run name with a path",
    { run_name: "../up" },
    /--run_name: given "\.\.\/up", allowed: at most 200 letters, digits/
  ],
  ["a run name of dots", { run_name: ".." }, /--run_name: given "\.\.", allowed/],
  ["an unknown effort", { reasoning_effort: "huge" }, /--reasoning_effort: given "huge", allowed: none, minimal, low/],
  ["an unknown sort", { provider_sort: "best" }, /--provider_sort: given "best", allowed: price, throughput, latency/],
  ["an address that is none", { base_url: "example" }, /--base_url: given "example", allowed: an http or https/],
  ["an unknown sandbox", { sandbox: "vm" }, /--sandbox: given "vm", allowed: auto, local, docker/],
  [
    "an image for the sandbox that runs none",
    { sandbox: "local", image: "python:3" },
    /--image: given "python:3", and --sandbox=local runs no images/
  ],
  ["an image that is empty", { image: "" }, /--image: given "", allowed: the name of a container image/],
  ["half a sandbox", { max_sandboxes: 0.5 }, /--max_sandboxes: given "0\.5", allowed: a whole number of at least 1\n/],
  ["too many starts", { sandbox_starts: 5000 }, /--sandbox_starts: given "5000", allowed: .* and at most 1000\n/],
  [
    "no processor",
    { cpus: 0 },
    /--cpus: given "0", allowed: a number of processors of at least 0\.01, such as 2 or 0\.5\n/
  ],
  [
    "too little memory",
    { memory: "1m" },
    /--memory: given "1m", allowed: an amount of at least 16m, such as 512m or 2g\n/
  ],
  ...["docker", "singularity", "modal"].map(
    (sandbox) =>
      [
        `rows without an image for ${sandbox}`,
        { sandbox, dataset_file: "plain.jsonl" },
        new RegExp(`--sandbox=${sandbox}: plain\\.jsonl:3 names no image; give one to all .*--image=`)
      ] as const
  ),
  [
    "a container engine that is not there",
    { sandbox: "docker", image: "python:3" },
    /No container engine answers at unix:\/\/\/nowhere\/docker\.sock \(.*named by DOCKER_HOST; start it, or set DOCKER_HOST/,
    { DOCKER_HOST: "unix:///nowhere/docker.sock" }
  ],
  [
    "an unknown distribution",
    { distribution: "nonsuch" },
    /--distribution: there is no distribution "nonsuch"; .*terminal_only/
  ],
  [
    "a missing distribution file",
    { distribution: "./nonsuch.json" },
    /--distribution: the file \.\/nonsuch\.json cannot be read/
  ],
  [
    "a distribution of what cannot work",
    { distribution: "minimal", extract_backend: "firecrawl" },
    /--distribution: no toolset of minimal can work here: web/
  ],
  ["strict toolsets", { distribution: "default", strict_toolsets: true }, /--strict_toolsets: default has tools .*web/],
  ["a missing data set", { dataset_file: "none.jsonl" }, /--dataset_file: there is no file none\.jsonl/],
  ["an empty data set", { dataset_file: "empty.jsonl" }, /--dataset_file: empty\.jsonl is empty/],
  ["a data set that is a folder", { dataset_file: "home" }, /--dataset_file: home is a folder/],
  ["a row with a docker_image", { sandbox: "local", dataset_file: "docker.jsonl" }, /docker\.jsonl:2 names an image/],
  ["no key for the default endpoint", { base_url: undefined }, /no API key for openrouter\.ai: set OPENROUTER_API_KEY/],
  [
    "an empty key",
    { base_url: "https://models.example/v1" },
    /no API key for models\.example: set BATCH_RUNNER_API_KEY or OPENAI_API_KEY/,
    { BATCH_RUNNER_API_KEY: "", OPENAI_API_KEY: "  " }
  ],
  [
    "a row with an image",
    { dataset_file: "images.jsonl", sandbox: "local" },
    /--sandbox=local: images\.jsonl:2 names an image/
  ],
  [
    "a missing prefill",
    { prefill_messages_file: "none.json" },
    /--prefill_messages_file: given "none\.json", allowed: an existing file/
  ],
  [
    "a malformed prefill",
    { prefill_messages_file: "bad.json" },
    /--prefill_messages_file: bad\.json does not fit \(0\.role: /
  ],
  [
    "a prefill that is no JSON",
    { prefill_messages_file: "empty.jsonl" },
    /--prefill_messages_file: empty\.jsonl is not JSON/
  ],
  ["a missing script", { model: "scripted:none.json" }, /script none\.json does not exist/],
  ["a malformed script", { model: "scripted:bad.json" }, /script bad\.json is no object of the form/],
  ["an output folder that is a file", { output_dir: "prompts.jsonl" }, /prompts\.jsonl/],
  ["an output folder that cannot be made", { output_dir: "/proc/nowhere" }, /\/proc\/nowhere/]
]

it.concurrent.for(cases)(
  "refuses %s",
  { timeout: 60_000 },
  async ([, options, says, environment = {}], { onTestFinished }) => {
    const place = new Workplace(onTestFinished)
    place.dataset(["a"])
    place.write("empty.jsonl", "")
    place.write("bad.json", JSON.stringify([{ role: "wizard", content: "x" }]))
    place.dataset(["a", { prompt: "b", image: "python:3" }], "images.jsonl")
    place.dataset(["a", { prompt: "b", docker_image: "python:3" }], "docker.jsonl")
    place.write("plain.jsonl", '{"prompt":"a","image":"python:3"}\n\n{"prompt":"b"}\n{"prompt":"c"}\n')
    expectRefused(place, await place.run(nowhere, options, environment), says)
  }
)

it("refuses a data set without one usable line, and says what is wrong with the first", async () => {
  const place = new Workplace()
  place.write("prompts.jsonl", '\n{"prompt": 4}\nnot json\n')
  expectRefused(place, await place.run(nowhere), /has no usable line \(2 bad; line 2: "prompt" is not a string\)/)
})

it("refuses a word that is no option", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  expectRefused(place, await place.start([...place.argv(nowhere, {}), "now"]).ended, /unexpected "now"/)
  expectRefused(place, await place.start([...place.argv(nowhere, {}), "--seed"]).ended, /--seed needs a value/)
})

it("refuses a folder that holds results, naming both ways out, and leaves it as it was", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => final())
  await place.complete(server)
  const before = place.names().map((name) => place.text(name))
  const again = await place.run(server)
  expect(again).toMatchObject({ code: 2, stdout: "" })
  expect(again.stderr).toMatch(/^batch-runner: --run_name: [^\n]*--resume[^\n]*another name[^\n]*\n$/)
  expect(place.names().map((name) => place.text(name))).toEqual(before)
  expect(server.requests.length).toBe(1)
})

it("refuses a folder that another process works on", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  let asked = () => {}
  const waiting = new Promise<void>((resolve) => {
    asked = resolve
  })
  const server = await serve(() => {
    asked()
    return { hang: true }
  })
  const first = place.begin(server)
  await waiting
  for (const resume of [false, true]) {
    const second = await place.run(server, { resume })
    expect(second).toMatchObject({ code: 2, stdout: "" })
    expect(second.stderr).toMatch(
      new RegExp(`^batch-runner: .*in use by another batch-runner \\(process ${first.pid} `)
    )
    expect(second.stderr.trimEnd().split("\n").length).toBe(1)
  }
  first.kill("SIGKILL")
  await first.ended
  // A dead owner's lock is no lock.
  await place.complete(await serve(() => final()))
})

it("refuses a data set that is one of the run's own files, and leaves it as it was", async () => {
  const place = new Workplace()
  const server = await serve(() => final())
  mkdirSync(place.path("data", "run"), { recursive: true })
  for (const name of ["trajectories.jsonl", "failures.jsonl", "batch_0.jsonl", "discarded.jsonl"]) {
    place.write(`data/run/${name}`, '{"prompt":"a"}')
    const ended = await place.run(server, { dataset_file: `data/run/${name}`, resume: true })
    expect(ended.code).toBe(2)
    expect(ended.stderr).toMatch(
      /^batch-runner: --dataset_file: \S+ is one of the files that the run run writes; [^\n]+\n$/m
    )
    expect(place.text(name)).toBe('{"prompt":"a"}')
  }
  expect(server.requests).toEqual([])
})

it("starts no more workers than there are prompts, however many are allowed", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  await place.complete(await serve(() => final()), { num_workers: Number.MAX_SAFE_INTEGER })
})

it("takes an existing folder without results for a new run", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  mkdirSync(place.path("data", "run"), { recursive: true })
  writeFileSync(place.path("data", "run", "notes.txt"), "mine")
  await place.complete(await serve(() => final()), { resume: true })
  expect(place.text("notes.txt")).toBe("mine")
})

it("lists every distribution, highest percentage first, also to a reader that leaves", async () => {
  const place = new Workplace()
  const all = await place.start(["--list_distributions"]).ended
  expect(all).toMatchObject({ code: 0, stderr: "" })
  for (const name of ["default", "image_gen", "terminal_tasks", "mixed_tasks"]) {
    expect(all.stdout).toMatch(new RegExp(`^ *${name}\\b`, "m"))
  }
  const percentages = [...all.stdout.matchAll(/\bimage_gen +90 ?%?.*\n(?:.*\n)*?.*\bmoa +10/g)]
  expect(percentages.length).toBeGreaterThan(0)
  const cut = await place.shell("$BATCH_RUNNER --list-distributions | head -1; echo $PIPESTATUS").ended
  expect(cut.stderr).toBe("")
  expect(cut.stdout.split("\n").length).toBe(3)
  expect(cut.stdout).toMatch(/\n0\n$/)
})

it("answers --help and --version without a run", async () => {
  const place = new Workplace()
  const help = await place.start(["--help"]).ended
  expect(help).toMatchObject({ code: 0, stderr: "" })
  for (const { name } of flags) expect(help.stdout).toMatch(new RegExp(`^  --${name}\\b`, "m"))
  expect(help.stdout).toMatch(/^ {2}batch-runner clean {2,}\S/m)
  expect(help.stdout).not.toContain("\u001b")
  const version = await place.start(["--version"]).ended
  expect(version).toMatchObject({ code: 0, stderr: "" })
  expect(version.stdout).toMatch(/\d+\.\d+\.\d+/)
  const nothing = await place.start([]).ended
  expect(nothing.code).toBe(2)
  expect(nothing.stderr).toMatch(/^batch-runner: --dataset_file is required[^\n]*\n$/)
  expect(existsSync(place.path("data"))).toBe(false)
})
