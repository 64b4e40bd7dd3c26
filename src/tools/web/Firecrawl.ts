/** Searches and reads pages with Firecrawl: its own service, one that the user runs, or the tool gateway of Nous Portal. */
import { Effect, Schema } from "effect"
import type { Access } from "../net/Access.ts"
import * as Api from "../net/Api.ts"
import * as ToolGateway from "../net/ToolGateway.ts"
import { ToolFailure } from "../Tool.ts"
import type { Variables } from "../Variables.ts"
import type { ExtractBackend } from "./Extract.ts"
import type { SearchService } from "./Search.ts"

/** The variables of which one makes it work. */
const needs = ["FIRECRAWL_API_KEY", "FIRECRAWL_API_URL", ToolGateway.token]

const service = "Firecrawl"

/** One that the user runs may need no key. */
const accessOf = (variables: Variables): Access | undefined => {
  const own = variables.plain("FIRECRAWL_API_URL")
  const secret = variables.secret("FIRECRAWL_API_KEY")
  if (own === undefined && secret === undefined) return ToolGateway.accessOf(variables, "firecrawl", service)
  const key = secret && { header: "authorization", before: "Bearer ", secret, name: "FIRECRAWL_API_KEY" }
  return { service, base: own ?? "https://api.firecrawl.dev", key }
}

/** It may tell of a failure in a successful answer. */
const refusal = ({ success, error }: { readonly success?: boolean | undefined; readonly error: string }) =>
  success === false
    ? new ToolFailure({ error: `Firecrawl did not do it${error === "" ? "" : `: ${error.slice(0, 300)}`}` })
    : Effect.void

const Found = Schema.Struct({
  success: Schema.optional(Schema.Boolean),
  error: Api.text,
  data: Schema.optional(
    Schema.Struct({
      web: Schema.optional(Schema.Array(Schema.Struct({ url: Api.text, title: Api.text, description: Api.text })))
    })
  )
})

export const firecrawl: SearchService = {
  name: "firecrawl",
  needs,
  open: (variables, api) => {
    const found = accessOf(variables)
    if (found === undefined) return undefined
    const { base, key } = found
    const search = Effect.fn("Firecrawl.search")(function* (query: string, limit: number) {
      const call = { service, url: Api.at(base, "/v2/search"), key, json: { query, limit }, timeout: 60 }
      const answer = yield* Effect.mapError(api.json(call, Found), Api.toFailure)
      yield* refusal(answer)
      return answer.data?.web ?? []
    })
    return { name: "firecrawl", search }
  }
}

const Scraped = Schema.Struct({
  success: Schema.optional(Schema.Boolean),
  error: Api.text,
  data: Schema.optional(
    Schema.Struct({
      markdown: Api.text,
      metadata: Schema.optional(
        Schema.NullOr(Schema.Struct({ title: Api.text, error: Api.text, statusCode: Schema.optional(Schema.Unknown) }))
      )
    })
  )
})

/** Reads pages with it; what it lacks as a clause. */
export const reader = (variables: Variables, api: Api.Api): ExtractBackend | string => {
  const found = accessOf(variables)
  if (found === undefined) return `no ${needs.slice(0, -1).join(", ")} or ${needs.at(-1)}`
  const { base, key } = found
  const call = { service, url: Api.at(base, "/v2/scrape"), key, timeout: 90, maxBytes: 20_000_000, tries: 3 }
  return {
    name: "firecrawl",
    read: Effect.fn("Firecrawl.read")(function* (url: URL) {
      const json = { url: url.href, formats: ["markdown"], onlyMainContent: true }
      const answer = yield* Effect.mapError(api.json({ ...call, json }, Scraped), Api.toFailure)
      yield* refusal(answer)
      const { markdown = "", metadata } = answer.data ?? {}
      const status = Number(metadata?.statusCode ?? 200)
      if (status >= 400) return yield* new ToolFailure({ error: `${url.host} answers HTTP ${status}` })
      if (markdown === "" && metadata !== undefined && metadata !== null && metadata.error !== "") {
        return yield* new ToolFailure({ error: `${url.host} cannot be read: ${metadata.error.slice(0, 300)}` })
      }
      return { title: metadata?.title ?? "", text: markdown, left: 0 }
    })
  }
}
