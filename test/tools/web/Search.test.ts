import { Effect, Either } from "effect"
import { describe, expect, it } from "vitest"
import * as Api from "../../../src/tools/net/Api.ts"
import * as Variables from "../../../src/tools/Variables.ts"
import * as Search from "../../../src/tools/web/Search.ts"
import * as PageServer from "../../support/PageServer.ts"

const key = "key-0123456789abcdef"

/** Searches with what is configured; the hits or the error. */
const search = (environment: Readonly<Record<string, string>>, query = "deep sea & more", limit = 3) =>
  Effect.gen(function* () {
    const api = yield* Api.make({ environment: {} })
    const backend = Search.choose({ searchBackend: null, variables: Variables.from(environment) }, api)
    if (typeof backend === "string") return backend
    const ended = yield* Effect.either(backend.search(query, limit))
    return Either.isRight(ended) ? ended.right : ended.left.error
  }).pipe(Effect.scoped, Effect.runPromise)

const chosen = (searchBackend: string | null, environment: Readonly<Record<string, string>>) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.map(Api.make({ environment: {} }), (api) => {
        const backend = Search.choose({ searchBackend, variables: Variables.from(environment) }, api)
        return typeof backend === "string" ? backend : backend.name
      })
    )
  )

const hits = [
  { url: "https://a.test/1", title: "One", description: "First one" },
  { url: "https://b.test/2", title: "Two", description: "" }
]

