/** Every variable that this program knows beside its options: keys and addresses of services, by their names in the environment. */
import type { Flag } from "../Flags.ts"

/** How a value is checked, and whether it may be shown: a key never is. */
export type Kind = "key" | "address" | "browser address" | "path" | "text"

export interface Known {
  readonly name: string
  readonly kind: Kind
  readonly help: string
}

const known = (name: string, kind: Kind, help: string): Known => ({ name, kind, help })

/** In the order of the help: the endpoint, the web, pictures, browsers, one key for all. */
export const variables: ReadonlyArray<Known> = [
  known("OPENROUTER_API_KEY", "key", "Key of the default endpoint, OpenRouter"),
  known("BATCH_RUNNER_API_KEY", "key", "Key of any other endpoint, and of the default one without its own"),
  known("OPENAI_API_KEY", "key", "Key of OpenAI, and of any endpoint but the default one without its own"),
  known("NOUS_API_KEY", "key", "Key of Nous Portal's endpoint"),
  known("NOUS_API_URL", "address", "Nous Portal's endpoint, where it is elsewhere"),
  known("SEARXNG_URL", "address", "SearXNG: the address of an instance of one's own"),
  known("BRAVE_API_KEY", "key", "Brave Search"),
  known("BRAVE_SEARCH_API_KEY", "key", "The same, by another name"),
  known("BRAVE_API_URL", "address", "Brave Search, where it is elsewhere"),
  known("TAVILY_API_KEY", "key", "Tavily"),
  known("TAVILY_API_URL", "address", "Tavily, where it is elsewhere"),
  known("EXA_API_KEY", "key", "Exa"),
  known("EXA_API_URL", "address", "Exa, where it is elsewhere"),
  known("SERPER_API_KEY", "key", "Serper"),
  known("SERPER_API_URL", "address", "Serper, where it is elsewhere"),
  known("FIRECRAWL_API_KEY", "key", "Firecrawl: search and pages"),
  known("FIRECRAWL_API_URL", "address", "Firecrawl: an instance of one's own"),
  known("JINA_API_KEY", "key", "Jina Reader: pages"),
  known("JINA_API_URL", "address", "Jina Reader, where it is elsewhere"),
  known("FAL_KEY", "key", "FAL: pictures"),
  known("FAL_API_URL", "address", "FAL, where it is elsewhere"),
  known("ESPEAK_PATH", "path", "The espeak-ng to use for speech, where it is not found by itself"),
  known("BROWSER_CDP_URL", "browser address", "A browser elsewhere, by its CDP address"),
  known("CHROMIUM_PATH", "path", "The Chromium to use, where it is not found by itself"),
  known("BROWSERBASE_API_KEY", "key", "Browserbase: browsers"),
  known("BROWSERBASE_PROJECT_ID", "text", "Project at Browserbase"),
  known("BROWSERBASE_API_URL", "address", "Browserbase, where it is elsewhere"),
  known("BROWSER_USE_API_KEY", "key", "Browser Use: browsers"),
  known("BROWSER_USE_API_URL", "address", "Browser Use, where it is elsewhere"),
  known(
    "TOOL_GATEWAY_USER_TOKEN",
    "key",
    "Tool gateway of a Nous Portal subscription: search, pages, pictures, speech, browsers"
  ),
  known("TOOL_GATEWAY_DOMAIN", "text", "Domain of the tool gateway (default: nousresearch.com)"),
  known("FIRECRAWL_GATEWAY_URL", "address", "The gateway's Firecrawl, where it is elsewhere"),
  known("FAL_QUEUE_GATEWAY_URL", "address", "The gateway's FAL, where it is elsewhere"),
  known("OPENAI_AUDIO_GATEWAY_URL", "address", "The gateway's speech, where it is elsewhere"),
  known("BROWSER_USE_GATEWAY_URL", "address", "The gateway's browsers, where they are elsewhere")
]

export const find = (name: string): Known | undefined => variables.find((each) => each.name === name)

/** Whether a value may be shown: an address may hold a password too. */
export const isSecret = ({ kind }: Known): boolean => kind !== "path" && kind !== "text"

const taken: Readonly<Record<Kind, string>> = {
  key: "key",
  address: "url",
  "browser address": "url",
  path: "path",
  text: "text"
}

/** The variables as options of `setup`: `--brave_api_key`. */
export const flags: ReadonlyArray<Flag> = variables.map(({ name, kind, help }) => ({
  name: name.toLowerCase(),
  kind: "value",
  takes: taken[kind],
  help
}))

/** Backends of web_search by their order, with the variables of which one must be set. */
export const searchBackends = [
  { name: "searxng", title: "SearXNG", needs: ["SEARXNG_URL"] },
  { name: "brave", title: "Brave", needs: ["BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"] },
  { name: "tavily", title: "Tavily", needs: ["TAVILY_API_KEY"] },
  { name: "exa", title: "Exa", needs: ["EXA_API_KEY"] },
  { name: "serper", title: "Serper", needs: ["SERPER_API_KEY"] },
  {
    name: "firecrawl",
    title: "Firecrawl",
    needs: ["FIRECRAWL_API_KEY", "FIRECRAWL_API_URL", "TOOL_GATEWAY_USER_TOKEN"]
  }
] as const
