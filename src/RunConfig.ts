/** Everything that decides a run, without its secrets. */
import { Context, Schema } from "effect"

/** US dollars per million tokens. */
export const Price = Schema.Struct({
  prompt: Schema.NonNegative,
  completion: Schema.NonNegative,
  /** Of prompt tokens that the endpoint had kept; as others when absent. */
  cached: Schema.optional(Schema.NonNegative)
})
export type Price = typeof Price.Type

const Count = Schema.Int.pipe(Schema.positive())

/** Sessions per prompt at most. */
export const samplesAtMost = 100_000

/** A message that stands before the prompt on every call and is saved nowhere. */
export const PrefillMessage = Schema.Struct({
  role: Schema.Literal("system", "user", "assistant"),
  content: Schema.String
})
export type PrefillMessage = typeof PrefillMessage.Type

export const ReasoningEffort = Schema.Literal("none", "minimal", "low", "medium", "high", "xhigh")
export const ProviderSort = Schema.Literal("price", "throughput", "latency")
export const SandboxKind = Schema.Literal("auto", "local", "docker", "singularity", "modal")
export const Concurrency = Schema.Literal("adaptive", "fixed")
export const SearchBackend = Schema.Literal("searxng", "brave", "tavily", "exa", "serper", "firecrawl")
export const ExtractBackend = Schema.Literal("builtin", "firecrawl", "jina")
export const ImageBackend = Schema.Literal("endpoint", "fal")
export const ReasoningFilter = Schema.Literal("auto", "on", "off")

const Settings = Schema.Struct({
  dataset_file: Schema.String,
  /** Prompts per batch file. */
  batch_size: Count,
  run_name: Schema.String,
  /** Folder that holds the run folders. */
  output_dir: Schema.String,
  distribution: Schema.String,
  /** Percent by toolset of a distribution from a file, which may change under its name; null for one that comes with the program. */
  distribution_toolsets: Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.Number })),
  model: Schema.String,
  base_url: Schema.String,
  /** Model calls per prompt at most. */
  max_turns: Count,
  /** Prompts in flight at most. */
  num_workers: Count,
  resume: Schema.Boolean,
  max_samples: Schema.NullOr(Count),
  max_tokens: Schema.NullOr(Count),
  providers_allowed: Schema.Array(Schema.String),
  providers_ignored: Schema.Array(Schema.String),
  providers_order: Schema.Array(Schema.String),
  provider_sort: Schema.NullOr(ProviderSort),
  reasoning_effort: Schema.NullOr(ReasoningEffort),
  reasoning_disabled: Schema.Boolean,
  reasoning_filter: ReasoningFilter,
  ephemeral_system_prompt: Schema.String,
  prefill_messages: Schema.Array(PrefillMessage),
  log_prefix_chars: Schema.NonNegativeInt,
  verbose: Schema.Boolean,
  seed: Schema.Int,
  sandbox: SandboxKind,
  /** Container image of prompts that name none; empty for none. */
  image: Schema.String,
  cwd: Schema.String,
  network: Schema.Boolean,
  /** Processors per container at most; null for the backend's own choice. */
  cpus: Schema.NullOr(Schema.Number.pipe(Schema.positive())),
  /** Bytes of memory per container at most; null for the backend's own choice. */
  memory: Schema.NullOr(Count),
  /** Sandboxes that exist at once at most; null for twice the prompts in flight: those that are released count too. */
  max_sandboxes: Schema.NullOr(Count),
  /** Containers started per second at most, and as many under way. */
  sandbox_starts: Count,
  samples_per_prompt: Count.pipe(Schema.lessThanOrEqualTo(samplesAtMost)),
  /** Seconds a prompt may take, model and tools together. */
  timeout: Count,
  /** Seconds a command may take. */
  command_timeout: Count,
  strict_toolsets: Schema.Boolean,
  /** Whether calls in flight follow what the endpoint takes, or are as many as there are prompts in flight. */
  concurrency: Concurrency,
  /** Seconds that the run waits for an endpoint that is down. */
  max_wait: Count,
  /** Failures of the same kind in a row, with no success in between, that stop the run. */
  max_consecutive_failures: Count,
  /** Kinds of earlier failures whose prompts run again on resume; null for all that may go better. */
  retry_failed: Schema.NullOr(Schema.Array(Schema.String)),
  /** US dollars that the run may cost, all its sessions together. */
  max_cost: Schema.NullOr(Schema.Number.pipe(Schema.positive())),
  /** Tokens, prompt and completion, that the run may use, all its sessions together. */
  max_total_tokens: Schema.NullOr(Count),
  max_cost_per_prompt: Schema.NullOr(Schema.Number.pipe(Schema.positive())),
  max_tokens_per_prompt: Schema.NullOr(Count),
  /** What calls cost by model id, where the endpoint does not say; `*` for every other model. */
  prices: Schema.Record({ key: Schema.String, value: Price }),
  /** Whether models that want it are told what of a request to keep for the next. */
  prompt_cache: Schema.Boolean,
  /** Whether answers are kept beside the runs and taken from there. */
  cache: Schema.Boolean,
  /** Whether all is only looked at, and nothing run. */
  dry_run: Schema.Boolean,
  /** File that gets a line for each happening; empty for none. */
  events: Schema.String,
  /** Whether tools that fetch addresses reach private, loopback and link-local ones. */
  allow_private_network: Schema.Boolean,
  /** Backend of web_search; null for the first that is configured. */
  search_backend: Schema.NullOr(SearchBackend),
  extract_backend: ExtractBackend,
  /** Model of vision_analyze; empty for the run's own where that takes images. */
  vision_model: Schema.String,
  image_model: Schema.String,
  /** Backend of image_generate; null for what is configured. */
  image_backend: Schema.NullOr(ImageBackend),
  tts_model: Schema.String,
  tts_voice: Schema.String,
  /** Reference models of mixture_of_agents; none for the run's own, asked several times. */
  moa_models: Schema.Array(Schema.String),
  /** Empty for the run's own. */
  moa_aggregator: Schema.String,
  /** Browser contexts at once at most. */
  max_browsers: Count,
  /** File of MCP servers; empty for none. */
  mcp_config: Schema.String
})

