/** Whatever spelling is typed becomes one spelling; what cannot be understood is told in one line. */
import { spawnSync } from "node:child_process"
import { tmpdir } from "node:os"
import { Either, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { normalize, resuming } from "../../src/cli/Argv.ts"
import { flags } from "../../src/cli/Flags.ts"

const tokens = (...argv: ReadonlyArray<string>) => Either.getOrThrowWith(normalize(argv), (error) => error)
const complaint = (...argv: ReadonlyArray<string>) =>
  Either.match(normalize(argv), { onLeft: ({ message }) => message, onRight: (all) => `fits: ${all.join(" ")}` })

const switches = flags.filter(({ kind }) => kind === "switch").map(({ name }) => name)
const values = flags.filter(({ kind }) => kind === "value").map(({ name }) => name)

describe("An option", () => {
  it("may be written with underscores or dashes, with = or with a space.", () => {
    for (const name of values) {
      const dashed = name.replaceAll("_", "-")
      for (const argv of [[`--${name}=v`], [`--${name}`, "v"], [`--${dashed}=v`], [`--${dashed}`, "v"]]) {
        expect(tokens(...argv)).toEqual([`--${name}`, "=v"])
      }
    }
  })
  it("takes any value word for word.", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        expect(tokens(`--model=${value}`)).toEqual(["--model", `=${value}`])
      })
    )
    expect(tokens("--ephemeral_system_prompt=a=b=c")).toEqual(["--ephemeral_system_prompt", "=a=b=c"])
    expect(tokens("--model=")).toEqual(["--model", "="])
    expect(tokens("--model", "")).toEqual(["--model", "="])
  })
  it("takes values that begin with a dash, unless they are options of ours.", () => {
    expect(
      tokens("--seed", "-5", "--ephemeral_system_prompt", "--be brief", "--model", "-h", "--cwd", "--x=1")
    ).toEqual(["--seed", "=-5", "--ephemeral_system_prompt", "=--be brief", "--model", "=-h", "--cwd", "=--x=1"])
    expect(complaint("--model", "--max-turns", "3")).toBe("--model needs a value: --model=<id>")
    expect(complaint("--model", "--resume=true")).toBe("--model needs a value: --model=<id>")
  })
  it("without a value says which it takes.", () => {
    expect(complaint("--batch_size=2", "--dataset-file")).toBe("--dataset_file needs a value: --dataset_file=<path>")
  })
  it("given twice counts as given last.", () => {
    expect(tokens("--model=a", "--seed=1", "--model", "b")).toEqual(["--model", "=b", "--seed", "=1"])
  })
})

describe("A switch", () => {
  it("stands alone, or with true or false in any of the usual words and cases.", () => {
    for (const name of switches) {
      expect(tokens(`--${name}`)).toEqual([`--${name}`])
      for (const yes of ["true", "True", "TRUE", "1", "yes", "on"]) {
        expect(tokens(`--${name}=${yes}`)).toEqual([`--${name}`])
        expect(tokens(`--${name}`, yes)).toEqual([`--${name}`])
      }
      for (const no of ["false", "False", "0", "no", "off"]) {
        // Said, and not left out: it may be on in the user's config file.
        expect(tokens(`--${name}=${no}`)).toEqual([`--${name}=false`])
        expect(tokens(`--${name}`, no)).toEqual([`--${name}=false`])
      }
    }
  })
  it("given twice counts as given last.", () => {
    expect([tokens("--resume", "--resume=false"), tokens("--resume=False", "--resume")]).toEqual([
      ["--resume=false"],
      ["--resume"]
    ])
  })
  it("is followed by the next option.", () => {
    expect(tokens("--resume", "--verbose", "--seed", "1")).toEqual(["--resume", "--verbose", "--seed", "=1"])
  })
  it("takes no other value.", () => {
    expect(complaint("--resume=maybe")).toBe('--resume: given "maybe", allowed: true or false, or no value')
    expect(complaint("--resume=")).toBe('--resume: given "", allowed: true or false, or no value')
    expect(complaint("--resume", "maybe")).toBe('unexpected "maybe": options are written --name=value or --name value')
  })
})

describe("What is no option", () => {
  it.each([
    ["--datset_file=x", "--datset_file is not an option; did you mean --dataset_file?"],
    ["--max-turn", "--max-turn is not an option; did you mean --max_turns?"],
    ["--Resume", "--Resume is not an option; did you mean --resume?"],
    ["--frobnicate=1", "--frobnicate is not an option; --help lists all of them"],
    ["data.jsonl", 'unexpected "data.jsonl": options are written --name=value or --name value'],
    ["-r", 'unexpected "-r": options are written --name=value or --name value']
  ])("is told as such: %s.", (given, message) => {
    expect(complaint("--seed=1", given)).toBe(message)
  })
  it("but belongs to the parser is left to it.", () => {
    expect(tokens("--completions", "bash")).toEqual(["--completions", "bash"])
  })
})

it("Every option of the contract is known.", () => {
  const contract =
    "dataset_file batch_size run_name distribution model base_url api_key max_turns num_workers resume verbose max_samples max_tokens providers_allowed providers_ignored providers_order provider_sort reasoning_effort reasoning_disabled ephemeral_system_prompt log_prefix_chars prefill_messages_file list_distributions seed sandbox image cwd samples_per_prompt timeout command_timeout max_cost reasoning_filter output_dir concurrency max_wait cpus memory network strict_toolsets max_sandboxes sandbox_starts max_consecutive_failures retry_failed max_total_tokens max_cost_per_prompt max_tokens_per_prompt prices no_prompt_cache cache dry_run events search_backend extract_backend allow_private_network vision_model image_model image_backend tts_model tts_voice moa_models moa_aggregator max_browsers browser_cdp_url mcp_config"
  expect(flags.map(({ name }) => name).toSorted()).toEqual(contract.split(" ").toSorted())
})

describe("The command that goes on with a run", () => {
  it("is the one that was typed, with --resume, quoted for a shell, and without secrets.", () => {
    const typed = tokens(
      "--dataset-file=my data/it's.jsonl",
      "--batch_size",
      "10",
      "--run_name=r",
      "--seed=-1",
      "--verbose",
      "--api_key=SECRET",
      "--ephemeral_system_prompt=SECRET"
    )
    const command = resuming(typed)
    expect(command).toContain("--batch_size=10")
    expect(command).toContain("--seed=-1")
    expect(command).toContain("my data/it'\\''s.jsonl")
    expect(command.match(/--resume/g)?.length).toBe(1)
    expect(resuming(tokens("--resume", "--seed=1")).match(/--resume/g)?.length).toBe(1)
    expect(resuming(tokens("--resume=false", "--cache=no"))).toBe("batch-runner --cache=false --resume")
    expect(command).not.toContain("SECRET")
    // What is not shown must not be taken for what was given.
    expect(spawnSync("sh", ["-c", command], { cwd: tmpdir(), encoding: "utf8" })).toMatchObject({
      status: expect.toSatisfy((status: number) => status !== 0),
      stdout: ""
    })
    expect(command).toContain("--ephemeral_system_prompt=<as before>")
    expect(resuming(tokens("--browser_cdp_url=wss://host/SECRET"))).toContain("--browser_cdp_url=<as before>")
    for (const address of ["https://me:SECRET@host/v1", "https://host/v1?key=SECRET"]) {
      expect(resuming(tokens(`--base_url=${address}`))).toContain("--base_url=<as before>")
    }
    expect(resuming(tokens("--base_url=https://host/v1"))).toContain("--base_url=https://host/v1")
  })
})
