/** The user's config file: below the command line and the environment, above the defaults, and seen by nobody else. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { expectRefused, Workplace } from "../support/Command.ts"
import { final, runsThenEnds, serve } from "../support/Talk.ts"

const key = "sk-config-0123456789abcdef"

/** Writes the file as text or as what it holds; gives its path. */
const configure = (place: Workplace, content: string | object, folder = place.path("home", ".config")): string => {
  mkdirSync(join(folder, "batch-runner"), { recursive: true, mode: 0o700 })
  const path = join(folder, "batch-runner", "config.json")
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content), { mode: 0o600 })
  return path
}

/** All bytes of all files below a folder. */
const everything = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n")

const needs = ["--dataset_file=prompts.jsonl", "--batch_size=1", "--run_name=run"]

it("gives options and keys, which what is typed and the environment go before", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => final())
  configure(place, {
    options: {
      base_url: server.url,
      model: "of-file",
      distribution: "terminal_only",
      seed: 7,
      network: false,
      cache: true
    },
    variables: { BATCH_RUNNER_API_KEY: key }
  })
  const seen = () => ({
    model: server.requests.at(-1)?.body.model,
    authorization: server.requests.at(-1)?.headers.authorization
  })
  const first = await place.start(needs).ended
  expect(first.code, first.stderr).toBe(0)
  expect(seen()).toEqual({ model: "of-file", authorization: `Bearer ${key}` })
  // What held stands in the record of the run, so that a resume compares with that.
  const config = JSON.parse(place.text("run.json")).sessions[0].config
  expect(config).toMatchObject({ model: "of-file", seed: 7, network: false, cache: true, base_url: server.url })

  const typed = await place.start(
    ["--dataset_file=prompts.jsonl", "--batch_size=1", "--run_name=two", "--model=typed", "--cache=false"],
    // One for any endpoint stands in the file: the environment goes before it, whatever its name.
    { OPENAI_API_KEY: "of-environment" }
  ).ended
  expect(typed.code, typed.stderr).toBe(0)
  expect(seen()).toEqual({ model: "typed", authorization: "Bearer of-environment" })
  expect(JSON.parse(place.text("run.json", "two")).sessions[0].config).toMatchObject({ cache: false, seed: 7 })

  await place.start(
    ["--dataset_file=prompts.jsonl", "--batch_size=1", "--run_name=three", "--cache=false", "--api_key=by-hand"],
    { BATCH_RUNNER_API_KEY: "of-environment" }
  ).ended
  expect(seen()).toEqual({ model: "of-file", authorization: "Bearer by-hand" })
  expect(everything(place.path("data"))).not.toContain(key.slice(0, 8))
})

it("is found by XDG_CONFIG_HOME where that is a whole path, and empty values in it are none", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => final())
  configure(place, { options: { model: "of-home", base_url: server.url, distribution: "terminal_only" } })
  configure(
    place,
    {
      options: { model: "of-xdg", base_url: server.url, distribution: "terminal_only", image: "", search_backend: " " },
      variables: { BATCH_RUNNER_API_KEY: " " }
    },
    place.path("xdg")
  )
  for (const [run, xdg, model] of [
    ["a", place.path("xdg"), "of-xdg"],
    ["b", "xdg", "of-home"],
    ["c", place.path("none"), "anthropic/claude-sonnet-4.6"]
  ] as const) {
    const argv = [
      ...needs.slice(0, 2),
      `--run_name=${run}`,
      ...(run === "c" ? [`--base_url=${server.url}`, "--distribution=terminal_only"] : [])
    ]
    const ended = await place.start(argv, { XDG_CONFIG_HOME: xdg }).ended
    expect(ended.code, ended.stderr).toBe(0)
    expect(server.requests.at(-1)?.body.model).toBe(model)
    expect(server.requests.at(-1)?.headers.authorization).toBeUndefined()
  }
})

