/** The tool gateway of a Nous Portal subscription: the APIs of several vendors behind other addresses and one token. Pure. */
import { Redacted } from "effect"
import type { Variables } from "../Variables.ts"

export interface Door {
  /** Its address, without a path. */
  readonly url: string
  readonly token: string
}

/** Where a vendor's API is for whoever has a token; `<VENDOR>_GATEWAY_URL` and TOOL_GATEWAY_DOMAIN say otherwise. */
export const doorOf = (variables: Variables, vendor: string): Door | undefined => {
  const token = variables.secret("TOOL_GATEWAY_USER_TOKEN")
  if (token === undefined) return undefined
  const named = variables.plain(`${vendor.toUpperCase().replaceAll("-", "_")}_GATEWAY_URL`)
  const domain = variables.plain("TOOL_GATEWAY_DOMAIN") ?? "nousresearch.com"
  return { url: (named ?? `https://${vendor}-gateway.${domain}`).replace(/\/+$/, ""), token: Redacted.value(token) }
}
