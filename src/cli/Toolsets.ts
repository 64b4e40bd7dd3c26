/** The toolsets of a run from the command line: what it asks for, what of that works here, and what is left out. */
import { resolve as absolute, join } from "node:path"
import { Effect } from "effect"
import { isLoopback } from "../model/openai/Transport.ts"
import type { Settings } from "../RunConfig.ts"
import type { Distribution } from "../sampling/Distribution.ts"
import * as DistributionFile from "../sampling/DistributionFile.ts"
import * as Catalogue from "../tools/Catalogue.ts"
import * as ConfigFile from "../tools/mcp/ConfigFile.ts"
import * as Setting from "../tools/Setting.ts"
import type { Toolset } from "../tools/Toolset.ts"
import { isScripted } from "./Key.ts"
import type { Request } from "./Parse.ts"
import { UsageError } from "./UsageError.ts"

/** What a request tells its toolsets. */
export const setting = ({ config, apiKey, variables }: Request): Setting.Setting =>
  Setting.make({
    commandTimeout: config.command_timeout,
    timeout: config.timeout,
    variables,
    prices: config.prices,
    endpoint: { baseUrl: config.base_url, apiKey, model: config.model, offline: isScripted(config.model) },
    allowPrivateNetwork: config.allow_private_network,
    searchBackend: config.search_backend,
    extractBackend: config.extract_backend,
    visionModel: config.vision_model,
    imageModel: config.image_model,
    imageBackend: config.image_backend,
    ttsModel: config.tts_model,
    ttsVoice: config.tts_voice,
    moaModels: config.moa_models,
    moaAggregator: config.moa_aggregator,
    // A server of one's own on this machine hears of nothing but the calls of the run.
    asksEndpoint: !isLoopback(new URL(config.base_url).hostname),
    maxBrowsers: config.max_browsers,
    mcpConfig: config.mcp_config,
    mediaFolder: join(absolute(config.output_dir, config.run_name), "media")
  })

/** The distribution that is asked for, and all toolsets, those that it names looked into. */
export const resolve = Effect.fn("Toolsets.resolve")(function* (request: Request) {
  const { distribution, mcp_config } = request.config
  const servers = yield* ConfigFile.read(mcp_config, request.variables, Catalogue.names)
  const given = yield* DistributionFile.resolve(distribution, [...Catalogue.names, ...servers.map(({ name }) => name)])
  const wanted = (toolset: string) => given.toolsets.some(([name, percent]) => name === toolset && percent > 0)
  const names = servers.map(({ name }) => name)
  if (mcp_config !== "" && !names.some(wanted)) {
    yield* Effect.logWarning(
      names.length === 0
        ? `--mcp_config: ${mcp_config} has no servers`
        : `--mcp_config: no session uses ${names.join(", ")}, as the distribution ${given.name} does not name them; give --distribution a file such as {"toolsets": {"terminal": 100, "${names[0]}": 100}}`
    )
  }
  return { given, toolsets: yield* made({ ...setting(request), wanted }, servers) }
})

/** The toolsets that come with the program, and those of servers. */
const made = Effect.fn("Toolsets.made")(function* (told: Setting.Setting, servers: ReadonlyArray<ConfigFile.Server>) {
  const toolsets = yield* Catalogue.catalogue(told)
  if (servers.length === 0) return toolsets
  // No run without servers pays for what speaks with them.
  const { toolsets: ofServers } = yield* Effect.promise(() => import("../tools/Mcp.ts"))
  return [...toolsets, ...(yield* ofServers(servers, told))]
})

/** Every toolset there is, looked into whether a distribution names it or not; `asksEndpoint`: what its model can. */
export const all = Effect.fn("Toolsets.all")(function* (request: Request, asksEndpoint: boolean) {
  const servers = yield* ConfigFile.read(request.config.mcp_config, request.variables, Catalogue.names)
  const told = setting(request)
  return yield* made({ ...told, asksEndpoint: asksEndpoint && told.asksEndpoint }, servers)
})

/** What toolsets lack, those that lack the same together: `web, browser (no …)`. */
export const lacking = (toolsets: ReadonlyArray<Toolset>, { toolsets: asked }: Distribution): string => {
  const lacks = toolsets
    .filter(({ name }) => asked.some(([each, percent]) => each === name && percent > 0))
    .flatMap((toolset) =>
      toolset.lacks === null
        ? toolset.missing.map(({ name, lacks }) => [name, lacks] as const)
        : [[toolset.name, toolset.lacks] as const]
    )
  return [...new Set(lacks.map(([, why]) => why))]
    .map((why) => `${lacks.flatMap(([name, each]) => (each === why ? [name] : [])).join(", ")} (${why})`)
    .join("; ")
}

/** The distribution without the toolsets that cannot work here, each named once. */
export const workable = Effect.fn("Toolsets.workable")(function* (
  config: Settings,
  toolsets: ReadonlyArray<Toolset>,
  distribution: Distribution
) {
  const told = lacking(toolsets, distribution)
  if (told !== "" && config.strict_toolsets) {
    return yield* new UsageError({
      detail: `--strict_toolsets: ${distribution.name} has tools that cannot work here: ${told}`
    })
  }
  const out = new Set(toolsets.flatMap(({ name, lacks }) => (lacks === null ? [] : [name])))
  const left = distribution.toolsets.filter(([name, percent]) => percent > 0 && !out.has(name))
  if (left.length === 0) {
    return yield* new UsageError({
      detail: `--distribution: no toolset of ${distribution.name} can work here: ${told}; choose another, such as terminal_only`
    })
  }
  if (told !== "") yield* Effect.logInfo(`left out of sampling, as they cannot work here: ${told}`)
  const usable: Distribution = { ...distribution, toolsets: left }
  return usable
})
