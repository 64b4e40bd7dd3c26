/** `batch-runner setup`: what is told or answered lands in the config file, whole and hidden, and is tried. */
import { spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { type Environment, sleep, Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { serve } from "../support/Talk.ts"
import { down, enter, interrupt, talk } from "../support/Terminal.ts"

const key = "sk-setup-0123456789abcdef"
const token = "tg-token-9876543210fedcba"

/** An endpoint that lists these models to who has the key. */
const lists = (...models: ReadonlyArray<string>) =>
  serve((request) => {
    if (request.headers.authorization !== `Bearer ${key}`) return ModelServer.error(401, `no such key: ${key}`)
    return { body: { data: models.map((id) => ({ id })) } }
  })

const pathIn = (place: Workplace) => place.path("home", ".config", "batch-runner", "config.json")
const config = (place: Workplace) => JSON.parse(readFileSync(pathIn(place), "utf8"))
const setup = (place: Workplace, argv: ReadonlyArray<string>, environment: Environment = {}) =>
  place.start(["setup", "--non_interactive", ...argv], environment).ended

it("keeps what it is told, tries it, and lets nobody else read it", async () => {
  const place = new Workplace()
  const server = await lists("a/model", "b/model")
  const ended = await setup(place, [`--base_url=${server.url}`, "--model=a/model", `--api-key=${key}`, "--max_turns=3"])
  expect(ended).toMatchObject({ code: 0, stderr: "" })
  expect(ended.stdout).toContain(
    `Wrote ${pathIn(place)}, which only its owner can read: options model, base_url, max_turns; variables BATCH_RUNNER_API_KEY\n`
  )
  expect(ended.stdout).toMatch(
    /^ok {2}endpoint .*works: it lists a\/model among 2 models, key of BATCH_RUNNER_API_KEY \(config file\)$/m
  )
  expect(config(place)).toEqual({
    options: { base_url: server.url, max_turns: "3", model: "a/model" },
    variables: { BATCH_RUNNER_API_KEY: key }
  })
  expect(statSync(pathIn(place)).mode & 0o777).toBe(0o600)
  expect(statSync(dirname(pathIn(place))).mode & 0o777).toBe(0o700)
  expect(readdirSync(dirname(pathIn(place)))).toEqual(["config.json"])
  expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /v1/models"])
  expect(ended.stdout).not.toContain(key.slice(0, 8))
})

it("keeps what it is not told, takes away what is given empty, and writes nothing that does not change", async () => {
  const place = new Workplace()
  await setup(place, [
    "--offline",
    "--model=a",
    "--seed=1",
    `--brave_api_key=${key}`,
    "--searxng-url=http://127.0.0.1:1"
  ])
  expect(await setup(place, ["--offline", "--model=b", "--seed=", "--brave_api_key="])).toMatchObject({ code: 0 })
  expect(config(place)).toEqual({ options: { model: "b" }, variables: { SEARXNG_URL: "http://127.0.0.1:1" } })
  const before = statSync(pathIn(place))
  const again = await setup(place, ["--offline"])
  expect(again.stdout).toBe(`${pathIn(place)} stays as it is: options model; variables SEARXNG_URL\n`)
  expect(statSync(pathIn(place)).ino).toBe(before.ino)
})

it("says what does not work, and shows no key that an endpoint repeats", async () => {
  const place = new Workplace()
  const server = await serve((request) => ModelServer.error(401, `bad: ${request.headers.authorization}`))
  const ended = await setup(place, [`--base_url=${server.url}`, "--model=m", `--api_key=${key}`])
  expect(ended.code).toBe(1)
  expect(ended.stdout).toMatch(
    /^!! {2}endpoint .*the key is refused: HTTP 401 .*; check BATCH_RUNNER_API_KEY \(config file\)$/m
  )
  expect(ended.stdout + ended.stderr).not.toContain(key.slice(0, 8))
  expect(config(place).variables).toEqual({ BATCH_RUNNER_API_KEY: key })

  const other = await lists("vendor/some-model")
  const unlisted = await setup(place, [`--base_url=${other.url}`, "--model=some-model"])
  expect(unlisted.code).toBe(1)
  expect(unlisted.stdout).toMatch(
    /^!! .*it does not list some-model; there is vendor\/some-model; give another --model$/m
  )
})

it("asks one small question of an endpoint that lists no models", async () => {
  const place = new Workplace()
  const server = await serve((request) =>
    request.path.endsWith("/models") ? ModelServer.error(404, "no such page") : ModelServer.answer({ content: "yes" })
  )
  const ended = await setup(place, [`--base_url=${server.url}`, "--model=m"])
  expect(ended).toMatchObject({ code: 0 })
  expect(ended.stdout).toMatch(/^ok {2}endpoint .*works: m has answered$/m)
  expect(server.requests.map(({ body }) => body.max_tokens)).toEqual([undefined, 16])
})

it("keeps the variables of the environment when it is told to, and the key from standard input", async () => {
  const place = new Workplace()
  const environment = { OPENROUTER_API_KEY: key, TAVILY_API_KEY: token, MODAL_TOKEN_ID: "not ours", EXA_API_KEY: " " }
  expect(await setup(place, ["--offline", "--from_env"], environment)).toMatchObject({ code: 0 })
  expect(config(place)).toEqual({ options: {}, variables: { OPENROUTER_API_KEY: key, TAVILY_API_KEY: token } })

  const reading = place.start(["setup", "--non_interactive", "--offline", "--api_key_stdin"])
  reading.child.stdin?.end(`${token}\nanother line\n`)
  expect(await reading.ended).toMatchObject({ code: 0 })
  expect(config(place).variables).toEqual({ OPENROUTER_API_KEY: token, TAVILY_API_KEY: token })
  const hidden = await setup(place, ["--offline"], environment)
  expect(hidden.stdout).toContain(
    "The environment has another OPENROUTER_API_KEY, which goes before the one of the file\n"
  )
})

it.each([
  ["OpenAI's", "https://api.openai.com/v1", "OPENAI_API_KEY"],
  ["OpenRouter's", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"],
  ["the portal's", "https://inference-api.nousresearch.com/v1", "NOUS_API_KEY"],
  ["any other's", "https://models.example/v1", "BATCH_RUNNER_API_KEY"]
])("keeps %s key under its own name", async (_, url, name) => {
  const place = new Workplace()
  await setup(place, ["--offline", `--base_url=${url}`, `--api_key=${key}`])
  expect(config(place).variables).toEqual({ [name]: key })
})

it("sets the portal up with one key for all, and a model that it lists", async () => {
  const place = new Workplace()
  const server = await lists("x/first", "nous/Hermes-4", "y/last")
  const ended = await setup(place, ["--portal", "--offline", `--base_url=${server.url}`, `--api_key=${key}`])
  expect(ended).toMatchObject({ code: 0, stderr: "" })
  expect(ended.stdout).toMatch(/^Model: nous\/Hermes-4, of the 3 that the portal lists; --model names another$/m)
  expect(config(place)).toEqual({
    options: { base_url: server.url, model: "nous/Hermes-4" },
    variables: { NOUS_API_URL: server.url, NOUS_API_KEY: key, TOOL_GATEWAY_USER_TOKEN: key }
  })
  // A run finds the key by the portal's address.
  place.dataset(["a"])
  const dry = await place.start([
    "--dataset_file=prompts.jsonl",
    "--batch_size=1",
    "--run_name=r",
    "--distribution=terminal_only",
    "--dry_run"
  ]).ended
  expect(dry.stdout).toContain("the endpoint lists it among 3 models")
  // Another key is another token too, unless tools have one of their own.
  await setup(place, ["--portal", "--offline", `--base_url=${server.url}`, `--api_key=${token}`])
  expect(config(place).variables).toMatchObject({ NOUS_API_KEY: token, TOOL_GATEWAY_USER_TOKEN: token })
  await setup(place, ["--portal", "--offline", `--base_url=${server.url}`, "--gateway_token=its-own-token"])
  await setup(place, ["--portal", "--offline", `--base_url=${server.url}`, `--api_key=${key}`, "--model=y/last"])
  expect(config(place).variables).toMatchObject({ NOUS_API_KEY: key, TOOL_GATEWAY_USER_TOKEN: "its-own-token" })
  expect(config(place).options.model).toBe("y/last")
})

it("takes the program's own model where the portal lists it, and wants one where it lists none", async () => {
  const place = new Workplace()
  const full = await lists("x/hermes", "anthropic/claude-sonnet-4.6")
  await setup(place, ["--portal", "--offline", `--base_url=${full.url}`, `--api_key=${key}`])
  expect(config(place).options.model).toBe("anthropic/claude-sonnet-4.6")
  const other = new Workplace()
  const empty = await serve(() => ModelServer.error(404, "none"))
  const ended = await setup(other, ["--portal", "--offline", `--base_url=${empty.url}`, `--api_key=${key}`])
  expect(ended).toMatchObject({ code: 2, stdout: "" })
  expect(ended.stderr).toMatch(/^batch-runner: --model is needed, as the portal's list could not be had: [^\n]+\n$/)
  expect(existsSync(pathIn(other))).toBe(false)
})

it.each([
  ["an unknown option", ["--brave_key=x"], /--brave_key is not an option; (did you mean|--help)/],
  ["a near miss", ["--brave_api_kye=x"], /did you mean --brave_api_key\?/],
  ["an option of one run", ["--run_name=x"], /--run_name is not an option/],
  ["a bad value", ["--max_turns=none"], /--max_turns: given "none", allowed: a whole number of at least 1/],
  ["a bad choice", ["--search_backend=altavista"], /--search_backend: given "altavista", allowed: searxng, brave/],
  [
    "a bad address",
    ["--searxng_url=localhost"],
    /--searxng_url: what was given does not fit: an http or https address/
  ],
  ["a bad key", [`--exa_api_key=${key} x`], /--exa_api_key: what was given does not fit: a key is printable ASCII/],
  ["a bad endpoint key", [`--api_key=${key} x`], /--api_key: what was given does not fit: a key is printable ASCII/],
  ["a path that leads nowhere", ["--chromium_path=/nowhere"], /--chromium_path: .*there is no such file/],
  ["the portal without a key", ["--portal"], /--portal: its key is needed/],
  ["a token without the portal", [`--gateway_token=${token}`], /--gateway_token goes with --portal/],
  ["no key on standard input", ["--api_key_stdin"], /--api_key_stdin: standard input holds no key/]
])("writes nothing for %s", async (_, argv, says) => {
  const place = new Workplace()
  const running = place.start(["setup", "--non_interactive", "--offline", ...argv])
  running.child.stdin?.end()
  const ended = await running.ended
  expect(ended).toMatchObject({ code: 2, stdout: "" })
  expect(ended.stderr).toMatch(says)
  expect(ended.stderr).toMatch(/^batch-runner: [^\n]+\n$/)
  expect(ended.stderr).not.toContain(key)
  expect(existsSync(place.path("home", ".config"))).toBe(false)
})

it("without a terminal says how to go without questions", async () => {
  const place = new Workplace()
  const ended = await place.start(["setup"]).ended
  expect(ended).toMatchObject({ code: 2, stdout: "" })
  expect(ended.stderr).toMatch(
    /^batch-runner: setup asks its questions on a terminal, and there is none: give --non_interactive [^\n]+\n$/
  )
})

it("tells what it takes", async () => {
  const place = new Workplace()
  const help = await place.start(["setup", "--portal", "--help"]).ended
  expect(help).toMatchObject({ code: 0, stderr: "" })
  for (const word of ["--non_interactive", "--searxng_url=<url>", "--tool_gateway_user_token=<key>", "vision_model"]) {
    expect(help.stdout).toContain(word)
  }
})

it("tries each search that is configured by a query of its own, and each browser without opening one", async () => {
  const place = new Workplace()
  const asked: Array<string> = []
  const services = createServer((request, response) => {
    asked.push(`${request.url?.split("?")[0]} ${request.headers["x-bb-api-key"] ?? ""}`)
    const body = request.url?.startsWith("/search")
      ? { results: [{ url: "https://example.com", title: "t", content: "c" }], query: "q", number_of_results: 1 }
      : {}
    response.writeHead(request.url === "/api/v2/billing/account" ? 401 : 200, { "content-type": "application/json" })
    response.end(JSON.stringify(body))
  })
  services.on("upgrade", (_, socket) =>
    socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
  )
  await new Promise<void>((done) => services.listen(0, "127.0.0.1", done))
  onTestFinished(() => void services.close())
  const address = services.address() as AddressInfo
  const at = `127.0.0.1:${address.port}`
  // A program that knows a key and tells it.
  const browser = place.path("browser")
  writeFileSync(browser, `#!/bin/sh\necho "Chromium 1 ${key}"\n`, { mode: 0o755 })
  const tried = [
    "--model=scripted",
    `--chromium_path=${browser}`,
    `--searxng_url=http://${at}`,
    `--browserbase_api_key=${key}`,
    `--browserbase_api_url=http://${at}`,
    `--fal_key=${key}`
  ]
  const ended = await setup(place, [...tried, `--browser_cdp_url=ws://${at}/devtools?token=${token}`])
  expect(ended.stdout).toMatch(/^(ok|--) {2}web search \(SearXNG\) +(works|not tried: .*)$/m)
  expect(ended.stdout).toMatch(new RegExp(`^ok {2}browser \\(CDP\\) +works: ${at} answers$`, "m"))
  expect(ended.stdout).toMatch(new RegExp(`^ok {2}browser \\(Browserbase\\) +works: ${at} answers$`, "m"))
  expect(ended.stdout).toMatch(/^ok {2}browser \(Chromium\) +works: Chromium 1 \*\*\*$/m)
  expect(ended.stdout).toMatch(/^-- {2}images \(FAL\) +configured, not tried \(it would cost\)$/m)
  expect(ended).toMatchObject({ code: 0, stderr: "" })
  expect(asked).toContain(`/v1/projects ${key}`)

  const refused = await setup(place, [
    `--browser_cdp_url=http://${at}`,
    `--browser_use_api_key=${token}`,
    `--browser_use_api_url=http://${at}`,
    "--browserbase_api_key="
  ])
  expect(refused.code).toBe(1)
  expect(refused.stdout).toMatch(
    /^!! {2}browser \(Browser Use\) +does not work: HTTP 401 from .*; check BROWSER_USE_API_KEY$/m
  )
  expect(asked).toContain("/json/version ")
  expect(ended.stdout + refused.stdout).not.toMatch(new RegExp(`${key.slice(0, 8)}|${token.slice(0, 8)}`))
})

it("leaves the old file, and nothing beside it, where the new one cannot be written", async () => {
  const place = new Workplace()
  place.write("wall", "")
  const walled = await setup(place, ["--offline", "--model=a"], { XDG_CONFIG_HOME: place.path("wall") })
  expect(walled).toMatchObject({ code: 2, stdout: "" })
  expect(walled.stderr).toMatch(
    /wall\/batch-runner\/config\.json: the config file cannot be written: a file stands in the way/
  )
  const closed = await setup(place, ["--offline", "--model=a"], { XDG_CONFIG_HOME: "/sys" })
  expect(closed).toMatchObject({ code: 2, stdout: "" })
  expect(closed.stderr).toMatch(
    /^batch-runner: \/sys\/batch-runner\/config\.json: the config file cannot be written: [^\n]+\n$/
  )

  const disk = place.path("home", ".config", "batch-runner")
  mkdirSync(disk, { recursive: true })
  if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=16k", "tmpfs", disk]).status !== 0) {
    if (process.env.CI !== undefined)
      throw new Error("a small file system cannot be mounted here, and CI must not skip this")
    return
  }
  onTestFinished(() => void spawnSync("umount", ["-l", disk]))
  expect(await setup(place, ["--offline", "--model=a"])).toMatchObject({ code: 0 })
  const full = await setup(place, ["--offline", `--ephemeral_system_prompt=${"long ".repeat(10_000)}`])
  expect(full).toMatchObject({ code: 2, stdout: "" })
  expect(full.stderr).toMatch(/there is no space left on the disk \(ENOSPC\)/)
  expect(config(place).options).toEqual({ model: "a" })
  expect(readdirSync(disk)).toEqual(["config.json"])
  spawnSync("umount", ["-l", disk])
})

it("is never to be read by others, nor in part, whatever files are made for by default", async () => {
  const place = new Workplace()
  const folder = dirname(pathIn(place))
  const seen = new Set<string>()
  for (let round = 0; round < 4; round++) {
    const running = place.shell(
      `umask 0; $BATCH_RUNNER setup --non_interactive --offline --seed=${round} --ephemeral_system_prompt=${"x".repeat(100_000)}`
    )
    let going = true
    const ended = running.ended.then((end) => {
      going = false
      return end
    })
    while (going) {
      const names = existsSync(folder) ? readdirSync(folder) : []
      for (const name of names) {
        const found = statSync(join(folder, name), { throwIfNoEntry: false })
        if (found !== undefined) seen.add(`${name.replace(/\d+/, "N")} ${(found.mode & 0o777).toString(8)}`)
      }
      if (names.includes("config.json")) expect(config(place).options.ephemeral_system_prompt).toHaveLength(100_000)
      if (names.length > 0) seen.add(`folder ${(statSync(folder).mode & 0o777).toString(8)}`)
      await new Promise((done) => setImmediate(done))
    }
    expect((await ended).code).toBe(0)
  }
  seen.delete(".config.json.N.new 600")
  expect([...seen].toSorted()).toEqual(["config.json 600", "folder 700"])
})

it("writes where a link of the user's leads", async () => {
  const place = new Workplace()
  mkdirSync(dirname(pathIn(place)), { recursive: true })
  writeFileSync(place.path("kept.json"), '{"options": {"seed": 5}}', { mode: 0o644 })
  symlinkSync(place.path("kept.json"), pathIn(place))
  expect(await setup(place, ["--offline", "--model=a"])).toMatchObject({ code: 0 })
  expect(JSON.parse(readFileSync(place.path("kept.json"), "utf8")).options).toEqual({ seed: 5, model: "a" })
  expect(statSync(place.path("kept.json")).mode & 0o777).toBe(0o600)
})

it("writes where a link leads also where nothing is yet", async () => {
  const place = new Workplace()
  mkdirSync(dirname(pathIn(place)), { recursive: true })
  symlinkSync(place.path("mine", "kept.json"), pathIn(place))
  const ended = await setup(place, ["--offline", "--model=a/model"])
  expect(ended).toMatchObject({ code: 0, stderr: "" })
  expect(readlinkSync(pathIn(place))).toBe(place.path("mine", "kept.json"))
  expect(config(place).options).toEqual({ model: "a/model" })
  expect(statSync(place.path("mine", "kept.json")).mode & 0o777).toBe(0o600)
})

it("takes nothing from what another setup writes while this one waits for its key", async () => {
  const place = new Workplace()
  await setup(place, ["--offline", "--seed=1", "--max_turns=5", "--exa_api_key=sk-exa-before"])
  const first = place.start(["setup", "--non_interactive", "--offline", "--api_key_stdin", "--max_turns=", "--seed=3"])
  await sleep(3000)
  const second = await setup(place, ["--offline", "--brave_api_key=sk-brave-0123", "--exa_api_key=", "--seed=2"])
  expect(second).toMatchObject({ code: 0, stderr: "" })
  first.child.stdin?.end(`${key}\n`)
  expect(await first.ended).toMatchObject({ code: 0, stderr: "" })
  expect(config(place)).toEqual({
    options: { seed: "3" },
    variables: { BRAVE_API_KEY: "sk-brave-0123", OPENROUTER_API_KEY: key }
  })
})

it("asks on a terminal, shows no key that is typed, and keeps what is answered", { timeout: 90_000 }, async () => {
  const place = new Workplace()
  const server = await lists("a/model")
  const said = await talk(
    place,
    ["setup"],
    [
      ["Which endpoint", `${down}${down}${down}${enter}`],
      ["Its address", `${server.url}${enter}`],
      ["Key of that server", `${key}${enter}`],
      ["Which model", enter],
      ["What searches", `${down}${down}${enter}`],
      ["Key of Brave", `bad key${enter}`],
      ["printable ASCII", `${"\u007f".repeat(7)}${token}${enter}`],
      ["What looks at images", `${down}${enter}`],
      ["looks at images", `a/model${enter}`],
      ["What makes images", enter],
      ["What makes speech", enter],
      ["Which browser", enter]
    ]
  )
  expect(said).toMatchObject({ missed: null })
  expect(config(place)).toEqual({
    options: { base_url: server.url, model: "a/model", search_backend: "brave", vision_model: "a/model" },
    variables: { BATCH_RUNNER_API_KEY: key, BRAVE_API_KEY: token }
  })
  expect(said.shown).toMatch(/ok {2}endpoint .*works: it lists a\/model/)
  expect(said.shown).not.toMatch(new RegExp(`${key.slice(0, 8)}|${token.slice(0, 8)}`))

  // Everything is there: Enter keeps it.
  const before = config(place)
  const kept = await talk(
    place,
    ["setup", "--offline"],
    [
      ["Which endpoint", enter],
      ["Which model", enter],
      ["What searches", enter],
      ["What looks at images", enter],
      ["What makes images", enter],
      ["What makes speech", enter],
      ["Which browser", enter]
    ]
  )
  expect(kept).toMatchObject({ code: 0, missed: null })
  expect(kept.shown).toContain("stays as it is")
  expect(config(place)).toEqual(before)
})

it("shows nothing that is typed while no question is asked", { timeout: 60_000 }, async () => {
  const place = new Workplace()
  const server = await serve(() => ({ body: { data: [{ id: "a/model" }] }, delay: 1500 }))
  const said = await talk(
    place,
    ["setup", "--offline"],
    [
      ["Which endpoint", `${down}${down}${down}${enter}`],
      ["Its address", `${server.url}${enter}`],
      ["Key of that server", enter],
      // The endpoint takes its time to list its models.
      ["\n", "typed-too-early"],
      ["Which model", interrupt]
    ]
  )
  expect(said).toMatchObject({ code: 130, missed: null })
  expect(said.shown).not.toContain("typed-too-early")
})

it("broken off, writes nothing", { timeout: 60_000 }, async () => {
  const place = new Workplace()
  const said = await talk(
    place,
    ["setup"],
    [
      ["Which endpoint", enter],
      ["Key of OpenRouter", `${key}${interrupt}`]
    ]
  )
  expect(said).toMatchObject({ code: 130, missed: null })
  expect(said.shown).toContain("Nothing was written.")
  expect(existsSync(place.path("home", ".config"))).toBe(false)
})
