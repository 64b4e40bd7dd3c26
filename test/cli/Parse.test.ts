/** Every value is checked before anything starts, and each complaint names the option, what was given and what is allowed. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Option, Redacted } from "effect"
import { flags } from "../../src/cli/Flags.ts"
import * as Parse from "../../src/cli/Parse.ts"
import * as RunConfig from "../../src/RunConfig.ts"
import * as Folder from "../support/Folder.ts"

type Given = Readonly<Record<string, string | boolean>>

/** What the command's parser makes of these options. */
const typed = (given: Given): Parse.Typed =>
  Object.fromEntries(
    flags.map(({ name, kind }) => {
      const value = given[name]
      return [name, kind === "switch" ? value === true : Option.fromNullable(typeof value === "string" ? value : null)]
    })
  )

const least: Given = { dataset_file: "d.jsonl", batch_size: "10", run_name: "r", model: "scripted" }

const parse = (given: Given, environment: Readonly<Record<string, string>> = {}) =>
  Parse.parse(typed({ ...least, ...given }), environment)

const config = (given: Given = {}) => Either.getOrThrowWith(parse(given), (error) => error).config

const complaint = (given: Given, environment: Readonly<Record<string, string>> = {}) =>
  Either.match(parse(given, environment), { onLeft: ({ message }) => message, onRight: () => "fits" })

describe("The least that can be typed", () => {
  it("gives the defaults of the contract.", () => {
    expect(config()).toEqual({
      ...RunConfig.make({ dataset_file: "d.jsonl", batch_size: 10, run_name: "r" }),
      model: "scripted"
    })
    expect(config()).toMatchObject({
      distribution: "default",
      base_url: "https://openrouter.ai/api/v1",
      max_turns: 10,
      num_workers: 4,
      log_prefix_chars: 100,
      max_samples: null,
      max_tokens: null,
      resume: false
    })
    expect(RunConfig.defaults.model).toBe("anthropic/claude-sonnet-4.6")
  })
  it.each([
    ["dataset_file", "--dataset_file is required: the path of a JSONL file"],
    ["batch_size", "--batch_size is required: prompts per batch file, a whole number of at least 1"],
    ["run_name", "--run_name is required: a name for the run's folder"]
  ])("has a %s, and an empty one is none.", (name, message) => {
    expect(complaint({ [name]: false })).toBe(message)
    expect(complaint({ [name]: " " })).toBe(message)
  })
})

describe("Values", () => {
  it("arrive in the configuration, trimmed, lists split.", () => {
    expect(
      config({
        max_turns: " 3 ",
        num_workers: "+8",
        seed: "-7",
        log_prefix_chars: "0",
        providers_allowed: " a , b,,c ",
        providers_order: "",
        provider_sort: "Price",
        reasoning_effort: "XHIGH",
        reasoning_filter: "off",
        network: "false",
        sandbox: "local",
        resume: true,
        strict_toolsets: true,
        ephemeral_system_prompt: "  be brief\n",
        base_url: "http://localhost:1/v1//",
        cwd: " /w ",
        samples_per_prompt: "2",
        timeout: "5",
        command_timeout: "6",
        max_samples: "7",
        max_tokens: "8",
        output_dir: "out",
        distribution: "minimal"
      })
    ).toMatchObject({
      max_turns: 3,
      num_workers: 8,
      seed: -7,
      log_prefix_chars: 0,
      providers_allowed: ["a", "b", "c"],
      providers_order: [],
      provider_sort: "price",
      reasoning_effort: "xhigh",
      reasoning_filter: "off",
      network: false,
      sandbox: "local",
      resume: true,
      verbose: false,
      strict_toolsets: true,
      ephemeral_system_prompt: "  be brief\n",
      base_url: "http://localhost:1/v1",
      cwd: "/w",
      samples_per_prompt: 2,
      timeout: 5,
      command_timeout: 6,
      max_samples: 7,
      max_tokens: 8,
      output_dir: "out",
      distribution: "minimal"
    })
  })
  it("that are empty are none, where there can be none, and else refused: a variable may not be set.", () => {
    const none = ["api_key", "providers_allowed", "providers_ignored", "providers_order", "cwd"]
    const empty = [...none, "ephemeral_system_prompt", "prefill_messages_file"]
    expect(config({ ...Object.fromEntries(empty.map((name) => [name, ""])), ...least })).toEqual(config())
    for (const { kind, name } of flags) {
      if (kind !== "value" || empty.includes(name) || name in least) continue
      expect(complaint({ [name]: " " })).toMatch(new RegExp(`^--${name}: given "", allowed: [^\n]+$`))
    }
  })
  it("of base_url may be the whole address of the chat completions.", () => {
    expect(config({ base_url: "http://127.0.0.1:1/v1/chat/completions/" }).base_url).toBe("http://127.0.0.1:1/v1")
  })
})

