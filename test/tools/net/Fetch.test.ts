import { createServer } from "node:net"
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"
import { Effect, Either } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import * as Fetch from "../../../src/tools/net/Fetch.ts"
import * as Guard from "../../../src/tools/net/Guard.ts"
import type { Environment } from "../../../src/tools/net/Proxy.ts"
import * as PageServer from "../../support/PageServer.ts"

/** 127.0.0.2 and 127.0.0.3 count as public here; every name is looked up in `names`. */
const guarded = (names: (host: string) => ReadonlyArray<string> = () => []) =>
  Guard.make({
    allowPrivate: false,
    permits: (address) => address === "127.0.0.2" || address === "127.0.0.3",
    resolve: async (host) => names(host).map((address) => ({ address, family: 4 }))
  })

const limits = { maxBytes: 1_000_000, timeout: 10 }

const within = <A>(
  use: (get: Fetch.Fetcher["get"]) => Effect.Effect<A>,
  guard = guarded(),
  environment: Environment = {}
) => Effect.runPromise(Effect.scoped(Effect.flatMap(Fetch.make(guard, environment), ({ get }) => use(get))))

/** What came of it: the text, or the error's message. */
const text = (
  url: string,
  { guard, environment, ...more }: Partial<Fetch.Limits> & { guard?: Guard.Guard; environment?: Environment } = {}
) =>
  within(
    (get) =>
      Effect.map(Effect.either(get(url, { ...limits, ...more })), (ended) =>
        Either.isLeft(ended) ? `${ended.left._tag}: ${ended.left.message}` : Buffer.from(ended.right.bytes).toString()
      ),
    guard,
    environment
  )

const moved = (location: string, status = 302) => ({ status, headers: { location }, body: "moved" })

