import { brotliCompressSync, gzipSync } from "node:zlib"
import { FastCheck } from "effect"
import { describe, expect, it } from "vitest"
import * as Extract from "../../../src/tools/web/Extract.ts"
import * as PageServer from "../../support/PageServer.ts"
import { contents, extract, pdf } from "./support.ts"

const html = { "content-type": "text/html; charset=utf-8" }

/** Serves the same pages by path on an address that counts as public. */
const site = (pages: Readonly<Record<string, PageServer.Page>>) =>
  PageServer.start(({ path }) => pages[path.slice(1)] ?? { status: 404, body: "none" }, "127.0.0.2")

const filler = "Deep below the surface, where no light comes, live animals that make their own. ".repeat(6)

const article = `<!DOCTYPE html><html lang="en"><head><title>Light of the deep - Sea News</title>
<script>var hidden = "SCRIPT"</script><style>.x{color:red}</style></head><body>
<nav><a href="/a">Menu one</a> <a href="/b">Menu two</a></nav>
<article><h1>Light of the deep</h1><p>${filler}</p><h2>How it works</h2>
<p>See <a href="../more?x=1#top">the details</a>, <b>now</b> and <a href="javascript:alert(1)">never</a>.</p>
<p><img src="/fish.png" alt="A fish"><img src="data:image/png;base64,AAAA" alt="dot"></p>
<ul><li>one</li><li>two</li></ul><pre><code class="language-js">const a = 1
const b = 2</code></pre>
<table><thead><tr><th>Name</th><th>Depth</th></tr></thead><tbody><tr><td>Angler</td><td>2000 m</td></tr></tbody></table>
<p>${filler}</p></article><footer>Imprint</footer></body></html>`