describe("A bad value", () => {
  const counts = [
    "batch_size",
    "max_turns",
    "num_workers",
    "max_samples",
    "max_tokens",
    "samples_per_prompt",
    "timeout",
    "command_timeout"
  ]
  const cases: ReadonlyArray<readonly [name: string, given: string, allowed: string]> = [
    ...counts.flatMap((name) =>
      ["0", "-1", "1.5", "1e3", "ten", "0x10", "9007199254740993", "1,000", "NaN"].map(
        (given) =>
          [
            name,
            given,
            `a whole number of at least 1${name === "samples_per_prompt" ? " and at most 100000" : ""}`
          ] as const
      )
    ),
    ["log_prefix_chars", "-1", "a whole number of at least 0"],
    ["seed", "1.5", "a whole number"],
    ["seed", "99999999999999999999", "a whole number"],
    ["provider_sort", "cheap", "price, throughput, latency"],
    ["reasoning_effort", "max", "none, minimal, low, medium, high, xhigh"],
    ["reasoning_filter", "yes", "auto, on, off"],
    ["network", "maybe", "on, off, true, false"],
    ["sandbox", "podman", "auto, local, docker, singularity, modal"],
    ["base_url", "openrouter.ai", "an http or https address, such as http://127.0.0.1:8000/v1"],
    ["base_url", "ftp://host/v1", "an http or https address, such as http://127.0.0.1:8000/v1"],
    ...["../up", "a/b", "/abs", ".", "..", "a\\b", "a b", "a\0b", "ü", "x".repeat(201), "a\nb"].map(
      (given) => ["run_name", given, "at most 200 letters, digits, . _ - (a name, no path)"] as const
    )
  ]
  it.each(cases)("of --%s is told with what was given and what is allowed: %j.", (name, given, allowed) => {
    expect(complaint({ [name]: given })).toBe(`--${name}: given ${JSON.stringify(given)}, allowed: ${allowed}`)
  })
  it("of --sandbox that is planned says so.", () => {
    for (const name of ["docker", "singularity", "modal"]) {
      expect(complaint({ sandbox: name })).toBe(
        `--sandbox=${name} is not part of this version yet; allowed: auto, local`
      )
    }
  })
  it("is no such name: letters, digits, dots, dashes and underscores name a run.", () => {
    for (const name of ["a", "A-1_b.c", "...", "-x", "x".repeat(200)])
      expect(config({ run_name: name }).run_name).toBe(name)
  })
})

