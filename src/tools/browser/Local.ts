/** A Chromium of this machine: one process for the whole run, started with the first page and again after a crash. */
import { mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { Browser } from "playwright-core"
import * as Place from "../../sandbox/Place.ts"
import type { Guard } from "../net/Guard.ts"
import * as Proxy from "./Proxy.ts"
import * as Sieve from "./Sieve.ts"
import * as Single from "./Single.ts"
import { BrowserError, type Opened, owned, type Source, viewport, within } from "./Source.ts"

interface Running {
  readonly browser: Browser
  readonly proxy: Proxy.Proxy
}

/** Nothing is started before the first context; all ends with the scope. */
export const make = (program: string, guard: Guard): Effect.Effect<Source, never, Scope.Scope> =>
  Effect.map(Single.make(start(program, guard)), (running) => ({ open: Effect.flatMap(running, context) }))

/** Chromium's own sandbox needs a user who is not root. */
const isRoot = () => process.getuid?.() === 0

const switches = (proxy: Proxy.Proxy): Array<string> => [
  `--proxy-server=http://127.0.0.1:${proxy.port}`,
  // What is called localhost goes through the proxy as well.
  "--proxy-bypass-list=<-loopback>",
  // No name is resolved except by the proxy, and nothing leaves by UDP.
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
  "--disable-quic",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--dns-prefetch-disable",
  "--deny-permission-prompts"
]

/** What a browser needs of our environment; keys are none of its affair. */
const kept = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH"]

const environment = (home: string): Record<string, string> => ({
  ...Object.fromEntries(
    kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name] ?? ""]]))
  ),
  HOME: home
})

const start = Effect.fnUntraced(function* (program: string, guard: Guard) {
  const { chromium } = yield* Effect.promise(() => import("./Playwright.ts"))
  const proxy = yield* Proxy.make(guard)
  // Named like the folders of local sandboxes: what a killed run leaves goes the same way.
  yield* Place.removeAbandoned(tmpdir())
  const folder = Place.base(tmpdir())
  const [profile, files] = [join(folder, "profile"), join(folder, "files")]
  const starter = yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        for (const each of [profile, files]) mkdirSync(each, { recursive: true, mode: 0o700 })
        return Sieve.write(folder, program)
      },
      catch: (error) => new BrowserError({ detail: `the browser has no folder for its files: ${error}` })
    }),
    // What did not end by itself, or was starting when it was given up, is ended here.
    () => {
      const end = Sieve.end(profile)
      return Effect.all([end, Place.remove(folder), end], { discard: true })
    }
  )
  const launch = (sandboxed: boolean) =>
    owned(
      35,
      () =>
        chromium.launchPersistentContext(profile, {
          executablePath: starter,
          headless: true,
          args: switches(proxy),
          env: environment(folder),
          artifactsDir: files,
          downloadsPath: files,
          handleSIGINT: false,
          handleSIGTERM: false,
          handleSIGHUP: false,
          chromiumSandbox: sandboxed,
          timeout: 30_000
        }),
      (context) => context.close()
    )
  const own = yield* launch(!isRoot()).pipe(
    // Inside a container there is often none to be had, and the container is what holds the browser.
    Effect.catchIf(
      ({ log }) => /no usable sandbox/i.test(log),
      () => launch(false)
    ),
    Effect.mapError(
      ({ detail }) => new BrowserError({ detail: `the browser could not be started: ${detail.split("\n")[0]}` })
    )
  )
  const browser = own.browser()
  if (browser === null) return yield* new BrowserError({ detail: "the browser could not be started" })
  return { browser, proxy }
})

const context = ({ browser, proxy }: Running): Effect.Effect<Opened, BrowserError, Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* owned(
      30,
      () => browser.newContext({ viewport, acceptDownloads: true }),
      (context) => context.close()
    )
    const page = yield* within(30, () => context.newPage())
    return {
      context,
      page,
      alive: () => browser.isConnected(),
      why: proxy.why,
      refuses: () => Promise.resolve(undefined),
      downloads: true
    }
  }).pipe(
    Effect.catchTag("PageError", ({ detail }) => new BrowserError({ detail: `the browser opens no page: ${detail}` }))
  )
