import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import type * as Http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { expect, it } from "vitest"
import * as Guard from "../../../src/tools/net/Guard.ts"
import * as Variables from "../../../src/tools/Variables.ts"
import { until } from "../../support/Command.ts"
import { inSandbox } from "../support.ts"
import { build, chromium, describe, page, type Site, serve, session, using } from "./support.ts"

/** A Chromium that listens, as a browser elsewhere would; gone with the scope. */
const elsewhere = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "elsewhere-"))
    const child: ChildProcess = spawn(
      chromium,
      [
        "--headless",
        ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
        "--remote-debugging-port=0",
        `--user-data-dir=${folder}`,
        "about:blank"
      ],
      { stdio: "ignore", env: { PATH: process.env.PATH, HOME: folder } }
    )
    const file = join(folder, "DevToolsActivePort")
    await until(() => existsSync(file) && readFileSync(file, "utf8").includes("/devtools/"), 30_000)
    const [port, path] = readFileSync(file, "utf8").split("\n")
    return { child, folder, http: `http://127.0.0.1:${port}`, ws: `ws://127.0.0.1:${port}${path}` }
  }),
  ({ child, folder }) =>
    Effect.promise(async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve))
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    })
)

interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: unknown
}

/** A service of browsers that answers as its documentation says. */
const service = (answers: Readonly<Record<string, () => { readonly status?: number; readonly body: object }>>) =>
  Effect.gen(function* () {
    const asked: Array<Asked> = []
    const site: Site = yield* serve({})
    site.server.removeAllListeners("request")
    site.server.on("request", (request: Http.IncomingMessage, response: Http.ServerResponse) => {
      let text = ""
      request.on("data", (part) => {
        text += part
      })
      request.on("end", () => {
        const [method, path] = [request.method ?? "", request.url ?? ""]
        asked.push({ method, path, headers: request.headers, body: JSON.parse(text) })
        const { status = 200, body } = answers[`${method} ${path}`]?.() ?? { status: 404, body: { detail: "no" } }
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
      })
    })
    return { url: site.url, asked }
  })

/** A service that takes its time. */
const slowly = Effect.gen(function* () {
  const asked: Array<string> = []
  const site: Site = yield* serve({})
  site.server.removeAllListeners("request")
  site.server.on("request", (request: Http.IncomingMessage, response: Http.ServerResponse) => {
    asked.push(`${request.method} ${request.url}`)
    const body = JSON.stringify({ id: "late", connectUrl: "ws://127.0.0.1:9/" })
    setTimeout(() => response.end(body), 1000)
  })
  return { url: site.url, asked }
})

const variables = (given: Readonly<Record<string, string>>) => ({ variables: Variables.from(given) })

describe("A browser at an address of one's own", () => {
  it("gives each session a context, and is left as it was", { timeout: 90_000 }, () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const there = yield* elsewhere
          const { url } = yield* serve({
            "/set": page("<script>document.cookie = 'who=me'</script>Set"),
            "/get": page("<p id=out></p><script>out.textContent = 'cookie: ' + document.cookie</script>"),
            "/file": (_, response) =>
              response.writeHead(200, { "content-disposition": "attachment; filename=a" }).end("x")
          })
          for (const address of [there.http, there.ws]) {
            const scope = yield* Scope.make()
            const { tools } = yield* Scope.extend(build(variables({ BROWSER_CDP_URL: address })), scope)
            const use = using(tools)
            const set = yield* session(use("navigate", { url: `${url}/set` }))
            expect(set.result).toMatchObject({ success: true, status: 200 })
            const get = yield* session(use("navigate", { url: `${url}/get` }))
            expect(get.result.snapshot).toContain("cookie:")
            expect(get.result.snapshot).not.toContain("who=")
            const file = yield* session(use("navigate", { url: `${url}/file` }))
            expect(file.result.downloads).toMatchObject([{ name: "a", error: expect.stringMatching(/runs elsewhere/) }])
            yield* Scope.close(scope, Exit.void)
          }
          expect(there.child.exitCode).toBeNull()
          const left = yield* Effect.promise(() => fetch(`${there.http}/json/list`).then((answer) => answer.text()))
          expect(left).toContain("about:blank")
          expect(left).not.toContain(url)
        })
      )
    )
  )

  it("obeys the rules for addresses, and its own address is told to nobody", { timeout: 90_000 }, () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const there = yield* elsewhere
          const { port, asked } = yield* serve({
            "/": page(`<iframe src="javascript:''" id=f></iframe><pre id=out>…</pre><script>
              const inside = "127.0.0.1:" + location.port
              f.src = "http://" + inside + "/frame"
              fetch("http://" + inside + "/fetch", { mode: "no-cors" }).catch(() => { out.textContent = "no fetch" })
              new WebSocket("ws://" + inside + "/socket")
            </script>`),
            "/away": (request, response) =>
              response
                .writeHead(302, { location: `http://127.0.0.1:${request.headers.host?.split(":")[1]}/secret` })
                .end(),
            "/secret": page("Secret")
          })
          const guard = Guard.make({ allowPrivate: false, permits: (address) => address === "127.0.0.2" })
          const { tools } = yield* build(variables({ BROWSER_CDP_URL: there.http }), guard)
          const use = using(tools)
          yield* session(
            Effect.gen(function* () {
              expect((yield* use("navigate", { url: `http://127.0.0.1:${port}/` })).result.error).toMatch(
                /private or local/
              )
              yield* use("navigate", { url: `http://127.0.0.2:${port}/` })
              expect((yield* use("snapshot")).result.snapshot).toContain("no fetch")
              expect(asked.filter((each) => !each.startsWith("127.0.0.2/"))).toEqual([])
              const away = yield* use("navigate", { url: `http://127.0.0.2:${port}/away` })
              expect(away.result.error).toMatch(/private or local/)
              expect(away.text).not.toContain("Secret")
              expect((yield* use("snapshot")).text).not.toContain("Secret")
            })
          )
          const secret = "ws://127.0.0.1:9/devtools?token=sesame"
          const dead = using((yield* build(variables({ BROWSER_CDP_URL: secret }))).tools)
          const { result, text } = yield* session(dead("navigate", { url: `http://127.0.0.1:${port}/` }))
          expect(result.error).toBe("the browser at BROWSER_CDP_URL cannot be reached: ECONNREFUSED")
          expect(text).not.toContain("sesame")
        })
      )
    )
  )
})

