/** Reads pages with Jina Reader, with or without a key. */
import { Effect, Schema } from "effect"
import * as Api from "../net/Api.ts"
import type { Variables } from "../Variables.ts"
import type { ExtractBackend } from "./Extract.ts"

const Answer = Schema.Struct({ data: Schema.Struct({ title: Api.text, content: Api.text }) })

export const reader = (variables: Variables, api: Api.Api): ExtractBackend => {
  const base = variables.plain("JINA_API_URL") ?? "https://r.jina.ai"
  const secret = variables.secret("JINA_API_KEY")
  const key = secret && { header: "authorization", before: "Bearer ", secret, name: "JINA_API_KEY" }
  return {
    name: "jina",
    read: (url) => {
      // What stands behind # is never sent, and would be lost anyway.
      const page = new URL(url)
      page.hash = ""
      return api
        .json(
          {
            service: "Jina Reader",
            url: Api.at(base, `/${page.href}`),
            key,
            headers: { accept: "application/json" },
            timeout: 60,
            maxBytes: 20_000_000
          },
          Answer
        )
        .pipe(
          Effect.mapBoth({
            onSuccess: ({ data }) => ({ title: data.title, text: data.content, left: 0 }),
            onFailure: Api.toFailure
          })
        )
    }
  }
}
