/** Searches with Tavily. */
import { Effect, Schema } from "effect"
import * as Api from "../net/Api.ts"
import type { SearchService } from "./Search.ts"

const Answer = Schema.Struct({
  results: Schema.Array(Schema.Struct({ url: Api.text, title: Api.text, content: Api.text }))
})

export const tavily: SearchService = {
  name: "tavily",
  needs: ["TAVILY_API_KEY"],
  open: (variables, api) => {
    const secret = variables.secret("TAVILY_API_KEY")
    if (secret === undefined) return undefined
    const url = Api.at(variables.plain("TAVILY_API_URL") ?? "https://api.tavily.com", "/search")
    const key = { header: "authorization", before: "Bearer ", secret, name: "TAVILY_API_KEY" }
    return {
      name: "tavily",
      search: (query, limit) =>
        api.json({ service: "Tavily", url, key, json: { query, max_results: limit } }, Answer).pipe(
          Effect.mapBoth({
            onSuccess: ({ results }) =>
              results.map(({ url, title, content }) => ({ url, title, description: content })),
            onFailure: Api.toFailure
          })
        )
    }
  }
}
