/** A browser elsewhere, reached by the DevTools protocol: one that all sessions share, or one rented for each. */
import { Effect, Either, Redacted, type Scope } from "effect"
import type { Browser, BrowserContext, Route } from "playwright-core"
import type { Guard } from "../net/Guard.ts"
import type { Rent } from "./Cloud.ts"
import * as Single from "./Single.ts"
import { attempt, BrowserError, type Opened, owned, type PageError, type Source, viewport, within } from "./Source.ts"

/** Rules for addresses; undefined where every address is reached. */
export type Rules = Guard | undefined

/** The browser at an address of the user's own. */
export const shared = (address: Redacted.Redacted, rules: Rules): Effect.Effect<Source, never, Scope.Scope> =>
  Effect.map(
    Single.make(Effect.map(connect(address, "the browser at BROWSER_CDP_URL"), (browser) => ({ browser }))),
    (running) => ({
      open: Effect.flatMap(running, ({ browser }) =>
        unopened(
          owned(
            30,
            () => browser.newContext({ viewport, serviceWorkers: "block" }),
            (context) => context.close()
          )
        ).pipe(Effect.flatMap((context) => opened(browser, context, rules)))
      )
    })
  )

/** A browser of its own for each session, given back at its end. */
export const rented = ({ name, rent }: Rent, rules: Rules): Source => ({
  open: Effect.gen(function* () {
    const browser = yield* connect(yield* rent, `the browser of ${name}`)
    const [existing] = browser.contexts()
    return yield* opened(browser, existing ?? (yield* remote(() => browser.newContext({ viewport }))), rules)
  })
})

/** Its address holds a key, and so does what Playwright says of it: only the kind of failure is told. */
const connect = Effect.fnUntraced(function* (address: Redacted.Redacted, name: string) {
  const { chromium } = yield* Effect.promise(() => import("./Playwright.ts"))
  return yield* Effect.mapError(
    owned(
      20,
      () => chromium.connectOverCDP(Redacted.value(address), { timeout: 15_000 }),
      (browser) => browser.close()
    ),
    ({ detail, log }) => {
      const kind = /\bE(?:CONN[A-Z]+|NOTFOUND|TIMEDOUT|AI_AGAIN)\b|(?<= )[45]\d\d(?= [A-Z])/.exec(log)?.[0]
      const why = kind ?? (/imeout|within/.test(detail) ? "no answer in time" : "it does not answer as a browser does")
      return new BrowserError({ detail: `${name} cannot be reached: ${/^\d/.test(why) ? `HTTP ${why}` : why}` })
    }
  )
})

const remote = <A>(ask: () => Promise<A>): Effect.Effect<A, BrowserError> => unopened(within(30, ask))

const unopened = <A, R>(ask: Effect.Effect<A, PageError, R>): Effect.Effect<A, BrowserError, R> =>
  Effect.mapError(
    ask,
    ({ detail }) => new BrowserError({ detail: `the browser opens no page: ${detail.replace(/\bwss?:\S+/g, "…")}` })
  )

const opened = Effect.fnUntraced(function* (browser: Browser, context: BrowserContext, rules: Rules) {
  const judge = verdicts(rules)
  if (rules !== undefined) {
    yield* remote(() => context.route("**/*", (route) => allowOnly(route, judge)))
    yield* remote(() =>
      context.routeWebSocket(/.*/, async (socket) => {
        const refused = await judge(socket.url().replace(/^ws/, "http"))
        if (refused === undefined) socket.connectToServer()
        else await socket.close({ code: 1008 })
      })
    )
  }
  const page = context.pages()[0] ?? (yield* remote(() => context.newPage()))
  yield* attempt(5, () => page.setViewportSize(viewport))
  const refusals = (url: string) => (/^https?:/.test(url) ? judge(url) : Promise.resolve(undefined))
  const one: Opened = {
    context,
    page,
    alive: () => browser.isConnected(),
    why: () => undefined,
    refuses: refusals,
    downloads: false
  }
  return one
})

type Judge = (url: string) => Promise<string | undefined>

const remembered = 1000

/** Why an address is refused, each host asked for once. */
const verdicts = (rules: Rules): Judge => {
  const hosts = new Map<string, Promise<string | undefined>>()
  return (given) => {
    if (rules === undefined) return Promise.resolve(undefined)
    const url = rules.url(given)
    if (Either.isLeft(url)) return Promise.resolve(url.left.message)
    const { hostname } = url.right
    const known = hosts.get(hostname)
    if (known !== undefined) return known
    const found = Effect.runPromise(Effect.either(rules.resolve(hostname))).then((verdict) =>
      Either.isLeft(verdict) ? verdict.left.message : undefined
    )
    if (hosts.size >= remembered) hosts.clear()
    hosts.set(hostname, found)
    return found
  }
}

const allowOnly = async (route: Route, judge: Judge): Promise<void> => {
  const url = route.request().url()
  const refused = /^https?:/.test(url) ? await judge(url) : undefined
  // A page that has gone in the meantime needs no answer.
  await (refused === undefined ? route.continue() : route.abort("accessdenied")).catch(() => {})
}
