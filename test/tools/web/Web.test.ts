import { describe, expect, it } from "vitest"
import * as Guard from "../../../src/tools/net/Guard.ts"
import * as PageServer from "../../support/PageServer.ts"
import { built, call, calls } from "./support.ts"

const key = "key-0123456789abcdef"

describe("The toolset web", () => {
  it("reads pages without any key, and says what a search lacks.", async () => {
    const { tools, missing, lacks, toolNames } = await built({})
    expect([tools.map(({ name }) => name), toolNames, lacks]).toEqual([
      ["web_extract"],
      ["web_search", "web_extract"],
      null
    ])
    expect(missing).toEqual([
      { name: "web_search", lacks: expect.stringMatching(/^no SEARXNG_URL, BRAVE_API_KEY, .* or /) }
    ])
  })
  it("lacks what a chosen backend needs.", async () => {
    const { missing } = await built({ searchBackend: "serper", extractBackend: "firecrawl" })
    expect(missing).toEqual([
      { name: "web_search", lacks: "no SERPER_API_KEY" },
      { name: "web_extract", lacks: "no FIRECRAWL_API_KEY, FIRECRAWL_API_URL or TOOL_GATEWAY_USER_TOKEN" }
    ])
    expect((await built({ extractBackend: "jina", environment: { EXA_API_KEY: "k" } })).missing).toEqual([])
  })
})

describe("web_search", () => {
  it("gives as many results as are wanted, short and on one line each, 20 at most.", async () => {
    const results = Array.from({ length: 30 }, (_, at) => ({
      url: at === 1 ? "" : `https://a.test/${at}`,
      title: ` Title\n${at} `,
      content: "word ".repeat(2000)
    }))
    const server = await PageServer.start(() => ({ body: { results } }))
    const environment = { SEARXNG_URL: server.url }
    const [five, two, most] = await calls(
      { environment },
      ["web_search", { query: " deep \ud800 sea " }],
      ["web_search", { query: "x", limit: 2 }],
      ["web_search", { query: "x", limit: 100 }]
    )
    const counts = [five, two, most].map((used) => used?.result.results.length)
    expect(counts).toEqual([5, 2, 20])
    expect(five?.result.results[1]).toEqual({
      url: "https://a.test/2",
      title: "Title 2",
      description: expect.stringMatching(/^word .{900,1000}…$/)
    })
    expect(most?.text.length).toBeLessThan(50_000)
    expect(new URLSearchParams(server.asked[0]?.path.split("?")[1]).get("q")).toBe("deep \uFFFD sea")
  })
  it("fails on an empty query, and on a service that fails.", async () => {
    const server = await PageServer.start(() => ({ status: 401, body: { detail: `bad ${key}` } }))
    const place = { environment: { TAVILY_API_KEY: key, TAVILY_API_URL: server.url } }
    const [empty, refused, bad] = await calls(
      place,
      ["web_search", { query: "  " }],
      ["web_search", { query: "x" }],
      ["web_search", { query: "x", limit: 0 }]
    )
    expect(empty).toMatchObject({
      ok: false,
      valid: true,
      result: { error: "query: is empty, give words to search for" }
    })
    expect(refused).toMatchObject({
      ok: false,
      result: { error: "Tavily refuses the key in TAVILY_API_KEY (HTTP 401): bad ***" }
    })
    expect(bad?.valid).toBe(false)
  })
})

describe("web_extract by a service", () => {
  const page = { success: true, data: { markdown: "# Deep", metadata: { title: "Deep", statusCode: 200 } } }

  it("asks Firecrawl for the main text as Markdown.", async () => {
    const server = await PageServer.start(({ body }) =>
      body.includes("gone")
        ? { body: { success: true, data: { markdown: "Not here", metadata: { title: "404", statusCode: 404 } } } }
        : body.includes("odd")
          ? { status: 500, headers: { "retry-after": "0" }, body: { success: false, error: "SCRAPE_FAILED" } }
          : { body: page }
    )
    const place = {
      extractBackend: "firecrawl",
      environment: { FIRECRAWL_API_KEY: key, FIRECRAWL_API_URL: server.url }
    }
    const urls = ["http://open.test/deep", "http://open.test/gone", "http://open.test/odd"]
    const { ok, result } = await call("web_extract", { urls }, place)
    expect(ok).toBe(true)
    expect(result.results).toEqual([
      { url: urls[0], title: "Deep", content: "# Deep", error: "" },
      { url: urls[1], title: "", content: "", error: "open.test answers HTTP 404" },
      { url: urls[2], title: "", content: "", error: "Firecrawl answers HTTP 500: SCRAPE_FAILED" }
    ])
    const first = server.asked.find(({ body }) => body.includes("deep"))
    expect(first).toMatchObject({ method: "POST", path: "/v2/scrape", headers: { authorization: `Bearer ${key}` } })
    expect(JSON.parse(first?.body ?? "")).toEqual({ url: urls[0], formats: ["markdown"], onlyMainContent: true })
  })
  it("asks Jina with or without a key.", async () => {
    const server = await PageServer.start(() => ({
      body: { code: 200, status: 20000, data: { title: "Deep", url: "x", content: "# Deep", usage: { tokens: 1 } } }
    }))
    const place = { extractBackend: "jina", environment: { JINA_API_URL: server.url } }
    const urls = ["https://open.test/a?b=c&d#top"]
    const { result } = await call("web_extract", { urls }, place)
    expect(result.results).toEqual([{ url: urls[0], title: "Deep", content: "# Deep", error: "" }])
    await call("web_extract", { urls }, { ...place, environment: { ...place.environment, JINA_API_KEY: key } })
    expect(server.asked[0]).toMatchObject({
      method: "GET",
      path: "/https://open.test/a?b=c&d",
      headers: { accept: "application/json" }
    })
    expect(server.asked.map(({ headers }) => headers.authorization)).toEqual([undefined, `Bearer ${key}`])
  })
  it("names no private address to them.", async () => {
    const server = await PageServer.start(() => ({ body: page }))
    const urls = [
      "http://10.0.0.1/",
      "http://inner.test/",
      "http://localhost/",
      "file:///etc/passwd",
      "http://intranet/"
    ]
    for (const extractBackend of ["firecrawl", "jina"]) {
      const environment = { FIRECRAWL_API_URL: server.url, JINA_API_URL: server.url }
      const { ok } = await call("web_extract", { urls }, { extractBackend, environment })
      expect(ok).toBe(false)
    }
    const allowed = Guard.make({ allowPrivate: true })
    const environment = { FIRECRAWL_API_URL: server.url }
    const own = await call(
      "web_extract",
      { urls: ["http://10.0.0.1/"] },
      { extractBackend: "firecrawl", environment, guard: allowed }
    )
    expect([own.ok, server.asked.length]).toEqual([true, 1])
  })
})
