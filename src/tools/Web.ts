/** The tools web_search and web_extract: what the web holds. */
import { Effect, Either, Schema, type Scope } from "effect"
import * as Arguments from "./Arguments.ts"
import * as Api from "./net/Api.ts"
import * as Guard from "./net/Guard.ts"
import type { Setting } from "./Setting.ts"
import * as Text from "./Text.ts"
import * as Tool from "./Tool.ts"
import type { Built } from "./Toolset.ts"
import * as Extract from "./web/Extract.ts"
import * as Search from "./web/Search.ts"

/** Looks once at what there is of it here. */
export const make = (setting: Setting): Effect.Effect<Built, never, Scope.Scope> =>
  makeWith(setting, Guard.make({ allowPrivate: setting.allowPrivateNetwork }))

/** The same with a guard of one's own. */
export const makeWith = Effect.fn("Web.make")(function* (setting: Setting, guard: Guard.Guard) {
  const api = yield* Api.make()
  const search = Search.choose(setting, api)
  const extract = yield* Extract.choose(setting, guard, api)
  const built: Built = [
    typeof search === "string" ? { name: "web_search", lacks: search } : webSearch(search),
    typeof extract === "string" ? { name: "web_extract", lacks: extract } : webExtract(extract, guard)
  ]
  return built
})

const results = { usual: 5, most: 20 } as const

/** Characters of a result's fields at most. */
const longest = { url: 2000, title: 300, description: 1000 } as const

const webSearch = ({ search }: Search.SearchBackend): Tool.Tool =>
  Tool.make({
    name: "web_search",
    description:
      "Search the web. Gives {results: [{url, title, description}]}, the best first. Read the pages themselves with web_extract.",
    parameters: Schema.Struct({
      query: Arguments.text("What to search for, as for a search engine"),
      limit: Schema.optional(
        Arguments.whole(`Results at most, ${results.usual} by default and ${results.most} at most`, 1)
      )
    }),
    run: Effect.fn("web_search.run")(function* ({ query, limit = results.usual }) {
      const wanted = query.trim()
      if (wanted === "") return yield* new Tool.ToolFailure({ error: "query: is empty, give words to search for" })
      const most = Math.min(limit, results.most)
      const hits = yield* search(wanted.toWellFormed(), most)
      return {
        results: hits
          .filter(({ url }) => url !== "" && url.length <= longest.url)
          .slice(0, most)
          .map(({ url, title, description }) => ({
            url,
            title: brief(title, longest.title),
            description: brief(description, longest.description)
          }))
      }
    })
  })

const brief = (text: string, most: number): string => {
  const flat = text.slice(0, 20_000).replace(/\s+/g, " ").trim()
  return flat.length > most ? `${flat.slice(0, most).trimEnd()}…` : flat
}

/** Pages of one call at most. */
const pagesAtMost = 5

const webExtract = (backend: Extract.ExtractBackend, guard: Guard.Guard): Tool.Tool =>
  Tool.make({
    name: "web_extract",
    description:
      "Read web pages and documents (HTML, PDF, text, JSON, XML, CSV) by their URLs. Gives {results: [{url, title, content, error}]} in " +
      "the order of the URLs: content is Markdown, long ones are cut and say so; error says why one could not be read.",
    parameters: Schema.Struct({
      urls: Schema.Array(Schema.String).annotations({ description: `URLs to read, ${pagesAtMost} at most` })
    }),
    run: Effect.fn("web_extract.run")(function* ({ urls }) {
      if (urls.length === 0 || urls.length > pagesAtMost) {
        return yield* new Tool.ToolFailure({
          error: `urls: give 1 to ${pagesAtMost} URLs in one call, not ${urls.length}; nothing was read`
        })
      }
      const read = Effect.fnUntraced(function* (given: string) {
        // A backend that fetches by itself is judged again as it connects.
        const url = yield* backend.name === "builtin" ? guard.url(given) : guard.remote(given)
        return yield* backend.read(url)
      })
      const pages = yield* Effect.forEach(urls, (url) => Effect.either(read(url)), { concurrency: pagesAtMost })
      const costs = pages.map((page) => (Either.isRight(page) ? Text.cost(page.right.text) : 0))
      const budgets = Extract.shares(costs, Text.resultBytes)
      const found = pages.map((page, at) => {
        const url = brief(urls[at] ?? "", longest.url)
        return Either.isLeft(page)
          ? { url, title: "", content: "", error: page.left.message }
          : {
              url,
              title: brief(page.right.title, longest.title),
              content: Extract.cut(page.right, budgets[at] ?? 0),
              error: ""
            }
      })
      if (pages.some(Either.isRight)) return { results: found }
      const why = [...new Set(found.map(({ error }) => error))].join("; ")
      return yield* new Tool.ToolFailure({
        error: `nothing could be read: ${why}`,
        result: { results: found }
      })
    })
  })
