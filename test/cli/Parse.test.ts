/** Every value is checked before anything starts, and each complaint names the option, what was given and what is allowed. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { flags } from "../../src/cli/Flags.ts"
import * as RunConfig from "../../src/RunConfig.ts"
import * as Folder from "../support/Folder.ts"
import { complaint, config, least } from "./typed.ts"

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
  it("of --retry_failed are kinds of failures, or every kind there is, those of other versions too.", () => {
    expect(config().retry_failed).toBeNull()
    expect(config({ retry_failed: "Rate_Limited, content_refused" }).retry_failed).toEqual([
      "rate_limited",
      "content_refused"
    ])
    expect(config({ retry_failed: "lost,all" }).retry_failed).toEqual(["all"])
    expect(complaint({ retry_failed: "refuse" })).toMatch(/--retry_failed.*refuse.*all, or some of rate_limited, /)
  })
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
        sandbox: "Docker",
        image: " python:3.11-slim ",
        cpus: "0.5",
        memory: "512m",
        max_sandboxes: "12",
        sandbox_starts: "3",
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
      sandbox: "docker",
      image: "python:3.11-slim",
      cpus: 0.5,
      memory: 512 * 2 ** 20,
      max_sandboxes: 12,
      sandbox_starts: 3,
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
  it("of memory may have any usual unit, and are bytes.", () => {
    const amounts = {
      "16m": 2 ** 24,
      "16777216": 2 ** 24,
      "2g": 2 ** 31,
      "2G": 2 ** 31,
      "2gb": 2 ** 31,
      "2GiB": 2 ** 31
    }
    const more = { "512 m": 2 ** 29, "524288k": 2 ** 29, "0.5g": 2 ** 29, "16777216b": 2 ** 24, "1t": 2 ** 40 }
    for (const [given, bytes] of Object.entries({ ...amounts, ...more })) {
      expect(config({ memory: given }).memory, given).toBe(bytes)
    }
  })
  it("of cpus may be a part of one, and many.", () => {
    for (const given of ["0.01", "0.5", "1", "2.25", "64", "10000"]) {
      expect(config({ cpus: given }).cpus).toBe(Number(given))
    }
  })
  it("of what containers may take are the backend's own where none are given.", () => {
    expect(config()).toMatchObject({ cpus: null, memory: null, max_sandboxes: null, network: true })
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
    "command_timeout",
    "max_sandboxes",
    "sandbox_starts"
  ]
  const limits = new Map([
    ["samples_per_prompt", " and at most 100000"],
    ["sandbox_starts", " and at most 1000"]
  ])
  const cases: ReadonlyArray<readonly [name: string, given: string, allowed: string]> = [
    ...counts.flatMap((name) =>
      ["0", "-1", "1.5", "1e3", "ten", "0x10", "9007199254740993", "1,000", "NaN"].map(
        (given) => [name, given, `a whole number of at least 1${limits.get(name) ?? ""}`] as const
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
    ["sandbox_starts", "1001", "a whole number of at least 1 and at most 1000"],
    ...["0", "0.001", "-1", "two", "1e3", "1,5", "10001", "Infinity", "0x2", "50%"].map(
      (given) => ["cpus", given, "a number of processors of at least 0.01, such as 2 or 0.5"] as const
    ),
    ...["0", "15m", "16777215", "-1g", "1.5", "lots", "1e9", "2 gb x", "g", "512mm", "9".repeat(20)].map(
      (given) => ["memory", given, "an amount of at least 16m, such as 512m or 2g"] as const
    ),
    ["base_url", "openrouter.ai", "an http or https address, such as http://127.0.0.1:8000/v1"],
    ["base_url", "ftp://host/v1", "an http or https address, such as http://127.0.0.1:8000/v1"],
    ...["../up", "a/b", "/abs", ".", "..", "a\\b", "a b", "a\0b", "ü", "x".repeat(201), "a\nb"].map(
      (given) => ["run_name", given, "at most 200 letters, digits, . _ - (a name, no path)"] as const
    )
  ]
  it.each(cases)("of --%s is told with what was given and what is allowed: %j.", (name, given, allowed) => {
    expect(complaint({ [name]: given })).toBe(`--${name}: given ${JSON.stringify(given)}, allowed: ${allowed}`)
  })
  it("of --sandbox is none of these: each backend has a name, in any case.", () => {
    for (const name of ["auto", "local", "docker", "singularity", "modal"] as const) {
      expect(config({ sandbox: name.toUpperCase() }).sandbox).toBe(name)
    }
    expect(config()).toMatchObject({ sandbox: "auto", image: "" })
  })
  it("is an image for the sandbox that runs none, however both are written.", () => {
    for (const sandbox of ["local", " Local "]) {
      expect(complaint({ sandbox, image: "python:3" })).toBe(
        '--image: given "python:3", and --sandbox=local runs no images; leave one out'
      )
    }
    for (const sandbox of ["auto", "docker", "singularity", "modal"]) {
      expect(config({ sandbox, image: "python:3" })).toMatchObject({ sandbox, image: "python:3" })
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
