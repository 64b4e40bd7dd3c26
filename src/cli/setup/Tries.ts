/** Tries what is configured, each with one cheap call through the tool itself where there is one; nothing that costs is made. */
import { Context, Effect, Either, Layer, Logger, LogLevel, Predicate } from "effect"
import * as OpenAi from "../../model/OpenAi.ts"
import * as Local from "../../sandbox/Local.ts"
import { Sandbox, Sandboxes } from "../../sandbox/Sandbox.ts"
import * as Catalogue from "../../tools/Catalogue.ts"
import * as Invoke from "../../tools/Invoke.ts"
import type { Setting } from "../../tools/Setting.ts"
import * as Espeak from "../../tools/speech/Espeak.ts"
import * as ToolSession from "../../tools/ToolSession.ts"
import * as ModelStack from "../ModelStack.ts"
import * as Toolsets from "../Toolsets.ts"
import { type Here, request, within } from "./Here.ts"
import * as Inference from "./Inference.ts"
import * as Known from "./Known.ts"
import * as Probe from "./Probe.ts"
import * as Told from "./Told.ts"

/** Seconds that the call of a tool takes at most. */
const limit = 30

const late = { ok: false, text: JSON.stringify({ error: `no answer within ${limit} seconds` }) }

/** Calls a tool of a setting once; undefined, and what it lacks, where it is not offered. */
const callTool = Effect.fn("Tries.callTool")(function* (here: Here, setting: Setting, tool: string, args: object) {
  const toolsets = yield* Catalogue.catalogue(setting)
  const missing = toolsets.flatMap(({ missing }) => missing).find(({ name }) => name === tool)
  if (missing !== undefined) return { lacks: missing.lacks }
  const places = yield* Layer.build(Local.layer({ network: true, hide: [] }))
  const sandbox = yield* Context.get(places, Sandboxes).open({ id: "setup", image: "", cwd: "" })
  const call = Invoke.call(
    toolsets.flatMap(({ tools }) => tools),
    { name: tool, arguments: JSON.stringify(args) }
  )
  return yield* call.pipe(
    Effect.provideService(Sandbox, sandbox),
    Effect.provide(ToolSession.layer),
    Effect.provide(OpenAi.layer(ModelStack.requestOf(here.config), request(here).apiKey)),
    within(limit, late)
  )
}, Effect.scoped)

/** What an error in a tool's result says. */
const errorOf = (text: string): string => {
  const result = Either.getOrUndefined(Either.try((): unknown => JSON.parse(text)))
  return Predicate.hasProperty(result, "error") ? String(result.error) : "it gave no result"
}

/** A tool by its one cheap call; `needs` are the variables to look at when it does not work. */
const tool = (
  here: Here,
  subject: string,
  {
    changes,
    name,
    args,
    needs
  }: {
    readonly changes: Partial<Setting>
    readonly name: string
    readonly args: object
    readonly needs: ReadonlyArray<string>
  }
): Effect.Effect<Told.Told> =>
  callTool(here, { ...Toolsets.setting(request(here)), ...changes }, name, args).pipe(
    Effect.map((outcome) => {
      if ("lacks" in outcome) return Told.absent(subject, `not tried: ${here.hush(outcome.lacks)}`)
      if (outcome.ok) return Told.ok(subject, "works")
      return Told.wrong(subject, `does not work: ${here.hush(errorOf(outcome.text))}; check ${needs.join(", ")}`)
    }),
    Effect.catchAll(({ message }) => Effect.succeed(Told.absent(subject, `not tried: ${here.hush(message)}`))),
    Logger.withMinimumLogLevel(LogLevel.None)
  )

const only = (toolset: string) => (name: string) => name === toolset

