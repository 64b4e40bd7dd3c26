import * as Crypto from "node:crypto"
import type { Duplex } from "node:stream"
import { Effect } from "effect"
import { expect, it } from "vitest"
import * as Guard from "../../../src/tools/net/Guard.ts"
import { type Answer, browse, describe, page } from "./support.ts"

/** 127.0.0.2 stands for the internet; names lead where the test says. */
const guard = (names: Readonly<Record<string, string>> = {}) =>
  Guard.make({
    allowPrivate: false,
    permits: (address) => address === "127.0.0.2",
    resolve: (hostname) =>
      names[hostname] === undefined
        ? Promise.reject(new Error("none"))
        : Promise.resolve([{ address: names[hostname], family: 4 }])
  })

const to =
  (location: (port: number) => string): Answer =>
  (request, response) => {
    response.writeHead(302, { location: location(Number(/\d+$/.exec(request.headers.host ?? "")?.[0])) }).end()
  }

describe("A private address", () => {
  it("is refused however it is written, and whatever resolves to it", () =>
    browse(
      { "/": page("Secret") },
      (use, { port, asked }) =>
        Effect.gen(function* () {
          for (const host of [
            "127.0.0.1",
            "localhost",
            "0177.0.0.1",
            "2130706433",
            "0x7f.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "169.254.169.254",
            "10.0.0.1",
            "inside.test"
          ]) {
            const { ok, result } = yield* use("navigate", { url: `http://${host}:${port}/` })
            expect(result.error ?? "none", host).toMatch(/private or local address/)
            expect(ok).toBe(false)
          }
          expect(asked).toEqual([])
        }),
      {},
      guard({ localhost: "127.0.0.1", "inside.test": "127.0.0.1" })
    ))

  it(
    "is refused after a redirect, and a click, and to everything that a page asks for by itself",
    { timeout: 60_000 },
    () =>
      browse(
        {
          "/": page(`<h1>Outside</h1><a id=a>Inside</a><iframe id=f></iframe><pre id=out></pre><script>
          const inside = "127.0.0.1:" + location.port
          a.href = "http://" + inside + "/link"
          f.src = "http://" + inside + "/frame"
          new Image().src = "http://" + inside + "/image"
          navigator.sendBeacon("http://" + inside + "/beacon", "x")
          const say = (text) => { out.textContent += text + "; " }
          fetch("http://" + inside + "/fetch", { mode: "no-cors" }).then(() => say("fetched"), () => say("no fetch"))
          fetch("http://public.test:" + location.port + "/fine", { mode: "no-cors" }).then(() => say("public"), () => say("not public"))
          fetch("http://inside.test:" + location.port + "/named", { mode: "no-cors" }).then(() => say("named"), () => say("no name"))
          const socket = new WebSocket("ws://" + inside + "/socket")
          socket.onopen = () => say("connected")
          socket.onerror = () => say("no socket")
        </script>`),
          "/away": to((port) => `http://127.0.0.1:${port}/redirected`),
          "/secure": to((port) => `https://127.0.0.1:${port}/redirected`),
          "/name": to((port) => `http://inside.test:${port}/redirected`),
          "/fine": page("Fine")
        },
        (use, { port, asked }) =>
          Effect.gen(function* () {
            const outside = `http://127.0.0.2:${port}`
            for (const path of ["/away", "/secure", "/name"]) {
              const { ok, result } = yield* use("navigate", { url: outside + path })
              expect(result.error ?? "none").toMatch(
                /it led to https?:\/\/(127\.0\.0\.1|inside\.test).* private or local address/
              )
              expect(ok).toBe(false)
            }
            yield* use("navigate", { url: `${outside}/` })
            const said = ["no fetch", "no name", "no socket", " public"]
            const tells = (text: unknown) => said.every((each) => ` ${text}`.includes(each))
            let { result } = yield* use("snapshot")
            for (let looks = 0; looks < 15 && !tells(result.snapshot); looks++) {
              yield* Effect.sleep("1 second")
              result = (yield* use("snapshot")).result
            }
            for (const each of said) expect(` ${result.snapshot}`).toContain(each)
            const link = yield* use("click", { ref: /link "Inside" \[ref=(\w+)/.exec(result.snapshot)?.[1] })
            expect(link.result.notes).toContainEqual(
              expect.stringMatching(/\/link was not opened: .*private or local address/)
            )
            expect(asked.filter((each) => !each.startsWith("127.0.0.2/"))).toEqual(["public.test/fine"])
          }),
        {},
        guard({ "public.test": "127.0.0.2", "inside.test": "127.0.0.1" })
      )
  )

  it("is refused to a name that changes its address between two looks", () => {
    const turns = ["127.0.0.2", "127.0.0.1"]
    const fickle = Guard.make({
      allowPrivate: false,
      permits: (address) => address === "127.0.0.2",
      resolve: () => Promise.resolve([{ address: turns.shift() ?? "127.0.0.1", family: 4 }])
    })
    return browse(
      { "/": page("Secret") },
      (use, { port, asked }) =>
        Effect.gen(function* () {
          const { result } = yield* use("navigate", { url: `http://fickle.test:${port}/` })
          expect(result.error).toMatch(/private or local address/)
          expect(asked).toEqual([])
        }),
      {},
      fickle
    )
  })

  it("is reached when private networks are allowed, websockets too", () =>
    browse(
      {
        "/": page(
          "<pre id=out></pre><script>const s = new WebSocket('ws://' + location.host + '/socket'); s.onopen = () => { out.textContent = `connected` }</script>"
        )
      },
      (use, { url, server }) =>
        Effect.gen(function* () {
          const sockets: Array<Duplex> = []
          yield* Effect.addFinalizer(() => Effect.sync(() => sockets.forEach((socket) => void socket.destroy())))
          server.on("upgrade", (request, socket) => {
            const accept = Crypto.createHash("sha1")
              .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
              .digest("base64")
            sockets.push(socket)
            socket.on("error", () => {})
            socket.write(
              `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
            )
          })
          yield* use("navigate", { url })
          expect((yield* use("snapshot")).result.snapshot).toContain("connected")
        })
    ))
})