describe("web_extract", () => {
  it("gives an article as Markdown with whole addresses, and nothing around it.", async () => {
    const server = await site({ "news/today": { headers: html, body: article } })
    const { ok, result } = await extract([`${server.url}/news/today`])
    const [page] = result.results
    expect({ ok, ...page, content: "" }).toEqual({
      ok: true,
      url: `${server.url}/news/today`,
      title: "Light of the deep - Sea News",
      content: "",
      error: ""
    })
    for (const part of [
      "## How it works",
      `[the details](${server.url}/more?x=1#top)`,
      "**now** and never.",
      `![A fish](${server.url}/fish.png)`,
      "- one\n- two",
      "```js\nconst a = 1\nconst b = 2\n```",
      "| Name | Depth |\n| --- | --- |\n| Angler | 2000 m |"
    ]) {
      expect(page.content.replace(/ {2,}/g, " ").replace(/-{4,}/g, "---")).toContain(part)
    }
    for (const gone of ["SCRIPT", "color:red", "data:image", "javascript", "Menu one", "Imprint"]) {
      expect(page.content).not.toContain(gone)
    }
    expect(server.asked[0]?.headers.accept).toContain("text/html")
  })
  it("gives the whole page where no main text stands out, and follows its base.", async () => {
    const list = `<title>List</title><base href="/deep/"><h1>Things</h1>${Array.from({ length: 20 }, (_, at) => `<div><a href="p${at}">Thing ${at}</a></div>`).join("")}`
    const server = await site({ list: { headers: html, body: list }, bare: { headers: html, body: "just words" } })
    const { result } = await extract([`${server.url}/list`, `${server.url}/bare`])
    expect(result.results[0]).toMatchObject({ title: "List" })
    expect(result.results[0].content).toContain(`[Thing 19](${server.url}/deep/p19)`)
    expect(result.results[1]).toMatchObject({ title: "", content: "just words" })
  })
  it("reads every charset, wherever it is named.", async () => {
    const russian = Buffer.from("cff0e8e2e5f2", "hex")
    const japanese = Buffer.from("93fa967b8cea", "hex")
    const page = (before: string, word: Buffer) =>
      Buffer.concat([Buffer.from(`${before}<p>`), word, Buffer.from("</p>")])
    const wide = Buffer.from("\uFEFF<p>Grüße</p>", "utf16le")
    const server = await site({
      header: { headers: { "content-type": "text/html; charset=windows-1251" }, body: page("", russian) },
      meta: { headers: { "content-type": "text/html" }, body: page('<meta charset="shift_jis">', japanese) },
      equiv: {
        headers: { "content-type": "text/html" },
        body: page('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', russian)
      },
      prolog: {
        headers: { "content-type": "application/xhtml+xml" },
        body: page('<?xml version="1.0" encoding="Shift_JIS"?>', japanese)
      },
      mark: { headers: { "content-type": "text/html; charset=iso-8859-1" }, body: wide },
      swapped: { headers: { "content-type": "text/plain" }, body: Buffer.from(wide).swap16() },
      none: { headers: { "content-type": "text/html" }, body: Buffer.from("<p>Grüße</p>") },
      western: { headers: { "content-type": "text/html" }, body: Buffer.from("<p>Grüße</p>", "latin1") },
      wrong: { headers: { "content-type": "text/html; charset=klingon" }, body: "<p>Grüße</p>" }
    })
    const all = ["header", "meta", "equiv", "prolog", "mark", "swapped", "none", "western", "wrong"]
    expect(await contents(all.map((name) => `${server.url}/${name}`))).toEqual([
      ...["Привет", "日本語", "Привет", "日本語", "Grüße", "<p>Grüße</p>", "Grüße", "Grüße", "Grüße"]
    ])
  })
  it("unpacks pages, and gives text of other types as it is.", async () => {
    const server = await site({
      gzip: { headers: { ...html, "content-encoding": "gzip" }, body: gzipSync("<p>packed</p>") },
      br: { headers: { ...html, "content-encoding": "br" }, body: brotliCompressSync("<p>packed</p>") },
      json: { headers: { "content-type": "application/ld+json" }, body: '{"a":[1,{"b":"ü"}]}' },
      badjson: { headers: { "content-type": "application/json" }, body: "{no" },
      md: { headers: { "content-type": "text/markdown" }, body: "# Title\n\n<b>kept</b>" },
      csv: { headers: { "content-type": "text/csv" }, body: "a,b\n1,2" },
      xml: { headers: { "content-type": "application/rss+xml" }, body: "<rss><item/></rss>" },
      unnamed: { body: "<!doctype html><p>a page</p>" },
      binary: { headers: { "content-type": "application/octet-stream" }, body: "just text" }
    })
    const all = ["gzip", "br", "json", "badjson", "md", "csv", "xml", "unnamed", "binary"]
    expect(await contents(all.map((name) => `${server.url}/${name}`))).toEqual([
      "packed",
      "packed",
      '{\n  "a": [\n    1,\n    {\n      "b": "ü"\n    }\n  ]\n}',
      "{no",
      "# Title\n\n<b>kept</b>",
      "a,b\n1,2",
      "<rss><item/></rss>",
      "a page",
      "just text"
    ])
  })
  it("reads a PDF page by page, with its title, whatever type it is given.", async () => {
    const server = await site({
      a: { headers: { "content-type": "application/pdf" }, body: pdf("Deep paper", ["First words", "Second words"]) },
      b: { headers: html, body: pdf("", ["Only words"]) },
      broken: { headers: { "content-type": "application/pdf" }, body: "%PDF-1.4\nnothing" },
      empty: { headers: { "content-type": "application/pdf" }, body: pdf("", [""]) }
    })
    const { result } = await extract(["a", "b", "broken", "empty"].map((name) => `${server.url}/${name}`))
    const [a, b, broken, empty] = result.results
    expect(a).toMatchObject({
      title: "Deep paper",
      content: "## Page 1 of 2\n\nFirst words\n\n## Page 2 of 2\n\nSecond words"
    })
    expect(b).toMatchObject({ content: "## Page 1 of 1\n\nOnly words" })
    expect(broken).toMatchObject({ content: "", error: "the PDF is damaged and cannot be read" })
    expect(empty.content).toContain("1 page without any text")
  })
  it("says the type of what it cannot read, by what it is rather than by what it is called.", async () => {
    const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")
    const server = await site({
      png: { headers: { "content-type": "image/png" }, body: png },
      fake: { headers: html, body: png },
      zip: { headers: { "content-type": "text/plain" }, body: Buffer.from("504b0304aaaa", "hex") },
      font: { headers: { "content-type": "font/woff2" }, body: "x" }
    })
    const { ok, result } = await extract(["png", "fake", "zip", "font"].map((name) => `${server.url}/${name}`))
    expect(ok).toBe(false)
    expect(result.results.map(({ error }: { error: string }) => error)).toEqual([
      "it is no page or text but image/png, which cannot be read: look at images with vision_analyze",
      "it is no page or text but image/png, which cannot be read: look at images with vision_analyze",
      "it is no page or text but application/zip, which cannot be read",
      "it is no page or text but font/woff2, which cannot be read"
    ])
  })
  it("gives results in the order of the URLs, one failure beside the others' content.", async () => {
    const server = await site({ a: { headers: html, body: "<p>A</p>" }, c: { headers: html, body: "<p>C</p>" } })
    const { ok, result } = await extract([`${server.url}/a`, `${server.url}/b`, "http://127.0.0.1/", `${server.url}/c`])
    expect(ok).toBe(true)
    expect(result.results.map(({ content }: { content: string }) => content)).toEqual(["A", "", "", "C"])
    expect(result.results[1].error).toContain("HTTP 404")
    expect(result.results[2].error).toContain("private or local address")
  })
  it("is a failure when nothing could be read, and when there are too many URLs or none.", async () => {
    const server = await site({})
    const failed = await extract([`${server.url}/x`, "ftp://open.test/"])
    expect(failed.ok).toBe(false)
    expect(failed.result.error).toMatch(/^nothing could be read: .*HTTP 404 .*; ftp: addresses are not reached/)
    expect(failed.result.results.length).toBe(2)
    for (const urls of [[], Array.from({ length: 6 }, () => server.url)]) {
      const refused = await extract(urls)
      expect([refused.ok, refused.result.error]).toEqual([
        false,
        `urls: give 1 to 5 URLs in one call, not ${urls.length}; nothing was read`
      ])
    }
    expect(server.asked.length).toBe(1)
  })
  it("cuts long pages so that all have room, and says how much is missing.", async () => {
    const long = `${'"long" '.repeat(40_000)}`
    const server = await site({
      long: { headers: { "content-type": "text/plain" }, body: long },
      short: { headers: { "content-type": "text/plain" }, body: "short" }
    })
    const { text, result } = await extract(["long", "short", "long"].map((name) => `${server.url}/${name}`))
    expect(text.length).toBeLessThan(52_000)
    expect(text.length).toBeGreaterThan(45_000)
    const [first, second, third] = result.results
    expect(second.content).toBe("short")
    expect(Math.abs(first.content.length - third.content.length)).toBeLessThan(20)
    const missing = Number(/\[… cut here: about (\d+) characters more …\]$/.exec(first.content)?.[1])
    expect(first.content.lastIndexOf("\n\n[…") + missing).toBe(long.length)
  })
})

describe("Shares of a result", () => {
  it("never exceed the whole or a need, and leave nothing that somebody needs.", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(FastCheck.nat(1000), { maxLength: 6 }),
        FastCheck.nat(3000),
        (needs, whole) => {
          const given = Extract.shares(needs, whole)
          const sum = given.reduce((a, b) => a + b, 0)
          expect(given.every((share, at) => share <= (needs[at] ?? 0))).toBe(true)
          expect(sum).toBeLessThanOrEqual(whole)
          const all = needs.reduce((a, b) => a + b, 0)
          expect(sum).toBeGreaterThanOrEqual(Math.min(all, whole) - needs.length)
        }
      )
    )
  })
})
