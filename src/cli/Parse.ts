/** What was typed, as the configuration of a run: every value checked, the first wrong one named. */
import { Either, type Redacted, Schema } from "effect"
import { failureKinds } from "../agent/Ending.ts"
import * as RunConfig from "../RunConfig.ts"
import * as Variables from "../tools/Variables.ts"
import * as Key from "./Key.ts"
import { moaModels, modelId, pricesOf } from "./ModelOptions.ts"
import { UsageError } from "./UsageError.ts"
import {
  amount,
  bad,
  choice,
  count,
  filled,
  jsonFile,
  list,
  notEmpty,
  on,
  positive,
  type Read,
  required,
  type Typed,
  text,
  whole
} from "./Values.ts"

const { defaults } = RunConfig

/** A run that can be started as far as its command line tells. */
export interface Request {
  readonly config: RunConfig.Settings
  readonly apiKey: Redacted.Redacted | undefined
  /** Keys and addresses of services that tools use. */
  readonly variables: Variables.Variables
}

const runName = (typed: Typed): Read<string> =>
  Either.filterOrLeft(
    required(typed, "run_name", "a name for the run's folder"),
    (name) => /^[A-Za-z0-9._-]{1,200}$/.test(name) && name !== "." && name !== "..",
    (name) => bad("run_name", name, "at most 200 letters, digits, . _ - (a name, no path)")
  )

const address = "an http or https address, such as http://127.0.0.1:8000/v1"

/** The whole address of the chat completions does as well. */
const baseUrl = (typed: Typed): Read<string> =>
  Either.flatMap(notEmpty(typed, "base_url", defaults.base_url, address), (value) =>
    URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
      ? Either.right(value.replace(/\/+$/, "").replace(/\/chat\/completions$/, ""))
      : Either.left(bad("base_url", value, address))
  )

/** An image for all, or the sandbox on this machine that runs none. */
const sandboxAndImage = (typed: Typed): Read<Pick<RunConfig.Settings, "sandbox" | "image">> =>
  Either.gen(function* () {
    const sandbox = yield* choice(typed, "sandbox", RunConfig.SandboxKind, defaults.sandbox)
    const image = yield* notEmpty(typed, "image", defaults.image, "the name of a container image")
    if (image === "" || sandbox !== "local") return { sandbox, image }
    return yield* Either.left(
      new UsageError({
        detail: `--image: given ${JSON.stringify(image)}, and --sandbox=local runs no images; leave one out`
      })
    )
  })

const cpus = (typed: Typed): Read<number | null> => {
  const value = text(typed, "cpus")?.trim()
  if (value === undefined) return Either.right(defaults.cpus)
  const allowed = /^\d+(\.\d+)?$/.test(value) && Number(value) >= 0.01 && Number(value) <= 10_000
  return allowed
    ? Either.right(Number(value))
    : Either.left(bad("cpus", value, "a number of processors of at least 0.01, such as 2 or 0.5"))
}

const prefill = (typed: Typed): Read<RunConfig.Settings["prefill_messages"]> =>
  jsonFile(
    typed,
    "prefill_messages_file",
    Schema.Array(RunConfig.PrefillMessage),
    defaults.prefill_messages,
    'a JSON array of {"role": "system" | "user" | "assistant", "content": "…"}'
  )

const dollars = <F>(typed: Typed, name: string, fallback: F): Read<number | F> =>
  positive(typed, name, fallback, "dollars above 0, such as 5 or 0.25")

/** Kinds of failures; `all` is every kind there is. */
const retryFailed = (typed: Typed): Read<RunConfig.Settings["retry_failed"]> => {
  if (text(typed, "retry_failed") === undefined) return Either.right(defaults.retry_failed)
  const kinds = list(typed, "retry_failed").map((kind) => kind.toLowerCase().replaceAll("-", "_"))
  const unknown = kinds.find((kind) => kind !== "all" && !failureKinds.includes(kind))
  if (kinds.length === 0 || unknown !== undefined) {
    return Either.left(bad("retry_failed", unknown ?? "", `all, or some of ${failureKinds.join(", ")}`))
  }
  return Either.right(kinds.includes("all") ? ["all"] : kinds)
}

const OnOff = Schema.Literal("on", "off", "true", "false")

const network = (typed: Typed): Read<boolean> =>
  Either.map(choice(typed, "network", OnOff, "on"), (value) => value === "on" || value === "true")

export type Environment = Readonly<Record<string, string | undefined>>

const cdpAddress = "the CDP address of a browser, such as ws://127.0.0.1:9222 or wss://…"

/** Options that may hold a secret, so that no file keeps them: they stand for a variable. */
const secretOptions = (typed: Typed): Read<Environment> =>
  Either.flatMap(notEmpty(typed, "browser_cdp_url", "", cdpAddress), (url) =>
    url === "" || (URL.canParse(url) && /^(wss?|https?):$/.test(new URL(url).protocol))
      ? Either.right({ BROWSER_CDP_URL: url })
      : Either.left(new UsageError({ detail: `--browser_cdp_url: what was given is none, allowed: ${cdpAddress}` }))
  )

/** What tools and the key are looked up in: options, environment, config file. */
export const variablesOf = (
  typed: Typed,
  environment: Environment,
  file: Environment = {}
): Read<Variables.Variables> =>
  Either.map(secretOptions(typed), (options) => Variables.from(options, environment, file))

