/** How requests of tools leave this machine: directly, or through the proxy that the environment names. */
import { Effect, Scope } from "effect"
import * as Proxy from "./Proxy.ts"
import type * as Undici from "./Undici.ts"

/** One way out. */
export interface Way {
  readonly fetch: typeof Undici.fetch
  readonly dispatcher: Undici.Dispatcher
  /** Whether a proxy connects, and looks the name up. */
  readonly proxied: boolean
}

export interface Options {
  /** How direct connections are made. */
  readonly connect?: Undici.Agent.Options["connect"]
  readonly environment?: Proxy.Environment
}

/** The proxy variable holds nothing that can be used. */
export const badProxy = "a proxy variable of the environment, such as HTTPS_PROXY, holds no address of a proxy"

/** How long an answer may take is decided around a request. */
const limits = { headersTimeout: 0, bodyTimeout: 0 } as const

/** Gives the way to an address; fails with `badProxy`. Connections stay open for others, and close with the scope. */
export const make = ({
  connect,
  environment = process.env
}: Options = {}): Effect.Effect<(url: URL) => Effect.Effect<Way, string>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const keep = <A extends Undici.Dispatcher, E>(open: Effect.Effect<A, E>) =>
      Scope.extend(
        Effect.acquireRelease(open, (dispatcher) => Effect.promise(() => dispatcher.destroy())),
        scope
      )
    // Loaded with the first call: a run whose tools fetch nothing does not pay for it.
    const undici = yield* Effect.cached(Effect.promise(() => import("./Undici.ts")))
    const direct = yield* Effect.cached(
      Effect.flatMap(undici, ({ Agent }) =>
        keep(
          Effect.sync(() => new Agent({ ...limits, connect: { timeout: 20_000, autoSelectFamily: true, ...connect } }))
        )
      )
    )
    const through = yield* Effect.cachedFunction((uri: string) =>
      Effect.flatMap(undici, ({ ProxyAgent }) =>
        keep(
          Effect.try({
            // Plain requests are handed to the proxy whole: many open tunnels to port 443 alone.
            try: () => new ProxyAgent({ ...limits, uri, proxyTunnel: false }),
            catch: () => badProxy
          })
        )
      )
    )
    return Effect.fnUntraced(function* (url: URL) {
      const { fetch } = yield* undici
      const proxy = Proxy.of(url, environment)
      const way: Way =
        proxy === undefined
          ? { fetch, dispatcher: yield* direct, proxied: false }
          : { fetch, dispatcher: yield* through(proxy), proxied: true }
      return way
    })
  })
