import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as PageReader from "../../../src/tools/web/PageReader.ts"
import type { Source } from "../../../src/tools/web/Reading.ts"
import * as PageServer from "../../support/PageServer.ts"
import { extract, pdf } from "./support.ts"

/** The longest that nothing else could run, in milliseconds, while something does. */
const stalled = async <A>(doing: Promise<A>): Promise<{ readonly value: A; readonly most: number }> => {
  let [last, most] = [performance.now(), 0]
  const timer = setInterval(() => {
    const now = performance.now()
    most = Math.max(most, now - last)
    last = now
  }, 10)
  const value = await doing.finally(() => clearInterval(timer))
  return { value, most: Math.max(most, performance.now() - last) }
}

const html = { "content-type": "text/html" }
const times = (text: string, count: number) => text.repeat(count)

/** Bodies that make parsers slow, deep or large. */
const pages: Readonly<Record<string, PageServer.Page>> = {
  nested: { headers: html, body: `<title>Deep</title>${times("<div>", 100_000)}the heart of it` },
  inline: { headers: html, body: `${times("<b><i>", 50_000)}the heart of it` },
  unclosed: { headers: html, body: `the heart of it${times("<script", 50_000)}` },
  comments: { headers: html, body: `the heart of it${times("<!--", 500_000)}` },
  brackets: { headers: html, body: `<p>the heart of it${times("[](", 100_000)}</p>` },
  many: { headers: html, body: `<p>the heart of it</p>${times("<p><a href=x>y</a>", 200_000)}` },
  blanks: { headers: html, body: `<pre>the heart of it${times(" \t", 1_000_000)}x</pre>` },
  spaces: { headers: html, body: `<p>the heart of it${times(" \t", 1_000_000)}x</p>` },
  backticks: { headers: html, body: `<p>the heart of it <code>${times("`", 100_000)}</code></p>` },
  entities: { headers: html, body: `<p>the heart of it &#0;&#xd800;&#x110000;${times("&amp;", 50_000)}</p>` },
  nulls: { headers: html, body: `<p>the heart\0 of it</p>${times("\0", 1000)}` },
  surrogates: {
    headers: { "content-type": "text/html; charset=utf-16le" },
    body: Buffer.from("the heart of it\ud800", "utf16le")
  },
  attributes: { headers: html, body: `<p ${times("a=b ", 300_000)}>the heart of it</p>` },
  json: { headers: { "content-type": "application/json" }, body: `["the heart of it",${times("[", 200_000)}` },
  meta: { headers: html, body: `<meta ${times("charset", 20_000)}>the heart of it` },
  cells: { headers: html, body: `<p>the heart of it</p><table>${times("<tr><td>1<td>2", 3_000)}</table>` }
}

describe("A hostile page", () => {
  it("neither stalls the program nor breaks the call, and gives its text where it has any.", async () => {
    const server = await PageServer.start(({ path }) => pages[path.slice(1)], "127.0.0.2")
    const names = Object.keys(pages)
    for (let at = 0; at < names.length; at += 5) {
      const some = names.slice(at, at + 5)
      const { value, most } = await stalled(extract(some.map((name) => `${server.url}/${name}`)))
      for (const [place, name] of some.entries()) {
        const { content, error } = value.result.results[place]
        expect([name, error, content.includes("the heart of it")]).toEqual([name, "", true])
      }
      expect(value.text.length).toBeLessThan(60_000)
      expect(value.text.isWellFormed()).toBe(true)
      expect(value.text).not.toContain("\\u0000")
      expect(most).toBeLessThan(2500)
    }
  }, 180_000)
  it("is read as far as its limit, however large it is or unpacks to.", async () => {
    const filler = times("<p>word and more words</p>\n", 10_000)
    const bomb = gzipSync(Buffer.alloc(60_000_000, "<p>bomb</p>\n"))
    const server = await PageServer.start(({ path }, response) => {
      if (path === "/bomb") return { headers: { ...html, "content-encoding": "gzip" }, body: bomb }
      if (path === "/pdf") {
        return {
          headers: { "content-type": "application/pdf" },
          body: Buffer.concat([pdf("", ["x"]), Buffer.alloc(11_000_000)])
        }
      }
      response.writeHead(200, html)
      const timer = setInterval(() => response.write(filler), 5)
      response.on("close", () => clearInterval(timer))
      return undefined
    }, "127.0.0.2")
    const { value, most } = await stalled(extract(["endless", "bomb", "pdf"].map((name) => `${server.url}/${name}`)))
    const [endless, packed, large] = value.result.results
    expect(endless.content.startsWith("word and more words")).toBe(true)
    expect(packed.content.startsWith("bomb")).toBe(true)
    expect(Number(/about (\d+) characters more/.exec(endless.content)?.[1])).toBeGreaterThan(1_000_000)
    expect(large.error).toBe("the PDF is larger than 10 MB")
    expect(most).toBeLessThan(2500)
  }, 120_000)
})

const source = (body: string | Uint8Array, contentType = "text/html"): Omit<Source, "plain"> => ({
  url: "http://x.test/",
  contentType,
  charset: "",
  bytes: Buffer.from(body),
  cut: false
})

const reading = <A>(use: (read: PageReader.PageReader["read"]) => Effect.Effect<A>, seconds?: number) =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(PageReader.make(seconds), ({ read }) => use(read))))

describe("A thread that reads pages", () => {
  it("is given up when a page takes too long, which is then read by its text, and others go on.", async () => {
    // What finds the main text goes through all of it again and again.
    const slow = `<title>Slow</title><body><h2>Head</h2><p>the heart of it</p>${times("<div><p>a, b, c, d</p>".repeat(300) + "</div>".repeat(300), 60)}`
    const [hard, easy] = await reading(
      (read) => Effect.orDie(Effect.all([read(source(slow)), read(source("<p>easy</p>"))], { concurrency: 2 })),
      1.5
    )
    expect(hard.title).toBe("Slow")
    // As Markdown it would be a heading.
    expect(hard.text.startsWith("Head\nthe heart of it")).toBe(true)
    expect(easy.text).toBe("easy")
  })
  it("is used again, and fails only the page that is too much for it.", async () => {
    const broken = createHash("sha256").update("x").digest()
    const said = await reading((read) =>
      Effect.forEach(
        [source("<p>one</p>"), source(Buffer.concat([Buffer.from("%PDF-1.7\n"), broken])), source("<p>two</p>")],
        (each) => Effect.match(read(each), { onFailure: ({ message }) => message, onSuccess: ({ text }) => text })
      )
    )
    expect(said).toEqual(["one", "the PDF is damaged and cannot be read", "two"])
  })
})