describe("The prefill file", () => {
  const prefill = (content: string | Uint8Array) =>
    Effect.map(Folder.scoped, (folder) => {
      const path = join(folder, "prefill.json")
      writeFileSync(path, content)
      return path
    })
  it.scoped("is an array of messages.", () =>
    Effect.gen(function* () {
      const messages = [
        { role: "user", content: "2+2?" },
        { role: "assistant", content: "4" }
      ]
      expect(config({ prefill_messages_file: yield* prefill(JSON.stringify(messages)) }).prefill_messages).toEqual(
        messages
      )
      expect(config({ prefill_messages_file: yield* prefill("\ufeff[]") }).prefill_messages).toEqual([])
    })
  )
  it.scoped("that does not fit is told in one line, with the place.", () =>
    Effect.gen(function* () {
      for (const [content, where] of [
        ["{", ""],
        ["{}", ""],
        ['[{"role":"tool","content":"x"}]', "0.role"],
        ['[{"role":"user"}]', "0.content: is missing"]
      ] as const) {
        const message = complaint({ prefill_messages_file: yield* prefill(content) })
        expect(message).toMatch(
          /^--prefill_messages_file: \S+ (?:does not fit|is not JSON)[^\n]*, allowed: a JSON array of \{"role": [^\n]*$/
        )
        expect(message).toContain(where)
      }
    })
  )
  it("that is not there is told with its path.", () => {
    expect(complaint({ prefill_messages_file: "/no/such.json" })).toMatch(
      /^--prefill_messages_file: given "\/no\/such\.json", allowed: an existing file with /
    )
    expect(complaint({ prefill_messages_file: "/" })).toBe(
      '--prefill_messages_file: given "/", allowed: a file that can be read'
    )
  })
})

describe("The key", () => {
  const all = { OPENROUTER_API_KEY: "router", BATCH_RUNNER_API_KEY: "ours", OPENAI_API_KEY: "openai" }
  const key = (given: Given, environment: Readonly<Record<string, string>>) =>
    Either.match(parse({ model: "m", ...given }, environment), {
      onLeft: ({ message }) => message,
      onRight: ({ apiKey }) => (apiKey === undefined ? "none" : Redacted.value(apiKey))
    })
  const elsewhere = { base_url: "https://api.example.com/v1" }

  it("of the default endpoint is OpenRouter's, else ours, and never OpenAI's.", () => {
    expect(key({}, all)).toBe("router")
    expect(key({}, { ...all, OPENROUTER_API_KEY: "" })).toBe("ours")
    expect(key({}, { OPENAI_API_KEY: "openai" })).toBe(
      "no API key for openrouter.ai: set OPENROUTER_API_KEY or BATCH_RUNNER_API_KEY, or give --api_key; --model=scripted needs none"
    )
    expect(key({ base_url: "https://openrouter.ai/api/v1/" }, { OPENAI_API_KEY: "openai" })).toMatch(/^no API key/)
  })
  it("of another endpoint is ours, else OpenAI's, and never OpenRouter's.", () => {
    expect(key(elsewhere, all)).toBe("ours")
    expect(key(elsewhere, { ...all, BATCH_RUNNER_API_KEY: " " })).toBe("openai")
    expect(key(elsewhere, { OPENROUTER_API_KEY: "router" })).toMatch(
      /^no API key for api\.example\.com: set BATCH_RUNNER_API_KEY or OPENAI_API_KEY, /
    )
    expect(key({ base_url: "https://openrouter.ai.evil.com/v1" }, { OPENROUTER_API_KEY: "router" })).toMatch(
      /^no API key/
    )
  })
  it("may be given by hand, and an empty one is none.", () => {
    expect(key({ api_key: " mine " }, all)).toBe("mine")
    expect(key({ api_key: "" }, all)).toBe("router")
  })
  it("is not needed on this machine, nor by the offline model.", () => {
    for (const base_url of [
      "http://localhost:1/v1",
      "http://127.0.0.1/v1",
      "http://127.9.9.9/v1",
      "http://[::1]:8/v1",
      "http://x.localhost/v1"
    ]) {
      expect(key({ base_url }, {})).toBe("none")
    }
    for (const base_url of [
      "http://127.0.0.1.example.com/v1",
      "http://localhost.example.com/v1",
      "http://10.0.0.1/v1"
    ]) {
      expect(key({ base_url }, {})).toMatch(/^no API key/)
    }
    expect([key({ model: "scripted" }, all), key({ model: "scripted:x.json" }, {})]).toEqual(["none", "none"])
    expect(key({ model: "scripted-not" }, {})).toMatch(/^no API key/)
  })
  it("with characters that no key has is refused without being shown.", () => {
    for (const given of ["a b", "schlüssel", "x\ny"]) {
      const message = key({ api_key: given }, {})
      expect(message).toMatch(/^--api_key: the key holds characters that no key has/)
      expect(message).not.toContain(given)
    }
  })
  it("does not show where the request is printed.", () => {
    const request = Either.getOrThrowWith(parse({ model: "m" }, all), (error) => error)
    expect(JSON.stringify(request) + String(request.apiKey)).not.toContain('router"')
  })
})