export type Settings = typeof Settings.Type

/** The configuration of a run. */
export class RunConfig extends Context.Tag("batch-runner/RunConfig")<RunConfig, Settings>() {}

/** What holds where nothing else is said. */
export const defaults = {
  output_dir: "data",
  distribution: "default",
  distribution_toolsets: null,
  model: "anthropic/claude-sonnet-4.6",
  base_url: "https://openrouter.ai/api/v1",
  max_turns: 10,
  num_workers: 4,
  resume: false,
  max_samples: null,
  max_tokens: null,
  providers_allowed: [],
  providers_ignored: [],
  providers_order: [],
  provider_sort: null,
  reasoning_effort: null,
  reasoning_disabled: false,
  reasoning_filter: "auto",
  ephemeral_system_prompt: "",
  prefill_messages: [],
  log_prefix_chars: 100,
  verbose: false,
  seed: 0,
  sandbox: "auto",
  image: "",
  cwd: "",
  network: true,
  cpus: null,
  memory: null,
  max_sandboxes: null,
  sandbox_starts: 10,
  samples_per_prompt: 1,
  timeout: 3600,
  command_timeout: 180,
  strict_toolsets: false,
  concurrency: "adaptive",
  max_wait: 3600,
  max_consecutive_failures: 20,
  retry_failed: null,
  max_cost: null,
  max_total_tokens: null,
  max_cost_per_prompt: null,
  max_tokens_per_prompt: null,
  prices: {},
  prompt_cache: true,
  cache: false,
  dry_run: false,
  events: "",
  allow_private_network: false,
  search_backend: null,
  extract_backend: "builtin",
  vision_model: "",
  image_model: "",
  image_backend: null,
  tts_model: "",
  tts_voice: "",
  moa_models: [],
  moa_aggregator: "",
  max_browsers: 8,
  mcp_config: ""
} satisfies Partial<Settings>

type Required = "dataset_file" | "batch_size" | "run_name"

/** A configuration from what must be said and what differs from the defaults. */
export const make = (settings: Pick<Settings, Required> & Partial<Settings>): Settings => ({ ...defaults, ...settings })

/** What `reasoning` is sent to the endpoint; undefined for none. */
export const reasoningSent = (config: Settings): { readonly effort: string } | undefined => {
  if (config.reasoning_disabled) return { effort: "none" }
  return config.reasoning_effort === null ? undefined : { effort: config.reasoning_effort }
}

/** Whether rows without reasoning are discarded: never where none was asked for, unless the filter is forced. */
export const filtersReasoning = (config: Settings): boolean =>
  config.reasoning_filter === "auto" ? reasoningSent(config)?.effort !== "none" : config.reasoning_filter === "on"

/** What `provider` is sent to the endpoint; undefined for none. */
export const providerSent = (config: Settings): Readonly<Record<string, unknown>> | undefined => {
  const provider = {
    ...(config.providers_allowed.length > 0 && { only: config.providers_allowed }),
    ...(config.providers_ignored.length > 0 && { ignore: config.providers_ignored }),
    ...(config.providers_order.length > 0 && { order: config.providers_order }),
    ...(config.provider_sort !== null && { sort: config.provider_sort })
  }
  return Object.keys(provider).length > 0 ? provider : undefined
}
