/** The toolset web of the built command: which addresses a model reaches, and what is left out. */
import { describe, expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import * as PageServer from "../support/PageServer.ts"

/** A model that calls these tools, all in one turn, and then ends. */
const calling = async (toolCalls: ReadonlyArray<ModelServer.CallSpec>) => {
  const server = await ModelServer.start((_, place) =>
    ModelServer.answer(place === 0 ? { reasoning: "Look.", toolCalls } : { content: "Done.", reasoning: "Enough." })
  )
  return server
}

const extract = (...urls: ReadonlyArray<string>): ModelServer.CallSpec => ({ name: "web_extract", arguments: { urls } })

const options = { distribution: "minimal" }

/** What the tools answered, as the model read it. */
const results = (server: ModelServer.ModelServer) =>
  (server.requests[1]?.body.messages ?? [])
    .filter(({ role }) => role === "tool")
    .map(({ content }) => JSON.parse(String(content)))

describe("The toolset web of a run", () => {
  it("reaches no private address, whatever the model writes.", async () => {
    const inner = await PageServer.start(() => ({ headers: { "content-type": "text/html" }, body: "<p>secret</p>" }))
    const { port } = inner
    const server = await calling([
      extract(`http://127.0.0.1:${port}/`, `http://localhost:${port}/`, `http://0177.0.0.1:${port}/`),
      extract(`http://[::ffff:127.0.0.1]:${port}/`, `http://2130706433:${port}/`, "file:///etc/passwd"),
      extract("http://169.254.169.254/latest/meta-data/", `http://[64:ff9b::127.0.0.1]:${port}/`, "http://10.0.0.1/"),
      extract(`http://me:pw@127.1:${port}/`)
    ])
    const place = new Workplace()
    place.dataset(["Read them."])
    await place.complete(server, options)
    const said = results(server).flatMap(({ error, results }) => [
      error,
      ...results.map((one: { error: string }) => one.error)
    ])
    expect(said.length).toBe(14)
    expect(said.filter((error) => !/private or local address|file: addresses are not reached/.test(error))).toEqual([])
    expect(inner.asked).toEqual([])
    expect(place.rows()[0]?.tool_stats.web_extract).toEqual({ count: 4, success: 0, failure: 4 })
    await server.close()
  })
  it("reads a private page where the user allows it, in a thread of the built program.", async () => {
    const inner = await PageServer.start(({ path }) =>
      path === "/old"
        ? { status: 302, headers: { location: "/page" } }
        : { headers: { "content-type": "text/html" }, body: "<title>Own</title><h2>Head</h2><p>own <b>page</b></p>" }
    )
    const server = await calling([extract(`${inner.url}/old`)])
    const place = new Workplace()
    place.dataset(["Read it."])
    const { stderr, stdout } = await place.complete(server, { ...options, allow_private_network: true })
    expect(results(server)).toEqual([
      { results: [{ url: `${inner.url}/old`, title: "Own", content: "## Head\n\nown **page**", error: "" }] }
    ])
    expect(stderr + stdout).toContain("web_search (no SEARXNG_URL, BRAVE_API_KEY")
    await server.close()
  })
  it("searches with the backend of the environment, and leaves the key out of everything.", async () => {
    const key = "brave-key-0123456789"
    const brave = await PageServer.start(({ headers }) =>
      headers["x-subscription-token"] === key
        ? { body: { web: { results: [{ url: "https://a.test/", title: `For ${key}`, description: "Found" }] } } }
        : { status: 401 }
    )
    const server = await calling([{ name: "web_search", arguments: { query: "deep sea" } }])
    const place = new Workplace()
    place.dataset(["Search."])
    const { stderr, stdout } = await place.complete(server, options, { BRAVE_API_KEY: key, BRAVE_API_URL: brave.url })
    expect(results(server)).toEqual([{ results: [{ url: "https://a.test/", title: "For ***", description: "Found" }] }])
    const written = place.names().map((name) => place.text(name))
    expect([stderr, stdout, ...written].filter((text) => text.includes(key))).toEqual([])
    await server.close()
  })
})