describe("A fetch", () => {
  it("gives what lies at an address, with its type, and where it was found.", async () => {
    const server = await PageServer.start(
      ({ path }) =>
        path === "/old"
          ? moved("/new?x#y", 308)
          : { headers: { "content-type": 'Text/HTML; Charset="windows-1251"' }, body: "hi" },
      "127.0.0.2"
    )
    const found = await within((get) => Effect.orDie(get(`${server.url}/old`, { ...limits, accept: "text/html" })))
    expect(found).toMatchObject({ contentType: "text/html", charset: "windows-1251", cut: false })
    expect(found.url.href).toBe(`${server.url}/new?x#y`)
    expect(server.asked.map(({ path }) => path)).toEqual(["/old", "/new?x"])
    expect(server.asked[1]?.headers).toMatchObject({ accept: "text/html" })
  })
  it("unpacks what is compressed, and says when that is broken.", async () => {
    const packs: Readonly<Record<string, Uint8Array>> = {
      gzip: gzipSync("packed"),
      br: brotliCompressSync("packed"),
      deflate: deflateSync("packed"),
      "x-broken": new Uint8Array()
    }
    const server = await PageServer.start(({ path }) => {
      const name = path.slice(1)
      return name === "broken"
        ? { headers: { "content-encoding": "gzip" }, body: "no gzip at all" }
        : { headers: { "content-encoding": name }, body: packs[name] ?? "" }
    }, "127.0.0.2")
    expect(await Promise.all(["gzip", "br", "deflate"].map((name) => text(`${server.url}/${name}`)))).toEqual([
      "packed",
      "packed",
      "packed"
    ])
    expect(await text(`${server.url}/broken`)).toMatch(/^FetchError: .*wrongly compressed/)
  })
  it("says an HTTP error by number and name, and keeps the status.", async () => {
    const server = await PageServer.start(() => ({ status: 404, body: "x".repeat(100_000) }), "127.0.0.2")
    const error = await within((get) => Effect.flip(get(server.url, limits)).pipe(Effect.orDie))
    expect(error).toMatchObject({ _tag: "FetchError", status: 404 })
    expect(error.message).toBe(`127.0.0.2:${server.port} answers HTTP 404 (Not Found)`)
  })
  it("says why nothing answers.", async () => {
    const server = createServer((socket) => socket.end("no http\r\n\r\n"))
    await new Promise<void>((done) => server.listen(0, "127.0.0.2", () => done()))
    onTestFinished(() => {
      server.close()
    })
    const address = server.address()
    const port = typeof address === "object" ? address?.port : 0
    expect(await text(`http://127.0.0.2:${port}/`)).toMatch(/^FetchError: 127\.0\.0\.2:\d+ cannot be read: /)
    expect(await text("http://127.0.0.2:9/")).toMatch(/cannot be read: .*(refused|bad port)/)
    expect(await text("http://none.test/")).toBe("Refused: there is no host none.test")
  })
  it("ends a loop of redirects, and one to what is no URL.", async () => {
    const server = await PageServer.start(
      ({ path }) => moved(path === "/bad" ? "http://[" : `/${Number(path.slice(1)) + 1}`),
      "127.0.0.2"
    )
    expect(await text(`${server.url}/1`)).toContain("redirects more than 8 times")
    expect(server.asked.length).toBe(9)
    expect(await text(`${server.url}/bad`)).toContain("redirects to what is no URL")
  })
  it("takes no more of a body than is wanted, however it is packed, and leaves the connection.", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    const server = await PageServer.start(({ path }, response) => {
      if (path === "/bomb") return { headers: { "content-encoding": "gzip" }, body: bomb }
      const timer = setInterval(() => response.write(Buffer.alloc(100_000)), 1)
      response.on("close", () => clearInterval(timer))
      return undefined
    }, "127.0.0.2")
    for (const path of ["bomb", "endless"]) {
      const found = await within((get) => Effect.orDie(get(`${server.url}/${path}`, limits)))
      expect([path, found.bytes.length, found.cut]).toEqual([path, 1_000_000, true])
    }
    await expect.poll(server.gone).toBeGreaterThanOrEqual(1)
  })
  it("ends with its time, and the connection with it, whether nothing comes or little by little.", async () => {
    const server = await PageServer.start(({ path }, response) => {
      if (path === "/drip") {
        const timer = setInterval(() => response.write("x"), 20)
        response.on("close", () => clearInterval(timer))
      }
      return undefined
    }, "127.0.0.2")
    const began = performance.now()
    const ended = await within((get) =>
      Effect.forEach(
        ["hang", "drip"],
        (path) =>
          Effect.flip(get(`${server.url}/${path}`, { ...limits, timeout: 0.3 })).pipe(
            Effect.tap(Effect.promise(() => expect.poll(server.gone).toBeGreaterThanOrEqual(1)))
          ),
        { concurrency: 2 }
      ).pipe(Effect.orDie)
    )
    expect(ended.map(({ message }) => message)).toEqual(Array(2).fill("no whole answer within 0.3 seconds"))
    expect(performance.now() - began).toBeLessThan(5000)
    await expect.poll(server.gone).toBe(2)
  })
  it("asks a busy host once more when it says how long to wait, and not when that is long.", async () => {
    const server = await PageServer.start(({ path }, _, place) => {
      if (path === "/soon") return place === 0 ? { status: 429, headers: { "retry-after": "0" } } : { body: "now" }
      return { status: path === "/never" ? 429 : 503, headers: { "retry-after": path === "/late" ? "3600" : "0" } }
    }, "127.0.0.2")
    expect(await text(`${server.url}/soon`)).toBe("now")
    expect(await text(`${server.url}/late`)).toContain(
      "HTTP 503 (Service Unavailable) and asks to come back in 3600 seconds"
    )
    expect(server.asked.length).toBe(3)
    expect(await text(`${server.url}/never`)).toContain("answers HTTP 429 (Too Many Requests)")
    expect(server.asked.length).toBe(5)
  })
  it("hits one host with three calls at once, whatever the port or the run asks, and others beside.", async () => {
    const slow = (_: PageServer.Asked) =>
      new Promise<PageServer.Page>((done) => setTimeout(() => done({ body: "x" }), 400))
    const [one, two] = [await PageServer.start(slow, "127.0.0.2"), await PageServer.start(slow, "127.0.0.3")]
    await within((get) =>
      Effect.forEach(
        Array.from({ length: 24 }, (_, at) => `${(at % 2 === 0 ? one : two).url}/${at}`),
        // Waiting for others takes nothing from a call's own time.
        (url) => Effect.orDie(get(url, { ...limits, timeout: 1.5 })),
        { concurrency: "unbounded" }
      )
    )
    expect([one.asked.length, two.asked.length, one.most(), two.most()]).toEqual([12, 12, 3, 3])
  })
})

