/** The model of a run: an endpoint or a script, with all that stands around it, stacked once. */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Duration, Effect, Layer } from "effect"
import * as Budget from "../model/Budget.ts"
import * as Cache from "../model/Cache.ts"
import { Endpoint } from "../model/Endpoint.ts"
import type { Model, Request as ModelRequest } from "../model/Model.ts"
import * as OpenAi from "../model/OpenAi.ts"
import * as Outage from "../model/Outage.ts"
import * as Retry from "../model/Retry.ts"
import * as Scripted from "../model/Scripted.ts"
import * as Throttle from "../model/Throttle.ts"
import * as Triage from "../model/Triage.ts"
import { providerSent, reasoningSent, type Settings } from "../RunConfig.ts"
import type * as Progress from "../report/Progress.ts"
import { isScripted } from "./Key.ts"
import type { Request } from "./Parse.ts"

/** The longest wait for one answer of the model. */
const callLimit = Duration.minutes(30)

/** The endpoint, or a script, within the budget; what asks it waits and tries again, all calls together. */
export const layer = (config: Settings, apiKey: Request["apiKey"]) => {
  const budget = Budget.layer({
    cost: config.max_cost,
    tokens: config.max_total_tokens,
    priced: config.max_cost_per_prompt !== null
  })
  if (isScripted(config.model)) {
    const scripted = Layer.tap(Scripted.layer(scriptOf(config)), () =>
      Effect.logInfo(`offline model: ${scriptTold(config)}`)
    )
    return kept(config, budget.pipe(Layer.provide(scripted)))
  }
  const counted = budget.pipe(Layer.provide(OpenAi.layer(requestOf(config), apiKey)))
  const maxWait = Duration.seconds(config.max_wait)
  const adaptive = config.concurrency === "adaptive"
  const throttled = Throttle.layer({ most: config.num_workers, adaptive, longestPause: maxWait }).pipe(
    Layer.provideMerge(counted)
  )
  const waiting = Outage.layer({ maxWait, most: config.num_workers }).pipe(Layer.provideMerge(throttled))
  const retrying = Retry.layer().pipe(Layer.provideMerge(waiting))
  return kept(config, Triage.layer.pipe(Layer.provideMerge(retrying)))
}

/** The model with its answers kept beside the runs, when that is wanted. */
const kept = <R, E>(config: Settings, model: Layer.Layer<Model | R, E>): Layer.Layer<Model | R, E> =>
  config.cache
    ? Layer.provideMerge(
        Cache.layer({ folder: resolve(config.output_dir, ".cache"), request: requestOf(config) }),
        model
      )
    : model

/** What the progress line tells beside its counts. */
export const vitals = Effect.gen(function* () {
  const { cost_usd, total } = (yield* (yield* Budget.Budget).spent).usage
  const vitals: Progress.Vitals = { tokens: total, costUsd: cost_usd, endpoint: yield* (yield* Endpoint).told }
  return vitals
})

/** The script of the offline model: as named, else beside the data set, else the built-in one. */
export const scriptOf = (config: Settings): string | undefined => {
  if (config.model.startsWith("scripted:")) return config.model.slice("scripted:".length)
  const beside = besideOf(config)
  return existsSync(beside) ? beside : undefined
}

const besideOf = (config: Settings): string => `${config.dataset_file.replace(/\.jsonl(\.gz)?$/, "")}.script.json`

export const scriptTold = (config: Settings): string => {
  const path = scriptOf(config)
  return path === undefined ? `built-in answers, as there is no ${besideOf(config)}` : `answers from ${path}`
}

export const requestOf = (config: Settings): ModelRequest => ({
  model: config.model,
  baseUrl: config.base_url,
  maxTokens: config.max_tokens ?? undefined,
  provider: providerSent(config),
  reasoning: reasoningSent(config),
  callLimit,
  hidden: [config.ephemeral_system_prompt, ...config.prefill_messages.map(({ content }) => content)].filter(
    (text) => text !== ""
  ),
  promptCache: config.prompt_cache,
  prices: config.prices
})
