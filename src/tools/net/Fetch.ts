/** Gets what lies at an address that a model names: guarded, within limits of size and time, a few calls a host at once. */
import type { LookupFunction } from "node:net"
import { Duration, Effect, Either, Predicate, Schema, Scope } from "effect"
import { type Guard, Refused } from "./Guard.ts"
import type * as Undici from "./Undici.ts"

/** An address that gave nothing. `message` is for the model. */
export class FetchError extends Schema.TaggedError<FetchError>()("FetchError", {
  detail: Schema.String,
  /** HTTP status; 0 where there was none. */
  status: Schema.optionalWith(Schema.Number, { default: () => 0 })
}) {
  override get message(): string {
    return this.detail
  }
}

/** What lay there. */
export interface Fetched {
  /** Where it was found in the end. */
  readonly url: URL
  /** As the server says, in lower case, without parameters; empty for none. */
  readonly contentType: string
  /** As the server says; empty for none. */
  readonly charset: string
  /** Unpacked. */
  readonly bytes: Uint8Array
  /** Whether there was more than `maxBytes`. */
  readonly cut: boolean
}

export interface Limits {
  /** Bytes at most, unpacked. */
  readonly maxBytes: number
  /** Seconds at most, redirects included. */
  readonly timeout: number
  /** The header `accept`. */
  readonly accept?: string
}

export interface Fetcher {
  /** Fails with `FetchError` for an HTTP status of 400 and above. */
  readonly get: (url: string, limits: Limits) => Effect.Effect<Fetched, FetchError | Refused>
}

const redirectsAtMost = 8
/** Calls to one host at once. */
const perHost = 3

/** Connections stay open for others of the run, and close with the scope. */
export const make = (guard: Guard): Effect.Effect<Fetcher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    // Loaded with the first call: a run whose tools fetch nothing does not pay for it.
    const client = yield* Effect.cached(Scope.extend(open(guard), scope))
    const hosts = new Map<string, Effect.Semaphore>()
    const politely = <A, E, R>(host: string, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
      const places = hosts.get(host) ?? Effect.unsafeMakeSemaphore(perHost)
      hosts.set(host, places)
      return places.withPermits(1)(call)
    }
    const get = Effect.fn("Fetch.get")(function* (given: string, limits: Limits) {
      const { fetch, agent } = yield* client
      let url: URL = yield* guard.url(given)
      for (let hop = 0; hop <= redirectsAtMost; hop++) {
        const next = yield* politely(url.host, once({ fetch, agent }, url, limits))
        if (!("location" in next)) return next
        if (!URL.canParse(next.location, url.href)) {
          return yield* new FetchError({ detail: `${url.host} redirects to what is no URL` })
        }
        url = yield* guard.url(new URL(next.location, url).href)
      }
      return yield* new FetchError({ detail: `${url.host} redirects more than ${redirectsAtMost} times` })
    })
    return {
      get: (url, limits) =>
        Effect.timeoutFail(get(url, limits), {
          duration: Duration.seconds(limits.timeout),
          onTimeout: () => new FetchError({ detail: `no whole answer within ${limits.timeout} seconds` })
        })
    }
  })

interface Client {
  readonly fetch: typeof Undici.fetch
  readonly agent: Undici.Agent
}

const open = (guard: Guard): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.promise(() => import("./Undici.ts")),
    ({ Agent, fetch }) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => new Agent({ connect: { timeout: 20_000, lookup: lookupOf(guard) } })),
          (agent) => Effect.promise(() => agent.destroy())
        ),
        (agent) => ({ fetch, agent })
      )
  )

/** What is connected to is what was judged: a name is resolved once, at that moment. */
const lookupOf =
  (guard: Guard): LookupFunction =>
  (hostname, _, done) => {
    Effect.runPromise(Effect.either(guard.resolve(hostname))).then((found) =>
      Either.isLeft(found) ? done(found.left, []) : done(null, [...found.right])
    )
  }

const once = Effect.fnUntraced(function* ({ fetch, agent }: Client, url: URL, { accept, maxBytes }: Limits) {
  const response = yield* Effect.tryPromise({
    try: (signal) =>
      fetch(url, {
        dispatcher: agent,
        redirect: "manual",
        signal,
        headers: { accept: accept ?? "*/*", "user-agent": userAgent }
      }),
    catch: (error) => broken(url, error)
  })
  const { status, headers } = response
  const location = headers.get("location")
  if (status >= 300 && status < 400 && location !== null) {
    yield* Effect.promise(() => response.body?.cancel() ?? Promise.resolve())
    return { location }
  }
  if (status >= 400) {
    yield* Effect.promise(() => response.body?.cancel() ?? Promise.resolve())
    return yield* new FetchError({ detail: `${url.host} answers HTTP ${status}`, status })
  }
  const { bytes, cut } = yield* Effect.tryPromise({
    try: () => upTo(response.body, maxBytes),
    catch: (error) => broken(url, error)
  })
  const type = headers.get("content-type") ?? ""
  const found: Fetched = {
    url,
    contentType: (type.split(";")[0] ?? "").trim().toLowerCase(),
    charset: /charset="?([^";\s]+)/i.exec(type)?.[1] ?? "",
    bytes,
    cut
  }
  return found
})

const userAgent = "Mozilla/5.0 (compatible; batch-runner)"

const broken = (url: URL, error: unknown): FetchError | Refused => {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  if (cause instanceof Refused) return cause
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : String(cause)
  return new FetchError({ detail: `${url.host} cannot be reached: ${code}` })
}

const upTo = async (body: AsyncIterable<Uint8Array> | null, most: number) => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  for await (const chunk of body ?? []) {
    chunks.push(chunk)
    size += chunk.length
    if (size > most) break
  }
  const all = Buffer.concat(chunks)
  return { bytes: all.subarray(0, most), cut: all.length > most }
}
