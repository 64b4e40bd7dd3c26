/** Every option of the command as a person types it: its name, what it takes and what it is for. */
import { defaults } from "../RunConfig.ts"

export interface Flag {
  readonly name: string
  /** Whether it stands alone or takes a value; a switch's value may be left out. */
  readonly kind: "switch" | "value"
  /** What a value is called in the help. */
  readonly takes: string
  readonly help: string
}

const value = (name: string, takes: string, help: string): Flag => ({ name, kind: "value", takes, help })
const toggle = (name: string, help: string): Flag => ({ name, kind: "switch", takes: "", help })

/** In the order of the help. */
export const flags: ReadonlyArray<Flag> = [
  value("dataset_file", "path", "The data set: one JSON object a line with a prompt; .jsonl or .jsonl.gz"),
  value("batch_size", "count", "Prompts per batch file"),
  value("run_name", "name", "Names the run's folder: letters, digits, . _ -"),
  value("distribution", "name|path", `Toolset distribution to sample from (default: ${defaults.distribution})`),
  value("model", "id", `Model id as the endpoint knows it, or scripted (offline) (default: ${defaults.model})`),
  value("base_url", "url", `Any OpenAI-compatible chat-completions endpoint (default: ${defaults.base_url})`),
  value(
    "api_key",
    "key",
    "Better in the environment: OPENROUTER_API_KEY for the default endpoint, else BATCH_RUNNER_API_KEY or OPENAI_API_KEY"
  ),
  value("max_turns", "count", `Model calls per prompt at most (default: ${defaults.max_turns})`),
  value("num_workers", "count", `Prompts in flight at most (default: ${defaults.num_workers})`),
  toggle("resume", "Go on with the run of that name"),
  toggle("verbose", "Log every call"),
  value("max_samples", "count", "Only the first prompts of the data set"),
  value("max_tokens", "count", "Completion tokens per answer (default: the model's)"),
  value("providers_allowed", "a,b", "Only these providers"),
  value("providers_ignored", "a,b", "Never these providers"),
  value("providers_order", "a,b", "Providers to try first, in this order"),
  value("provider_sort", "price|throughput|latency", "How the endpoint chooses a provider"),
  value("reasoning_effort", "none|minimal|low|medium|high|xhigh", "How much the model reasons"),
  toggle("reasoning_disabled", "No reasoning tokens at all; wins over reasoning_effort"),
  value(
    "reasoning_filter",
    "auto|on|off",
    "Discard rows without reasoning (default: auto: unless reasoning is disabled)"
  ),
  value("ephemeral_system_prompt", "text", "Added to the system prompt while running, saved nowhere"),
  value("prefill_messages_file", "path", "JSON array of {role, content}: put before the prompt, saved nowhere"),
  value(
    "log_prefix_chars",
    "count",
    `Characters of a call or an answer shown in the log (default: ${defaults.log_prefix_chars})`
  ),
  value("seed", "number", `Seed of the toolset sampling (default: ${defaults.seed})`),
  value("samples_per_prompt", "count", `Sessions per prompt (default: ${defaults.samples_per_prompt})`),
  value("sandbox", "auto|local|docker|singularity|modal", `Where tools run (default: ${defaults.sandbox})`),
  value("image", "name", "Container image for rows without one"),
  value("cwd", "path", "Working directory of the tools for rows without one"),
  value("network", "on|off", "Network inside the sandbox (default: on)"),
  value("cpus", "number", "Processors per container (default: 2)"),
  value("memory", "size", "Memory per container, such as 512m or 2g (default: 4g)"),
  value(
    "max_sandboxes",
    "count",
    "Sandboxes at once at most (default: twice num_workers, as those being released count)"
  ),
  value("sandbox_starts", "count", `Containers started per second at most (default: ${defaults.sandbox_starts})`),
  value("timeout", "seconds", `Time per prompt (default: ${defaults.timeout})`),
  value("command_timeout", "seconds", `Time per command (default: ${defaults.command_timeout})`),
  value(
    "concurrency",
    "adaptive|fixed",
    `Whether calls in flight follow what the endpoint takes (default: ${defaults.concurrency})`
  ),
  value("max_wait", "seconds", `Wait for an endpoint that is down at most (default: ${defaults.max_wait})`),
  value(
    "max_consecutive_failures",
    "count",
    `Failures of one kind in a row that stop the run (default: ${defaults.max_consecutive_failures})`
  ),
  value(
    "retry_failed",
    "kind,…|all",
    "With --resume: which failed prompts run again (default: all that may go better)"
  ),
  value("max_cost", "dollars", "What the run may cost, all its sessions together"),
  value("max_total_tokens", "count", "Tokens that the run may use, all its sessions together"),
  value("max_cost_per_prompt", "dollars", "What a prompt may cost; its session ends as partial before"),
  value("max_tokens_per_prompt", "count", "Tokens that a prompt may use; its session ends as partial before"),
  value(
    "prices",
    "path",
    'JSON {"model": {"prompt": 3, "completion": 15}}: dollars per million tokens, where the endpoint reports no cost'
  ),
  toggle("no_prompt_cache", "Mark no prefix of a request to be kept by the endpoint (Anthropic's models)"),
  toggle("cache", "Keep answers beside the run folders, and take those of the same call from there"),
  toggle("dry_run", "Check everything, say what would be run, pay and write nothing"),
  value("events", "path", "A file that gets one JSON line for each happening"),
  value(
    "search_backend",
    "searxng|brave|tavily|exa|serper|firecrawl",
    "Backend of web_search (default: the first whose key or address is set)"
  ),
  value("extract_backend", "builtin|firecrawl|jina", `Backend of web_extract (default: ${defaults.extract_backend})`),
  toggle("allow_private_network", "Let web, browser and image tools reach private and local addresses"),
  value("vision_model", "id", "Model that looks at images (default: the run's, where it takes images)"),
  value("image_model", "id", "Model of image_generate: of the images endpoint, or a chat model that makes images"),
  value("image_backend", "endpoint|fal", "Backend of image_generate (default: what is configured)"),
  value("tts_model", "id", "Model of text_to_speech (default: espeak-ng, where it is installed)"),
  value("tts_voice", "name", "Voice of text_to_speech (default: the backend's own)"),
  value("moa_models", "a,b", "Models that mixture_of_agents asks (default: the run's, three times)"),
  value("moa_aggregator", "id", "Model that joins their answers (default: the run's)"),
  value("max_browsers", "count", `Browser sessions at once at most (default: ${defaults.max_browsers})`),
  value("browser_cdp_url", "url", "A browser elsewhere, by its CDP address; better in BROWSER_CDP_URL"),
  value("mcp_config", "path", "JSON file of MCP servers (mcpServers): each is a toolset of its name"),
  value("output_dir", "path", `Folder of the run folders (default: ${defaults.output_dir})`),
  toggle("strict_toolsets", "A toolset that cannot work here is an error instead of being left out"),
  toggle("list_distributions", "Print every distribution and end")
]
