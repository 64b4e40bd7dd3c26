/** Searches with a SearXNG of one's own, by its JSON format. */
import { Effect, Schema } from "effect"
import * as Api from "../net/Api.ts"
import { ToolFailure } from "../Tool.ts"
import type { SearchService } from "./Search.ts"

const Answer = Schema.Struct({
  results: Schema.Array(Schema.Struct({ url: Api.text, title: Api.text, content: Api.text })),
  unresponsive_engines: Schema.optional(Schema.Unknown)
})

export const searxng: SearchService = {
  name: "searxng",
  needs: ["SEARXNG_URL"],
  open: (variables, api) => {
    const base = variables.plain("SEARXNG_URL")
    if (base === undefined) return undefined
    const search = Effect.fn("Searxng.search")(function* (query: string) {
      const url = Api.at(base, `/search?${new URLSearchParams({ q: query, format: "json" })}`)
      const { results, unresponsive_engines } = yield* api.json({ service: "SearXNG", url }, Answer).pipe(
        Effect.mapError((error) =>
          error.status === 403
            ? new ToolFailure({
                error: `${error.message}; SearXNG gives JSON only where its settings list it under search.formats`
              })
            : Api.toFailure(error)
        )
      )
      // It answers with nothing when the engines behind it refuse to work.
      const silent = results.length === 0 && Array.isArray(unresponsive_engines) ? unresponsive_engines : []
      if (silent.length > 0) {
        return yield* new ToolFailure({
          error: `the search engines behind SearXNG did not answer: ${JSON.stringify(silent).slice(0, 300)}`
        })
      }
      return results.map(({ url, title, content }) => ({ url, title, description: content }))
    })
    return { name: "searxng", search }
  }
}
