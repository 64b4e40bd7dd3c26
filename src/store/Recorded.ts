/** What of a configuration is written down in run.json, and what of it differs from an earlier session's. */
import { hash } from "node:crypto"
import type { Settings } from "../RunConfig.ts"

/** What is written down of a run: all but the texts that are used while running and saved nowhere, and no password of an address. */
export const recorded = (config: Settings): Readonly<Record<string, unknown>> => {
  const { ephemeral_system_prompt, prefill_messages, base_url, ...rest } = config
  return {
    ...rest,
    base_url: withoutPassword(base_url),
    // Enough to tell on resume that they are not the same.
    ephemeral_system_prompt_digest: digestOf(ephemeral_system_prompt),
    prefill_messages_digest: prefill_messages.length === 0 ? "" : digestOf(JSON.stringify(prefill_messages))
  }
}

const digestOf = (text: string): string => (text === "" ? "" : hash("sha256", text, "hex").slice(0, 16))

const withoutPassword = (address: string): string =>
  address.replace(/^([a-z]+:\/\/)[^/?#]*@/i, "$1").replace(/\?.*$/, "")

/** Settings that change what a row holds: they may differ on resume, but not unsaid. */
const decisive = [
  "model",
  "base_url",
  "distribution",
  "distribution_toolsets",
  "max_turns",
  "max_tokens",
  "max_cost_per_prompt",
  "max_tokens_per_prompt",
  "providers_allowed",
  "providers_ignored",
  "providers_order",
  "provider_sort",
  "reasoning_effort",
  "reasoning_disabled",
  "reasoning_filter",
  "seed",
  "sandbox",
  "image",
  "cwd",
  "network",
  "samples_per_prompt",
  "allow_private_network",
  "search_backend",
  "extract_backend",
  "vision_model",
  "image_model",
  "image_backend",
  "tts_model",
  "tts_voice",
  "moa_models",
  "moa_aggregator",
  "mcp_config",
  "ephemeral_system_prompt_digest",
  "prefill_messages_digest"
]

/** The settings that alter the data and differ from an earlier session's record, each as `name: before → now`. */
export const changes = (before: Readonly<Record<string, unknown>>, config: Settings): ReadonlyArray<string> => {
  const now: Readonly<Record<string, unknown>> = recorded(config)
  return decisive
    .filter((name) => name in before && JSON.stringify(before[name]) !== JSON.stringify(now[name]))
    .map((name) =>
      name.endsWith("_digest")
        ? `${name.replace("_digest", "")}: ${now[name] === "" ? "given before, not now" : before[name] === "" ? "not given before" : "another one than before"}`
        : `${name}: ${shown(before[name])} → ${shown(now[name])}`
    )
}

const shown = (value: unknown): string => (typeof value === "string" && value !== "" ? value : JSON.stringify(value))