describe("The guard of a fetch", () => {
  it("refuses private addresses, and names that lead to them, without a connection.", async () => {
    const server = await PageServer.start(() => ({ body: "secret" }))
    const guard = guarded((host) => (host === "evil.test" ? ["127.0.0.2", "127.0.0.1"] : ["127.0.0.1"]))
    const urls = [
      ...[`127.0.0.1`, "localhost", "x.localhost", "0x7f000001", "0177.0.0.1", "2130706433", "127.1", "[::1]"],
      ...["[::ffff:127.0.0.1]", "evil.test", "private.test", "user:pw@127.0.0.1", "0.0.0.0"]
    ].map((host) => `http://${host}:${server.port}/`)
    const ended = await Promise.all(urls.map((url) => text(url, { guard })))
    expect(ended.filter((said) => !/^Refused: .* is a private or local address/.test(said))).toEqual([])
    expect(server.asked).toEqual([])
  })
  it("refuses redirects to them, at every hop and in every spelling.", async () => {
    const inner = await PageServer.start(() => ({ body: "secret" }))
    const server = await PageServer.start(
      ({ path }) => moved(path === "/first" ? "/second" : decodeURIComponent(path.slice(1).replace("second", target))),
      "127.0.0.2"
    )
    const target = encodeURIComponent(`http://127.0.0.1:${inner.port}/`)
    const guard = guarded((host) => (host === "inner.test" ? ["127.0.0.1"] : []))
    const targets = [
      `http://inner.test:${inner.port}/`,
      `//0x7f.1:${inner.port}/`,
      "file:///etc/passwd",
      "javascript:1"
    ]
    const ended = await Promise.all(
      [`${server.url}/first`, ...targets.map((each) => `${server.url}/${encodeURIComponent(each)}`)].map((url) =>
        text(url, { guard })
      )
    )
    expect(ended.filter((said) => !said.startsWith("Refused: "))).toEqual([])
    expect(inner.asked).toEqual([])
  })
  it("connects to the very address that was judged: a name that changes in between leads nowhere else.", async () => {
    const inner = await PageServer.start(() => ({ body: "secret" }))
    const outer = await PageServer.start(() => ({ headers: { connection: "close" }, body: "open" }), "127.0.0.2")
    let looks = 0
    const guard = guarded(() => (looks++ === 0 ? ["127.0.0.2"] : ["127.0.0.1"]))
    const url = (port: number) => `http://rebind.test:${port}/`
    expect(await text(url(outer.port), { guard })).toBe("open")
    expect(looks).toBe(1)
    expect(await text(url(inner.port), { guard })).toMatch(/^Refused: rebind\.test is a private or local address/)
    expect(inner.asked).toEqual([])
  })
  it("lets private addresses pass where the user says so.", async () => {
    const server = await PageServer.start(() => ({ body: "own page" }))
    const guard = Guard.make({ allowPrivate: true })
    expect(await text(server.url, { guard })).toBe("own page")
    expect(await text(`http://localhost:${server.port}/`, { guard })).toBe("own page")
  })
  it("sends neither user name nor password of a URL.", async () => {
    const server = await PageServer.start(({ headers }) => ({ body: String(headers.authorization) }), "127.0.0.2")
    expect(await text(`http://me:secret@127.0.0.2:${server.port}/`)).toBe("undefined")
  })
})

describe("A fetch through a proxy", () => {
  it("leaves names that are not known here to it, and refuses private ones all the same.", async () => {
    const proxy = await PageServer.start(({ path }) => ({ body: `through the proxy: ${path}` }))
    const environment = { HTTP_PROXY: proxy.url, NO_PROXY: "direct.test" }
    const guard = guarded((host) => (host === "inner.test" ? ["10.0.0.1"] : host === "direct.test" ? ["10.0.0.1"] : []))
    const ended = (url: string) => text(url, { guard, environment })
    expect(await ended("http://outside.test/page")).toBe("through the proxy: http://outside.test/page")
    for (const host of ["inner.test", "direct.test", "10.0.0.1", "intranet", "db.internal", "localhost", "[::1]"]) {
      expect(await ended(`http://${host}/`)).toMatch(/^Refused: /)
    }
    expect(proxy.asked.length).toBe(1)
  })
  it("says when the variable names none.", async () => {
    expect(await text("http://outside.test/", { environment: { HTTP_PROXY: "nonsense" } })).toMatch(
      /^FetchError: a proxy variable/
    )
  })
})