describe("A browser of a service", () => {
  it("of Browserbase is rented for a session and given back", { timeout: 90_000 }, () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const there = yield* elsewhere
          const { url } = yield* serve({ "/": page("Here") })
          let tries = 0
          const { url: api, asked } = yield* service({
            "POST /v1/sessions": () =>
              tries++ === 0
                ? { status: 429, body: { message: "too many" } }
                : { status: 201, body: { id: "s1", status: "RUNNING", connectUrl: there.ws } },
            "POST /v1/sessions/s1": () => ({ body: { id: "s1", status: "COMPLETED" } })
          })
          const { tools } = yield* build({
            timeout: 600,
            ...variables({ BROWSERBASE_API_KEY: "bb-key", BROWSERBASE_PROJECT_ID: "project", BROWSERBASE_API_URL: api })
          })
          const use = using(tools)
          const { result } = yield* session(use("navigate", { url }))
          expect(result.snapshot).toContain("Here")
          expect(asked.map(({ method, path, body }) => [method, path, body])).toEqual([
            ["POST", "/v1/sessions", { projectId: "project", timeout: 600 }],
            ["POST", "/v1/sessions", { projectId: "project", timeout: 600 }],
            ["POST", "/v1/sessions/s1", { projectId: "project", status: "REQUEST_RELEASE" }]
          ])
          expect(asked.every(({ headers }) => headers["x-bb-api-key"] === "bb-key")).toBe(true)
        })
      )
    )
  )

  it("of Browser Use is rented with a key or through the gateway, and given back", { timeout: 120_000 }, () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* serve({ "/": page("Here") })
          for (const [given, headers] of [
            [{ BROWSER_USE_API_KEY: "bu-key" }, { "x-browser-use-api-key": "bu-key" }],
            [{ TOOL_GATEWAY_USER_TOKEN: "token" }, { authorization: "Bearer token", "x-browser-use-api-key": "token" }]
          ] as const) {
            const there = yield* elsewhere
            const { url: api, asked } = yield* service({
              "POST /browsers": () => ({ status: 201, body: { id: "b1", status: "active", cdpUrl: there.http } }),
              "PATCH /browsers/b1": () => ({ body: { id: "b1", status: "stopped" } })
            })
            const { tools } = yield* build({
              timeout: 90,
              ...variables({ ...given, BROWSER_USE_API_URL: api, BROWSER_USE_GATEWAY_URL: api })
            })
            const use = using(tools)
            yield* session(
              Effect.gen(function* () {
                expect((yield* use("navigate", { url })).result.snapshot).toContain("Here")
                expect((yield* use("close")).result.note).toBe("closed")
              })
            )
            expect(asked.map(({ method, path, body }) => [method, path, body])).toEqual([
              ["POST", "/browsers", { timeout: 2 }],
              ["PATCH", "/browsers/b1", { action: "stop" }]
            ])
            for (const one of asked) expect(one.headers).toMatchObject(headers)
            // Only the gateway knows several tries for one.
            const once = asked.map((one) => one.headers["x-idempotency-key"])
            const name = "authorization" in headers ? expect.stringMatching(/^batch-runner-/) : undefined
            expect(once).toEqual([name, undefined])
          }
        })
      )
    )
  )

  it("is asked for once when it may have been rented, and its session waits for the answer to give it back", () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const { url, asked } = yield* service({
            "POST /v1/sessions": () => ({ status: 502, body: { message: "bad gateway" } })
          })
          const { tools } = yield* build(variables({ BROWSERBASE_API_KEY: "bb-key", BROWSERBASE_API_URL: url }))
          const { result } = yield* session(using(tools)("navigate", { url }))
          expect(result.error).toBe("Browserbase answers HTTP 502: bad gateway")
          expect(asked).toHaveLength(1)
          const slow = yield* slowly
          const late = yield* build(variables({ BROWSERBASE_API_KEY: "bb-key", BROWSERBASE_API_URL: slow.url }))
          yield* Effect.timeoutOption(session(using(late.tools)("navigate", { url })), "300 millis")
          expect(slow.asked).toEqual(["POST /v1/sessions", "POST /v1/sessions/late"])
        })
      )
    ))

  it("that refuses is told without its key", () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* service({
            "POST /browsers": () => ({ status: 402, body: { detail: "no credit for bu-key" } })
          })
          const { tools } = yield* build(variables({ BROWSER_USE_API_KEY: "bu-key", BROWSER_USE_API_URL: url }))
          const { result } = yield* session(using(tools)("navigate", { url }))
          expect(result.error).toBe(
            "Browser Use has no credit left (HTTP 402); go on without this tool: no credit for ***"
          )
        })
      )
    ))
})