/** Variables of these that are set. */
const setOf = ({ variables }: Here, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.filter((name) => variables.plain(name) !== undefined)

/** Every backend of search that has what it needs, by a query of its own. */
const searches = (here: Here): ReadonlyArray<Effect.Effect<Told.Told>> =>
  Known.searchBackends.flatMap(({ name, title, needs }) => {
    const found = setOf(here, needs)
    return found.length === 0
      ? []
      : [
          tool(here, `web search (${title})`, {
            changes: { searchBackend: name, wanted: only("web") },
            name: "web_search",
            args: { query: "batch-runner", limit: 1 },
            needs: found
          })
        ]
  })

const pages = (here: Here): ReadonlyArray<Effect.Effect<Told.Told>> => {
  const { extract_backend } = here.config
  if (extract_backend === "builtin") return []
  const needs = extract_backend === "jina" ? ["JINA_API_KEY"] : ["FIRECRAWL_API_KEY", "FIRECRAWL_API_URL"]
  return [
    tool(here, `web pages (${extract_backend})`, {
      changes: { wanted: only("web") },
      name: "web_extract",
      args: { urls: ["https://example.com"] },
      needs
    })
  ]
}

const costs = "configured, not tried (it would cost)"

/** Models of tools: whether they are listed; they answer for money. */
const models = ({ config }: Here, ids: ReadonlySet<string>): ReadonlyArray<Told.Told> =>
  [
    ["vision", config.vision_model],
    ["images", config.image_model],
    ["speech", config.tts_model],
    ...config.moa_models.map((model) => ["mixture of agents", model] as const),
    ["mixture of agents", config.moa_aggregator]
  ].flatMap(([subject = "", model = ""]) => {
    if (model === "") return []
    // Models of pictures and of speech stand in few lists.
    const loose = subject === "images" || subject === "speech"
    const why = Inference.unlisted(ids, model)
    if (why === undefined) return [Told.absent(subject, `${model}: ${costs}`)]
    return [loose ? Told.absent(subject, `${model}: ${costs}; ${why}`) : Told.wrong(subject, `${model}: ${why}`)]
  })

const ofProbe = (here: Here, subject: string, check: string, probe: Effect.Effect<Probe.Probed>) =>
  Effect.map(
    probe,
    Either.match({
      onLeft: (why) => Told.wrong(subject, `does not work: ${here.hush(why)}; check ${check}`),
      onRight: (what) => Told.ok(subject, `works: ${here.hush(what)}`)
    })
  )

/** Browsers that are named, here and elsewhere: found, greeted, or their account looked at; none is opened. */
const browsers = (here: Here): ReadonlyArray<Effect.Effect<Told.Told>> => {
  const { plain } = here.variables
  const [address, chromium] = [plain("BROWSER_CDP_URL"), plain("CHROMIUM_PATH")]
  const [base, use] = [plain("BROWSERBASE_API_KEY"), plain("BROWSER_USE_API_KEY")]
  return [
    ...(address === undefined ? [] : [ofProbe(here, "browser (CDP)", "BROWSER_CDP_URL", Probe.cdp(address))]),
    ...(chromium === undefined ? [] : [ofProbe(here, "browser (Chromium)", "CHROMIUM_PATH", Probe.version(chromium))]),
    ...(base === undefined
      ? []
      : [
          ofProbe(
            here,
            "browser (Browserbase)",
            "BROWSERBASE_API_KEY",
            Probe.get(plain("BROWSERBASE_API_URL") ?? "https://api.browserbase.com", "/v1/projects", {
              "x-bb-api-key": base
            })
          )
        ]),
    ...(use === undefined
      ? []
      : [
          ofProbe(
            here,
            "browser (Browser Use)",
            "BROWSER_USE_API_KEY",
            Probe.get(plain("BROWSER_USE_API_URL") ?? "https://api.browser-use.com", "/api/v2/billing/account", {
              "x-browser-use-api-key": use
            })
          )
        ])
  ]
}

/** Speech that this machine makes by itself, where no model is to. */
const speech = (here: Here): ReadonlyArray<Effect.Effect<Told.Told>> => {
  const espeak = Espeak.find(here.variables)
  return espeak === undefined || here.config.tts_model !== ""
    ? []
    : [ofProbe(here, "speech (espeak-ng)", espeak, Probe.version(espeak))]
}

/** Tries everything that is configured, all at once. */
export const all = Effect.fn("Tries.all")(function* (here: Here) {
  const fal = here.variables.plain("FAL_KEY") === undefined ? [] : [Told.absent("images (FAL)", costs)]
  const [{ told, ids }, others] = yield* Effect.all(
    [
      Inference.check(here, { asks: true }),
      Effect.all([...searches(here), ...pages(here), ...browsers(here), ...speech(here)], {
        concurrency: 4
      })
    ],
    { concurrency: 2 }
  )
  return [told, ...others, ...models(here, ids), ...fal]
})
