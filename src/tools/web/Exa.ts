/** Searches with Exa. */
import { Effect, Schema } from "effect"
import * as Api from "../net/Api.ts"
import type { SearchService } from "./Search.ts"

const Answer = Schema.Struct({
  results: Schema.Array(
    Schema.Struct({
      url: Api.text,
      title: Api.text,
      highlights: Schema.optional(Schema.NullOr(Schema.Array(Schema.String)))
    })
  )
})

export const exa: SearchService = {
  name: "exa",
  needs: ["EXA_API_KEY"],
  open: (variables, api) => {
    const secret = variables.secret("EXA_API_KEY")
    if (secret === undefined) return undefined
    const url = Api.at(variables.plain("EXA_API_URL") ?? "https://api.exa.ai", "/search")
    const key = { header: "x-api-key", secret, name: "EXA_API_KEY" }
    return {
      name: "exa",
      search: (query, limit) =>
        api
          .json(
            { service: "Exa", url, key, json: { query, numResults: limit, contents: { highlights: true } } },
            Answer
          )
          .pipe(
            Effect.mapBoth({
              onSuccess: ({ results }) =>
                results.map(({ url, title, highlights }) => ({
                  url,
                  title,
                  description: (highlights ?? []).join(" … ")
                })),
              onFailure: Api.toFailure
            })
          )
    }
  }
}
