/** Searches with the Brave Search API. */
import { Effect, Schema } from "effect"
import * as Api from "../net/Api.ts"
import type { SearchService } from "./Search.ts"

/** Without pages for the query there is no `web`. */
const Answer = Schema.Struct({
  web: Schema.optional(
    Schema.Struct({
      results: Schema.Array(Schema.Struct({ url: Api.text, title: Api.text, description: Api.text }))
    })
  )
})

const needs = ["BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"]

export const brave: SearchService = {
  name: "brave",
  needs: ["BRAVE_API_KEY"],
  open: (variables, api) => {
    const secret = variables.secret(...needs)
    if (secret === undefined) return undefined
    const base = variables.plain("BRAVE_API_URL") ?? "https://api.search.brave.com"
    return {
      name: "brave",
      search: (query, limit) => {
        const wanted = new URLSearchParams({ q: query, count: String(limit), text_decorations: "false" })
        return api
          .json(
            {
              service: "Brave Search",
              url: Api.at(base, `/res/v1/web/search?${wanted}`),
              headers: { accept: "application/json" },
              key: { header: "x-subscription-token", secret, name: "BRAVE_API_KEY" }
            },
            Answer
          )
          .pipe(Effect.mapBoth({ onSuccess: ({ web }) => web?.results ?? [], onFailure: Api.toFailure }))
      }
    }
  }
}
