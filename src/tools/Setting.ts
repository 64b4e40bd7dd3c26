/** What a run tells its toolsets when they are made: limits, choices, keys and where files go. */
import type { Redacted } from "effect"
import type { Price } from "../model/Model.ts"
import { none, type Variables } from "./Variables.ts"

/** The endpoint of the run, which some tools use beside the model. */
export interface EndpointSetting {
  readonly baseUrl: string
  readonly apiKey: Redacted.Redacted | undefined
  /** Model id of the run. */
  readonly model: string
  /** Whether the model is the offline one, which answers without any endpoint. */
  readonly offline: boolean
  /** Whether nothing is to be asked at the start. */
  readonly unasked?: boolean
}

export interface Setting {
  /** Seconds that a command may take at most. */
  readonly commandTimeout: number
  /** Seconds that a prompt may take at most. */
  readonly timeout: number
  readonly variables: Variables
  /** What calls cost where the endpoint does not say, by model id. */
  readonly prices: Readonly<Record<string, Price>>
  /** Null when there is none: what needs it lacks it. */
  readonly endpoint: EndpointSetting | null
  /** Whether tools that fetch addresses reach private, loopback and link-local ones. */
  readonly allowPrivateNetwork: boolean
  /** Backend of web_search; null for the first that is configured. */
  readonly searchBackend: string | null
  /** Backend of web_extract. */
  readonly extractBackend: string
  /** Model of vision_analyze; empty for the run's own where that takes images. */
  readonly visionModel: string
  readonly imageModel: string
  /** Backend of image_generate; null for what is configured. */
  readonly imageBackend: string | null
  readonly ttsModel: string
  readonly ttsVoice: string
  /** Reference models of mixture_of_agents; none for the run's own, asked several times. */
  readonly moaModels: ReadonlyArray<string>
  /** Empty for the run's own. */
  readonly moaAggregator: string
  /** Browser contexts at once at most. */
  readonly maxBrowsers: number
  /** Path of the file of MCP servers; empty for none. */
  readonly mcpConfig: string
  /** Folder that keeps what tools make, by content; empty for none. Made when it is needed. */
  readonly mediaFolder: string
  /** Whether a toolset is needed: one that is not is not looked into. */
  readonly wanted: (toolset: string) => boolean
}

/** A setting with what is said, and nothing configured beside. */
export const make = (said: Partial<Setting> = {}): Setting => ({
  commandTimeout: 180,
  timeout: 3600,
  variables: none,
  prices: {},
  endpoint: null,
  allowPrivateNetwork: false,
  searchBackend: null,
  extractBackend: "builtin",
  visionModel: "",
  imageModel: "",
  imageBackend: null,
  ttsModel: "",
  ttsVoice: "",
  moaModels: [],
  moaAggregator: "",
  maxBrowsers: 8,
  mcpConfig: "",
  mediaFolder: "",
  wanted: () => true,
  ...said
})
