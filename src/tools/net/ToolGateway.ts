/** The tool gateway of a Nous Portal subscription: the APIs of several vendors behind other addresses and one token. Pure. */
import type { Variables } from "../Variables.ts"
import type { Access } from "./Access.ts"

/** Its vendors, each with the variable that says another address. */
const vendors = {
  firecrawl: "FIRECRAWL_GATEWAY_URL",
  "fal-queue": "FAL_QUEUE_GATEWAY_URL",
  "openai-audio": "OPENAI_AUDIO_GATEWAY_URL",
  "browser-use": "BROWSER_USE_GATEWAY_URL"
} as const

/** The variable of its token. */
export const token = "TOOL_GATEWAY_USER_TOKEN"

/** The header by which it takes several tries for one purchase. */
export const onceHeader = "x-idempotency-key"

/** A vendor's API for whoever has the token; `service` is its name, for people. */
export const accessOf = (variables: Variables, vendor: keyof typeof vendors, service: string): Access | undefined => {
  const secret = variables.secret(token)
  if (secret === undefined) return undefined
  const domain = variables.plain("TOOL_GATEWAY_DOMAIN") ?? "nousresearch.com"
  return {
    service,
    base: variables.plain(vendors[vendor]) ?? `https://${vendor}-gateway.${domain}`,
    key: { header: "authorization", before: "Bearer ", secret, name: token }
  }
}