it.each<readonly [what: string, content: string | object, says: RegExp]>([
  ["no JSON", `{"variables": {"EXA_API_KEY": "${key}"`, /the config file is no JSON; correct it/],
  ["no object", "[]", /it is no JSON object, allowed: \{"options"/],
  ["another part", { keys: {} }, /it has no place for "keys", allowed/],
  ["options in a list", { options: ["model"] }, /options is no JSON object/],
  ["an unknown option", { options: { modle: "x" } }, /options\.modle: there is no such option; did you mean model\?/],
  ["an option of one run", { options: { run_name: "x" } }, /options\.run_name: it belongs to one run/],
  ["a key among the options", { options: { api_key: key } }, /options\.api_key: a key stands under "variables"/],
  ["a list", { options: { moa_models: ["a"] } }, /options\.moa_models: allowed: a text, a number, true or false/],
  ["a switch in words", { options: { cache: "maybe" } }, /options\.cache is a switch, allowed: true or false/],
  [
    "a bad value",
    { options: { max_turns: 0 } },
    /options\.max_turns: given "0", allowed: a whole number of at least 1; correct it there/
  ],
  ["a key that is no text", { variables: { EXA_API_KEY: 12345678 } }, /variables\.EXA_API_KEY: allowed: a text/],
  ["a name that is none", { variables: { [key]: "x" } }, /variables: a name there is none of an environment variable/]
])("stops a run that it cannot be read for, in a line that names it: %s", async (_, content, says) => {
  const place = new Workplace()
  place.dataset(["a"])
  const path = configure(place, content)
  const ended = await place.start([...needs, "--model=scripted"]).ended
  expectRefused(place, ended, says)
  expect(ended.stderr.startsWith(`batch-runner: ${path}: `)).toBe(true)
  expect(ended.stderr).not.toContain(key.slice(0, 8))
  expect(ended.stderr).not.toContain("12345678")
  // What needs no config file does not look at it.
  for (const word of ["--help", "--version", "--list_distributions"]) {
    expect(await place.start([word]).ended).toMatchObject({ code: 0, stderr: "" })
  }
})

it("is refused where it is a folder, and a run does not wait for one that is a pipe", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  mkdirSync(place.path("home", ".config", "batch-runner", "config.json"), { recursive: true })
  expectRefused(place, await place.start([...needs, "--model=scripted"]).ended, /the config file must be a file/)
  mkdirSync(place.path("xdg", "batch-runner"), { recursive: true })
  await place.shell(`mkfifo '${place.path("xdg", "batch-runner", "config.json")}'`).ended
  const piped = await place.start([...needs, "--model=scripted"], { XDG_CONFIG_HOME: place.path("xdg") }).ended
  expectRefused(place, piped, /the config file must be a file/)
  mkdirSync(place.path("dangling", "batch-runner"), { recursive: true })
  symlinkSync("nowhere", place.path("dangling", "batch-runner", "config.json"))
  const argv = [...needs, "--model=scripted", "--distribution=terminal_only", "--dry_run"]
  expect(await place.start(argv, { XDG_CONFIG_HOME: place.path("dangling") }).ended).toMatchObject({ code: 0 })
})

it("is warned of where others can read it", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const path = configure(place, {})
  const argv = [...needs, "--model=scripted", "--distribution=terminal_only", "--dry_run"]
  expect((await place.start(argv).ended).stderr).not.toContain("warning")
  chmodSync(path, 0o640)
  const ended = await place.start(argv).ended
  expect(ended.stderr).toContain(`batch-runner: warning: ${path} can be read by others: chmod 600 '${path}'\n`)
  expect(ended.code).toBe(0)
})

it("is seen by no sandbox, nor what stands in it, and in no log", async () => {
  const place = new Workplace()
  place.dataset(["look around"])
  const path = configure(place, { variables: { BATCH_RUNNER_API_KEY: key, EXA_API_KEY: `${key}-other` } })
  const server = await serve(
    runsThenEnds(
      "env; set; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'",
      `cat '${path}' "$HOME/.config/batch-runner/config.json" 2>&1; ls -R '${place.path("home")}' 2>&1; echo looked`
    )
  )
  const ended = await place.complete(server, { verbose: true, log_prefix_chars: 100_000 })
  expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${key}`)
  const results = place.rows()[0]?.conversations.filter(({ from }) => from === "tool")
  expect(results?.[1]?.value).toContain("looked")
  expect(everything(place.path("data")) + ended.stdout + ended.stderr).not.toContain(key.slice(0, 9))
})

it("is hidden from sandboxes also where their system folders hold it", async () => {
  const place = new Workplace()
  place.dataset(["look around"])
  // Everybody may read it, so that nothing but its being a config file hides it.
  const folder = join("/opt", `batch-runner-test-${process.pid}`)
  const path = configure(place, { options: { seed: 4242 } }, folder)
  for (const open of [folder, join(folder, "batch-runner")]) chmodSync(open, 0o755)
  writeFileSync(join(folder, "other"), "not hidden")
  chmodSync(path, 0o644)
  const server = await serve(runsThenEnds(`cat '${folder}/other' '${path}'`))
  const ended = await place.run(server, {}, { XDG_CONFIG_HOME: folder })
  await place.shell(`rm -r '${folder}'`).ended
  expect(ended.code, ended.stderr).toBe(0)
  const result = place.rows()[0]?.conversations.find(({ from }) => from === "tool")?.value
  expect(result).toContain("not hidden")
  expect(result).not.toContain("4242")
})
