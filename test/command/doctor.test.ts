/** `batch-runner doctor`: what works here and what is lacking, a line each, and whether a run can begin. */
import { mkdirSync, writeFileSync } from "node:fs"
import { expect, it } from "vitest"
import * as Catalogue from "../../src/tools/Catalogue.ts"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { serve } from "../support/Talk.ts"

const key = "sk-doctor-0123456789abcdef"

/** No engine of this machine, and no account of its user. */
const alone = { DOCKER_HOST: "unix:///nowhere/docker.sock" }

const configure = (place: Workplace, content: string, mode = 0o600): string => {
  const folder = place.path("home", ".config", "batch-runner")
  mkdirSync(folder, { recursive: true })
  const path = `${folder}/config.json`
  writeFileSync(path, content, { mode })
  return path
}

it("shows toolsets, sandboxes, endpoint, keys by name, and that a run can begin", async () => {
  const place = new Workplace()
  const server = await serve(() => ({ body: { data: [{ id: "a/model" }] } }))
  const path = configure(
    place,
    JSON.stringify({
      options: { base_url: server.url, model: "a/model" },
      variables: { BATCH_RUNNER_API_KEY: key, EXA_API_KEY: key, TYPO_KEY: key }
    })
  )
  const ended = await place.start(["doctor"], { ...alone, EXA_API_KEY: "another", FAL_KEY: key }).ended
  expect(ended).toMatchObject({ code: 0, stderr: "" })
  const lines = ended.stdout.split("\n")
  const subjects = lines.map((line) => line.slice(4, 18).trim())
  for (const toolset of Catalogue.names) {
    expect(subjects).toContain(toolset)
  }
  expect(ended.stdout).toMatch(/^ok {2}node +v\d+\.\d+\.\d+, batch-runner \d/m)
  expect(ended.stdout).toContain(`${path}: options: base_url, model\n`)
  expect(ended.stdout).toMatch(
    /^ok {2}variables +in the config file: BATCH_RUNNER_API_KEY, EXA_API_KEY \(the environment's goes before\), TYPO_KEY \(not known to this program\)$/m
  )
  expect(ended.stdout).toMatch(/^ok +in the environment: EXA_API_KEY, FAL_KEY$/m)
  expect(ended.stdout).toMatch(
    /^ok {2}endpoint +127\.\S+ works: it lists a\/model among 1 models, key of BATCH_RUNNER_API_KEY \(config file\)$/m
  )
  expect(ended.stdout).toMatch(/^ok {2}sandboxes +local: /m)
  expect(ended.stdout).toMatch(/^-- +docker: No container engine answers at /m)
  expect(ended.stdout).toMatch(/^ok {2}terminal +terminal, process$/m)
  expect(ended.stdout).toMatch(/^(ok|--) +espeak-ng: /m)
  expect(lines.at(-2)).toBe("A run can begin.")
  expect(ended.stdout).not.toMatch(/\u001b|sk-doctor|another/)
  expect(ended.took).toBeLessThan(10_000)
  expect(server.requests.map(({ path }) => path)).toEqual(["/v1/models"])
})

it("takes the options of a run, and says what keeps that from beginning", async () => {
  const place = new Workplace()
  const server = await serve((request) => ModelServer.error(401, `bad ${request.headers.authorization}`))
  const keyless = await place.start(["doctor", "--offline"], alone).ended
  expect(keyless.code).toBe(1)
  expect(keyless.stdout).toMatch(/^!! {2}endpoint +no API key for openrouter\.ai: set OPENROUTER_API_KEY or /m)
  expect(keyless.stdout).toMatch(/A run cannot begin as configured: see the lines with !!\.\n$/)

  const run = ["--dataset_file=none.jsonl", "--batch_size=3", "--run_name=r"]
  const refused = await place.start(["doctor", ...run, `--base_url=${server.url}`], { ...alone, OPENAI_API_KEY: key })
    .ended
  expect(refused.code).toBe(1)
  expect(refused.stdout).toMatch(
    /^!! {2}endpoint .*the key is refused: HTTP 401 .*check OPENAI_API_KEY \(environment\)$/m
  )
  expect(refused.stdout + refused.stderr).not.toContain(key.slice(0, 9))

  const scripted = ["doctor", "--offline", "--model=scripted"]
  expect(await place.start(scripted, alone).ended).toMatchObject({ code: 0 })
  const docker = await place.start([...scripted, "--sandbox=docker"], alone).ended
  expect(docker.code).toBe(1)
  expect(docker.stdout).toMatch(/^!! +docker: No container engine answers/m)
})

it("asks nothing beyond this machine when it is told so", async () => {
  const place = new Workplace()
  const server = await serve(() => ModelServer.error(500, "asked"))
  const ended = await place.start(["doctor", "--offline", `--base_url=${server.url}`], {
    ...alone,
    OPENAI_API_KEY: key
  }).ended
  expect(ended.code).toBe(0)
  expect(ended.stdout).toMatch(/^ok {2}endpoint .*not asked \(--offline\), key of OPENAI_API_KEY \(environment\)$/m)
  expect(server.requests).toEqual([])
})

it("shows a config file that is none, or that others can read, and goes on", async () => {
  const place = new Workplace()
  configure(place, `{"variables": {"EXA_API_KEY": "${key}"`)
  const broken = await place.start(["doctor", "--offline", "--model=scripted"], alone).ended
  expect(broken).toMatchObject({ code: 1, stderr: "" })
  expect(broken.stdout).toMatch(/^!! {2}config file +\/.*: the config file is no JSON; /m)
  expect(broken.stdout).toMatch(/^ok {2}terminal /m)
  expect(broken.stdout).not.toContain(key.slice(0, 9))

  const other = new Workplace()
  const path = configure(other, '{"options": {"max_turns": 0}}')
  const bad = await other.start(["doctor", "--offline", "--model=scripted"], alone).ended
  expect(bad).toMatchObject({ code: 1, stderr: "" })
  expect(bad.stdout).toMatch(/^!! {2}config file +\/.*: options\.max_turns: given "0"/m)
  writeFileSync(path, "{}")
  await other.shell(`chmod 644 '${path}'`).ended
  const exposed = await other.start(["doctor", "--offline", "--model=scripted"], alone).ended
  expect(exposed).toMatchObject({ code: 0 })
  expect(exposed.stdout).toContain(`can be read by others: chmod 600 '${path}'\n`)
})

it("prints the same as JSON", async () => {
  const place = new Workplace()
  const ended = await place.start(["doctor", "--json", "--offline", "--model=scripted"], alone).ended
  expect(ended).toMatchObject({ code: 0, stderr: "" })
  const { ready, found } = JSON.parse(ended.stdout)
  expect(ready).toBe(true)
  expect(found).toContainEqual({ mark: "ok", subject: "terminal", what: "terminal, process" })
})

it.each([
  ["--ofline", /--ofline is not an option; did you mean --offline\?/],
  ["--brave_api_key=x", /--brave_api_key is not an option/],
  ["--max_turns=0", /--max_turns: given "0", allowed/],
  ["all", /unexpected "all"/]
])("refuses %s in one line", async (word, says) => {
  const place = new Workplace()
  const ended = await place.start(["doctor", word], alone).ended
  expect(ended).toMatchObject({ code: 2, stdout: "" })
  expect(ended.stderr).toMatch(says)
  expect(ended.stderr).toMatch(/^batch-runner: [^\n]+\n$/)
})

it("tells what it takes", async () => {
  const place = new Workplace()
  const help = await place.start(["doctor", "--help"]).ended
  expect(help).toMatchObject({ code: 0, stderr: "" })
  expect(help.stdout).toContain("--offline")
})