describe("A search", () => {
  it("asks SearXNG for JSON, below whatever path it has.", async () => {
    const server = await PageServer.start(() => ({
      body: {
        query: "deep sea",
        number_of_results: 0,
        results: [
          { url: "https://a.test/1", title: "One", content: "First one", engine: "x", score: 1, category: "general" },
          { url: "https://b.test/2", title: "Two", content: null, publishedDate: null }
        ],
        unresponsive_engines: [["y", "timeout"]]
      }
    }))
    expect(await search({ SEARXNG_URL: `${server.url}/searx/` })).toEqual(hits)
    expect(server.asked[0]).toMatchObject({ method: "GET", path: "/searx/search?q=deep+sea+%26+more&format=json" })
  })
  it("says what SearXNG needs when it gives no JSON, and which engines are silent when it finds nothing.", async () => {
    const server = await PageServer.start((_, __, place) =>
      place === 0
        ? { status: 403, body: "<!doctype html><title>403 Forbidden</title>" }
        : { body: { results: [], unresponsive_engines: [["google", "Suspended: too many requests"]] } }
    )
    expect(await search({ SEARXNG_URL: server.url })).toContain("under search.formats")
    expect(await search({ SEARXNG_URL: server.url })).toContain('did not answer: [["google","Suspended')
  })
  it("asks Brave with its token.", async () => {
    const server = await PageServer.start((_, __, place) => ({
      body:
        place === 0
          ? {
              type: "search",
              query: { original: "deep sea" },
              web: {
                type: "search",
                results: [
                  { ...hits[0], language: "en", family_friendly: true },
                  { url: hits[1]?.url, title: "Two" }
                ]
              }
            }
          : { type: "search", query: { original: "nothing" } }
    }))
    const environment = { BRAVE_SEARCH_API_KEY: key, BRAVE_API_URL: server.url }
    expect(await search(environment)).toEqual(hits)
    expect(server.asked[0]).toMatchObject({
      method: "GET",
      path: "/res/v1/web/search?q=deep+sea+%26+more&count=3&text_decorations=false",
      headers: { "x-subscription-token": key, accept: "application/json" }
    })
    expect(await search(environment)).toEqual([])
  })
  it("asks Tavily with a bearer.", async () => {
    const server = await PageServer.start(() => ({
      body: {
        query: "deep sea",
        answer: null,
        images: [],
        results: [
          { title: "One", url: "https://a.test/1", content: "First one", score: 0.9, raw_content: null },
          { title: "Two", url: "https://b.test/2" }
        ],
        response_time: 1.2
      }
    }))
    expect(await search({ TAVILY_API_KEY: key, TAVILY_API_URL: server.url })).toEqual(hits)
    expect(server.asked[0]).toMatchObject({
      method: "POST",
      path: "/search",
      headers: { authorization: `Bearer ${key}` }
    })
    expect(JSON.parse(server.asked[0]?.body ?? "")).toEqual({ query: "deep sea & more", max_results: 3 })
  })
  it("asks Exa for highlights.", async () => {
    const server = await PageServer.start(() => ({
      body: {
        requestId: "r",
        results: [
          { id: "1", title: "One", url: "https://a.test/1", highlights: ["First", "one"], highlightScores: [0.5, 0.4] },
          { id: "2", title: "Two", url: "https://b.test/2", highlights: null }
        ],
        costDollars: { total: 0.005 }
      }
    }))
    const first = { ...hits[0], description: "First … one" }
    expect(await search({ EXA_API_KEY: key, EXA_API_URL: server.url })).toEqual([first, hits[1]])
    expect(server.asked[0]).toMatchObject({ method: "POST", path: "/search", headers: { "x-api-key": key } })
    expect(JSON.parse(server.asked[0]?.body ?? "")).toEqual({
      query: "deep sea & more",
      numResults: 3,
      contents: { highlights: true }
    })
  })
  it("asks Serper for pages of Google.", async () => {
    const server = await PageServer.start((_, __, place) => ({
      body:
        place === 0
          ? {
              searchParameters: { q: "deep sea", type: "search" },
              organic: [
                { title: "One", link: "https://a.test/1", snippet: "First one", position: 1 },
                { title: "Two", link: "https://b.test/2", position: 2 }
              ]
            }
          : { searchParameters: { q: "nothing" } }
    }))
    expect(await search({ SERPER_API_KEY: key, SERPER_API_URL: server.url })).toEqual(hits)
    expect(server.asked[0]).toMatchObject({ method: "POST", path: "/search", headers: { "x-api-key": key } })
    expect(JSON.parse(server.asked[0]?.body ?? "")).toEqual({ q: "deep sea & more", num: 3 })
    expect(await search({ SERPER_API_KEY: key, SERPER_API_URL: server.url })).toEqual([])
  })
  it("asks Firecrawl, the user's own without a key, and Nous Portal's gateway with its token.", async () => {
    const server = await PageServer.start((_, __, place) => ({
      body:
        place < 3
          ? {
              success: true,
              data: {
                web: [
                  { ...hits[0], position: 1 },
                  { url: "https://b.test/2", title: "Two" }
                ]
              }
            }
          : { success: false, error: "Insufficient credits" }
    }))
    const own = { FIRECRAWL_API_URL: server.url }
    const gateway = { TOOL_GATEWAY_USER_TOKEN: "portal-token-1", FIRECRAWL_GATEWAY_URL: server.url }
    expect(await search({ ...own, FIRECRAWL_API_KEY: key })).toEqual(hits)
    expect(await search(own)).toEqual(hits)
    expect(await search(gateway)).toEqual(hits)
    expect(server.asked.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${key}`,
      undefined,
      "Bearer portal-token-1"
    ])
    expect(server.asked[2]).toMatchObject({ method: "POST", path: "/v2/search" })
    expect(JSON.parse(server.asked[2]?.body ?? "")).toEqual({ query: "deep sea & more", limit: 3 })
    expect(await search(own)).toBe("Firecrawl did not do it: Insufficient credits")
  })
  it("says a refused key by the name of its variable, for each of them.", async () => {
    const server = await PageServer.start(({ headers }) => ({ status: 401, body: { error: JSON.stringify(headers) } }))
    for (const name of ["BRAVE", "TAVILY", "EXA", "SERPER", "FIRECRAWL"]) {
      const said = String(await search({ [`${name}_API_KEY`]: key, [`${name}_API_URL`]: server.url }))
      expect(said).toContain(`refuses the key in ${name}_API_KEY (HTTP 401)`)
      expect(said).not.toContain(key.slice(0, 8))
    }
  })
})

describe("The choice of a search backend", () => {
  it("takes the first that is configured, or the one that is named.", async () => {
    const all = {
      SEARXNG_URL: "http://s",
      BRAVE_API_KEY: "b",
      TAVILY_API_KEY: "t",
      EXA_API_KEY: "e",
      SERPER_API_KEY: "g"
    }
    const order = ["searxng", "brave", "tavily", "exa", "serper", "firecrawl"]
    const found: Array<string> = []
    const left = new Map<string, string>([...Object.entries(all), ["TOOL_GATEWAY_USER_TOKEN", "p"]])
    for (const name of [...left.keys()]) {
      found.push(await chosen(null, Object.fromEntries(left)))
      left.delete(name)
    }
    expect(found).toEqual(order)
    expect(await chosen("exa", all)).toBe("exa")
  })
  it("names the variables that it lacks.", async () => {
    expect(await chosen(null, {})).toBe(
      "no SEARXNG_URL, BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY, SERPER_API_KEY, FIRECRAWL_API_KEY, FIRECRAWL_API_URL or TOOL_GATEWAY_USER_TOKEN"
    )
    expect(await chosen("brave", { TAVILY_API_KEY: "t", BRAVE_API_URL: "http://x", BRAVE_API_KEY: " " })).toBe(
      "no BRAVE_API_KEY"
    )
    expect(await chosen("firecrawl", {})).toBe("no FIRECRAWL_API_KEY, FIRECRAWL_API_URL or TOOL_GATEWAY_USER_TOKEN")
  })
})
