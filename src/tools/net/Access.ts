/** How a run's own endpoint is asked beside its model: the address without what it may hold of a password, and the header. Pure. */
import { Redacted } from "effect"
import * as OpenAi from "../../model/OpenAi.ts"
import type { EndpointSetting } from "../Setting.ts"

export interface Access {
  readonly base: URL
  readonly authorization: string | undefined
  /** What no message may show. */
  readonly secrets: ReadonlyArray<string>
}

/** The access to an endpoint whose address is one. */
export const of = ({ apiKey, baseUrl }: Pick<EndpointSetting, "apiKey" | "baseUrl">): Access => {
  const base = new URL(baseUrl)
  const credentials = OpenAi.credentials(base, apiKey === undefined ? "" : Redacted.value(apiKey))
  base.username = ""
  base.password = ""
  return { base, ...credentials }
}
