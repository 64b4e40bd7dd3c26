/** A real Chromium over local pages: a site whose pages a test writes, and sessions that call the tools as an agent does. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Either, Layer, type Scope } from "effect"
import * as vitest from "vitest"
import * as Scripted from "../../../src/model/Scripted.ts"
import type { Sandbox } from "../../../src/sandbox/Sandbox.ts"
import * as Browser from "../../../src/tools/Browser.ts"
import * as Program from "../../../src/tools/browser/Program.ts"
import * as Invoke from "../../../src/tools/Invoke.ts"
import * as Guard from "../../../src/tools/net/Guard.ts"
import * as Setting from "../../../src/tools/Setting.ts"
import type { Needs, Tool } from "../../../src/tools/Tool.ts"
import * as ToolSession from "../../../src/tools/ToolSession.ts"
import type { Toolset } from "../../../src/tools/Toolset.ts"
import { make as toolset } from "../../../src/tools/Toolset.ts"
import * as Variables from "../../../src/tools/Variables.ts"
import { inSandbox, type Used } from "../support.ts"

/** Path of the Chromium of this machine; empty for none. */
export const chromium = Either.getOrElse(Program.find(Variables.from(process.env)), () => "")

/** Left out only where there is no Chromium, and never in CI. */
export const describe = chromium !== "" || process.env.CI !== undefined ? vitest.describe : vitest.describe.skip

export type Answer = (request: Http.IncomingMessage, response: Http.ServerResponse) => void

/** A page of a title and a body. */
export const page =
  (body: string, title = "A page"): Answer =>
  (_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8")
    response.end(`<!doctype html><title>${title}</title>${body}`)
  }

export interface Site {
  readonly url: string
  readonly port: number
  /** Paths that were asked for, with the host that was meant. */
  readonly asked: Array<string>
  readonly server: Http.Server
}

/** A server of pages by path, on all of 127.0.0.0/8, until the scope closes. */
export const serve = (pages: Readonly<Record<string, Answer>>): Effect.Effect<Site, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Site>((resolve) => {
          const asked: Array<string> = []
          const server = Http.createServer((request, response) => {
            const path = (request.url ?? "/").replace(/\?.*$/, "")
            asked.push(`${request.headers.host?.replace(/:\d+$/, "")}${path}`)
            const answer = pages[path]
            if (answer !== undefined) return answer(request, response)
            response.writeHead(404, { "content-type": "text/html" }).end("<h1>Nothing here</h1>")
          })
          server.listen(0, "0.0.0.0", () => {
            const { port } = server.address() as AddressInfo
            resolve({ url: `http://127.0.0.1:${port}`, port, asked, server })
          })
        })
    ),
    ({ server }) =>
      Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            server.close(() => resolve())
            server.closeAllConnections()
          })
      )
  )

export type Use = (name: string, args?: object) => Effect.Effect<Used, never, Needs>

/** Calls `browser_<name>`; a failure of the session itself is a defect of the test. */
export const using =
  (tools: ReadonlyArray<Tool>): Use =>
  (name, args = {}) =>
    Effect.orDie(
      Effect.map(Invoke.call(tools, { name: `browser_${name}`, arguments: JSON.stringify(args) }), (invoked) => ({
        ...invoked,
        result: JSON.parse(invoked.text)
      }))
    )

/** The toolset with these settings. */
export const build = (
  setting: Partial<Setting.Setting> = {},
  guard?: Guard.Guard
): Effect.Effect<Toolset, never, Scope.Scope> => {
  const made = Setting.make({
    allowPrivateNetwork: guard === undefined,
    variables: Variables.from(chromium === "" ? {} : { CHROMIUM_PATH: chromium }),
    ...setting
  })
  return Effect.map(Browser.guarded(made, guard ?? Guard.make({ allowPrivate: made.allowPrivateNetwork })), (tools) =>
    toolset({ name: "browser", description: "", tools })
  )
}

/** One session with a browser and a site. */
export const browse = (
  pages: Readonly<Record<string, Answer>>,
  test: (use: Use, site: Site) => Effect.Effect<unknown, never, Needs | Scope.Scope>,
  setting: Partial<Setting.Setting> = {},
  guard?: Guard.Guard
): Promise<void> =>
  inSandbox(
    Effect.scoped(
      Effect.gen(function* () {
        const site = yield* serve(pages)
        const { tools } = yield* build(setting, guard)
        yield* test(using(tools), site)
      })
    )
  )

/** A session of its own inside a test: its resources end with it. */
export const session = <A, E>(effect: Effect.Effect<A, E, Needs>): Effect.Effect<A, E, Sandbox> =>
  Effect.provide(effect, Layer.merge(Layer.fresh(ToolSession.layer), Scripted.fromScript({ prompts: {}, default: [] })))

/** The handle of the first line of a snapshot that holds `text`. */
export const refOf = (snapshot: unknown, text: string): string => {
  const line = String(snapshot)
    .split("\n")
    .find((each) => each.includes(text) && each.includes("[ref="))
  return /\[ref=(\w+)\]/.exec(line ?? "")?.[1] ?? `no ref at ${text} in ${snapshot}`
}