/** Checks everything that was typed; `file` are the variables of the user's config file. */
export const parse = (typed: Typed, environment: Environment, file: Environment = {}): Read<Request> =>
  Either.gen(function* () {
    const config = yield* settings(typed)
    const variables = yield* variablesOf(typed, environment, file)
    return { config, apiKey: yield* Key.find(typed, config, variables), variables }
  })

/** The configuration that was typed, its key apart. */
export const settings = (typed: Typed): Read<RunConfig.Settings> =>
  Either.gen(function* () {
    const model = yield* modelId(typed, "model")
    const vision_model = yield* modelId(typed, "vision_model")
    const moa_models = yield* moaModels(typed)
    const moa_aggregator = yield* modelId(typed, "moa_aggregator")
    const config: RunConfig.Settings = {
      dataset_file: yield* required(typed, "dataset_file", "the path of a JSONL file"),
      batch_size: yield* Either.flatMap(
        required(typed, "batch_size", "prompts per batch file, a whole number of at least 1"),
        () => count(typed, "batch_size", 1)
      ),
      run_name: yield* runName(typed),
      output_dir: yield* notEmpty(typed, "output_dir", defaults.output_dir, "the path of a folder"),
      distribution: yield* notEmpty(typed, "distribution", defaults.distribution, "a name or the path of a file"),
      distribution_toolsets: defaults.distribution_toolsets,
      model,
      base_url: yield* baseUrl(typed),
      max_turns: yield* count(typed, "max_turns", defaults.max_turns),
      num_workers: yield* count(typed, "num_workers", defaults.num_workers),
      resume: on(typed, "resume"),
      max_samples: yield* count(typed, "max_samples", defaults.max_samples),
      max_tokens: yield* count(typed, "max_tokens", defaults.max_tokens),
      providers_allowed: list(typed, "providers_allowed"),
      providers_ignored: list(typed, "providers_ignored"),
      providers_order: list(typed, "providers_order"),
      provider_sort: yield* choice(typed, "provider_sort", RunConfig.ProviderSort, defaults.provider_sort),
      reasoning_effort: yield* choice(typed, "reasoning_effort", RunConfig.ReasoningEffort, defaults.reasoning_effort),
      reasoning_disabled: on(typed, "reasoning_disabled"),
      reasoning_filter: yield* choice(typed, "reasoning_filter", RunConfig.ReasoningFilter, defaults.reasoning_filter),
      ephemeral_system_prompt: text(typed, "ephemeral_system_prompt") ?? defaults.ephemeral_system_prompt,
      prefill_messages: yield* prefill(typed),
      log_prefix_chars: yield* whole(typed, "log_prefix_chars", defaults.log_prefix_chars, 0),
      verbose: on(typed, "verbose"),
      seed: yield* whole(typed, "seed", defaults.seed),
      ...(yield* sandboxAndImage(typed)),
      cwd: filled(typed, "cwd") ?? defaults.cwd,
      network: yield* network(typed),
      cpus: yield* cpus(typed),
      memory: yield* amount(typed, "memory", defaults.memory),
      max_sandboxes: yield* count(typed, "max_sandboxes", defaults.max_sandboxes),
      sandbox_starts: yield* count(typed, "sandbox_starts", defaults.sandbox_starts, 1000),
      samples_per_prompt: yield* count(
        typed,
        "samples_per_prompt",
        defaults.samples_per_prompt,
        RunConfig.samplesAtMost
      ),
      timeout: yield* count(typed, "timeout", defaults.timeout),
      command_timeout: yield* count(typed, "command_timeout", defaults.command_timeout),
      strict_toolsets: on(typed, "strict_toolsets"),
      concurrency: yield* choice(typed, "concurrency", RunConfig.Concurrency, defaults.concurrency),
      max_wait: yield* count(typed, "max_wait", defaults.max_wait),
      max_consecutive_failures: yield* count(typed, "max_consecutive_failures", defaults.max_consecutive_failures),
      retry_failed: yield* retryFailed(typed),
      max_cost: yield* dollars(typed, "max_cost", defaults.max_cost),
      max_total_tokens: yield* count(typed, "max_total_tokens", defaults.max_total_tokens),
      max_cost_per_prompt: yield* dollars(typed, "max_cost_per_prompt", defaults.max_cost_per_prompt),
      max_tokens_per_prompt: yield* count(typed, "max_tokens_per_prompt", defaults.max_tokens_per_prompt),
      prices: yield* pricesOf(typed, [model, vision_model, ...moa_models, moa_aggregator]),
      prompt_cache: !on(typed, "no_prompt_cache"),
      cache: on(typed, "cache"),
      dry_run: on(typed, "dry_run"),
      events: yield* notEmpty(typed, "events", defaults.events, "the path of a file"),
      allow_private_network: on(typed, "allow_private_network"),
      search_backend: yield* choice(typed, "search_backend", RunConfig.SearchBackend, defaults.search_backend),
      extract_backend: yield* choice(typed, "extract_backend", RunConfig.ExtractBackend, defaults.extract_backend),
      vision_model,
      image_model: yield* notEmpty(typed, "image_model", defaults.image_model, "a model id"),
      image_backend: yield* choice(typed, "image_backend", RunConfig.ImageBackend, defaults.image_backend),
      tts_model: yield* notEmpty(typed, "tts_model", defaults.tts_model, "a model id"),
      tts_voice: yield* notEmpty(typed, "tts_voice", defaults.tts_voice, "the name of a voice"),
      moa_models,
      moa_aggregator,
      max_browsers: yield* count(typed, "max_browsers", defaults.max_browsers),
      mcp_config: yield* notEmpty(typed, "mcp_config", defaults.mcp_config, "the path of a JSON file")
    }
    return config
  })
