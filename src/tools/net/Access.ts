/** A service by its address and by who asks it: what its calls have in common, and calls by their paths alone. */
import { Effect } from "effect"
import type { EndpointSetting } from "../Setting.ts"
import type { ToolFailure } from "../Tool.ts"
import * as Api from "./Api.ts"
import type { Reply } from "./Reply.ts"

export interface Access {
  /** Name of the service, for people. */
  readonly service: string
  /** Up to where the paths of its calls begin. */
  readonly base: string
  readonly key: Api.Key | undefined
}

/** The run's own endpoint, beside its model, by the same key or password. Its address must be one. */
export const ofEndpoint = ({ apiKey, baseUrl }: Pick<EndpointSetting, "apiKey" | "baseUrl">): Access => {
  const base = new URL(baseUrl)
  base.hash = ""
  const key = apiKey && { header: "authorization", before: "Bearer ", secret: apiKey }
  return { service: base.host, base: base.href, key }
}

export interface Service extends Pick<Access, "service"> {
  /** The last answer, whatever its status; fails when none came whole. */
  readonly call: (
    call: Omit<Api.Call, keyof Access | "url"> & { readonly path: string }
  ) => Effect.Effect<Reply, ToolFailure>
  /** What an answer that is no success means, for a model. */
  readonly refusal: (reply: Reply) => ToolFailure
  /** A failure in which no secret is shown. */
  readonly failure: (text: string) => ToolFailure
}

/** A service whose work is worth waiting for: `patience` is in seconds. */
export const open = (api: Api.Api, { service, base, key: own }: Access, patience: number): Service => {
  const { url, ...secret } = Api.discreet<Pick<Api.Call, "url" | "key" | "hidden">>({ url: base, key: own })
  return {
    service,
    call: ({ path, ...call }) =>
      Effect.mapError(
        api.reply({ tries: 5, patience, ...call, ...secret, service, url: Api.at(url, path) }),
        Api.toFailure
      ),
    refusal: (reply) => Api.toFailure(Api.refused(reply, { service, ...secret })),
    failure: (text) => Api.toFailure(Api.failed(text, secret))
  }
}
