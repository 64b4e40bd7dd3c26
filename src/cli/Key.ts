/** The key of a run's endpoint: which variables may hold it, by the endpoint's host, and the first that does. */
import { Either, Redacted } from "effect"
import { isLoopback } from "../model/openai/Transport.ts"
import { defaults, type Settings } from "../RunConfig.ts"
import type { Variables } from "../tools/Variables.ts"
import { UsageError } from "./UsageError.ts"
import { filled, type Read, type Typed } from "./Values.ts"

/** Nous Portal's endpoint. */
export const portal = "https://inference-api.nousresearch.com/v1"

/** The offline model, with or without the path of its script. */
export const isScripted = (model: string): boolean => model === "scripted" || model.startsWith("scripted:")

const hostOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).host : undefined)

/** Variables that hold the key of an endpoint, in their order: a key goes to its own host, and those of no host elsewhere. */
export const names = (baseUrl: string, variables: Variables): readonly [string, ...ReadonlyArray<string>] => {
  const host = hostOf(baseUrl)
  if (host === hostOf(defaults.base_url)) return ["OPENROUTER_API_KEY", "BATCH_RUNNER_API_KEY"]
  const portals = [portal, variables.plain("NOUS_API_URL") ?? ""].map(hostOf)
  return portals.includes(host)
    ? ["NOUS_API_KEY", "BATCH_RUNNER_API_KEY", "OPENAI_API_KEY"]
    : ["BATCH_RUNNER_API_KEY", "OPENAI_API_KEY"]
}

/** Whether an endpoint may go without a key. */
export const isFree = ({ model, base_url }: Pick<Settings, "model" | "base_url">): boolean =>
  isScripted(model) || isLoopback(new URL(base_url).hostname)

/** The key that was typed, else that of the first variable; undefined where none is needed. */
export const find = (
  typed: Typed,
  config: Pick<Settings, "model" | "base_url">,
  variables: Variables
): Read<Redacted.Redacted | undefined> => {
  if (isScripted(config.model)) return Either.right(undefined)
  const from = names(config.base_url, variables)
  const key = filled(typed, "api_key") ?? variables.plain(...from)
  if (key !== undefined && /[^\x21-\x7e]/.test(key.trim())) {
    return Either.left(
      new UsageError({
        detail: "--api_key: the key holds characters that no key has; allowed: printable ASCII without blanks"
      })
    )
  }
  if (key !== undefined) return Either.right(Redacted.make(key.trim()))
  if (isFree(config)) return Either.right(undefined)
  return Either.left(
    new UsageError({
      detail: `no API key for ${new URL(config.base_url).host}: set ${from.join(" or ")}, or give --api_key; \`batch-runner setup\` keeps one, --model=scripted needs none`
    })
  )
}
