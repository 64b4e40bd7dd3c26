/** Searches Google with Serper. */
import { Effect, Schema } from "effect"
import * as Api from "../net/Api.ts"
import type { SearchService } from "./Search.ts"

/** Without pages for the query there is no `organic`. */
const Answer = Schema.Struct({
  organic: Schema.optional(Schema.Array(Schema.Struct({ link: Api.text, title: Api.text, snippet: Api.text })))
})

export const serper: SearchService = {
  name: "serper",
  needs: ["SERPER_API_KEY"],
  open: (variables, api) => {
    const secret = variables.secret("SERPER_API_KEY")
    if (secret === undefined) return undefined
    const url = Api.at(variables.plain("SERPER_API_URL") ?? "https://google.serper.dev", "/search")
    const key = { header: "x-api-key", secret, name: "SERPER_API_KEY" }
    return {
      name: "serper",
      search: (query, limit) =>
        api.json({ service: "Serper", url, key, json: { q: query, num: limit } }, Answer).pipe(
          Effect.mapBoth({
            onSuccess: ({ organic = [] }) =>
              organic.map(({ link, title, snippet }) => ({ url: link, title, description: snippet })),
            onFailure: Api.toFailure
          })
        )
    }
  }
}
