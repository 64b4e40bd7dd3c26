/** Gets what lies at an address that a model names: guarded, within limits of size and time, a few calls a host at once. */
import { STATUS_CODES } from "node:http"
import type { LookupFunction } from "node:net"
import { Clock, Duration, Effect, Either, Option, Schema, type Scope } from "effect"
import * as Failure from "../../model/openai/Failure.ts"
import { type Guard, Refused } from "./Guard.ts"
import * as Hosts from "./Hosts.ts"
import type * as Proxy from "./Proxy.ts"
import * as Route from "./Route.ts"

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
  /** Seconds at most, redirects included; waiting for other calls to the same host is not. */
  readonly timeout: number
  /** The header `accept`. */
  readonly accept?: string
}

export interface Fetcher {
  /** Fails with `FetchError` for an HTTP status of 400 and above. A busy host (HTTP 429 or 503 with `retry-after`) is asked a second time. */
  readonly get: (url: string, limits: Limits) => Effect.Effect<Fetched, FetchError | Refused>
}

const redirectsAtMost = 8

/** Seconds to wait for a busy host at most, when it says how long, and when it does not. */
const patience = { asked: 20, unasked: 2 } as const

/** Seconds to wait for other calls to the same host at most. */
const queueAtMost = 120

/** Connections stay open for others of the run, and close with the scope. */
export const make = (
  guard: Guard,
  environment: Proxy.Environment = process.env
): Effect.Effect<Fetcher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const route = yield* Route.make({ connect: { lookup: lookupOf(guard) }, environment })
    const politely = Hosts.make()

    /** One exchange, and the seconds that it took. */
    const hop = Effect.fnUntraced(function* (url: URL, limits: Limits, left: number) {
      const way = yield* Effect.mapError(route(url), (detail) => new FetchError({ detail }))
      if (way.proxied) yield* guard.remote(url.href)
      let began = Number.POSITIVE_INFINITY
      const exchange = Effect.gen(function* () {
        began = yield* Clock.currentTimeMillis
        return yield* Effect.timeoutFail(once(way, url, limits), {
          duration: Duration.seconds(left),
          onTimeout: () => tooSlow(limits)
        })
      })
      const waiting = Effect.delay(Effect.void, Duration.seconds(queueAtMost)).pipe(
        Effect.flatMap(() => (began === Number.POSITIVE_INFINITY ? busy(url) : Effect.never))
      )
      const reply = yield* Effect.raceFirst(politely(url.hostname, exchange), waiting)
      return { reply, took: ((yield* Clock.currentTimeMillis) - began) / 1000 }
    })

    const get = Effect.fn("Fetch.get")(function* (given: string, limits: Limits) {
      let url: URL = yield* guard.url(given)
      let left = limits.timeout
      let patient = true
      for (let hops = 0; hops <= redirectsAtMost; ) {
        const { reply, took } = yield* hop(url, limits, left)
        left -= took
        if (left <= 0) return yield* tooSlow(limits)
        if (reply._tag === "Found") return reply.found
        if (reply._tag === "Moved") {
          if (!URL.canParse(reply.location, url.href)) {
            return yield* new FetchError({ detail: `${url.host} redirects to what is no URL` })
          }
          url = yield* guard.url(new URL(reply.location, url).href)
          hops++
        } else if (patient && reply.wait <= patience.asked) {
          patient = false
          yield* Effect.sleep(Duration.seconds(reply.wait))
        } else {
          return yield* failed(url, reply.status, patient ? ` and asks to come back in ${reply.wait} seconds` : "")
        }
      }
      return yield* new FetchError({ detail: `${url.host} redirects more than ${redirectsAtMost} times` })
    })
    return { get }
  })

const tooSlow = ({ timeout }: Limits) => new FetchError({ detail: `no whole answer within ${timeout} seconds` })

const busy = ({ host }: URL) =>
  new FetchError({ detail: `too many calls to ${host} are under way: try again later, or another address` })

const failed = ({ host }: URL, status: number, more = "") => {
  const reason = STATUS_CODES[status]
  return new FetchError({
    detail: `${host} answers HTTP ${status}${reason === undefined ? "" : ` (${reason})`}${more}`,
    status
  })
}

/** What is connected to is what was judged: a name is resolved once, at that moment. */
const lookupOf =
  (guard: Guard): LookupFunction =>
  (hostname, _, done) => {
    Effect.runPromise(Effect.either(guard.resolve(hostname))).then((found) =>
      Either.isLeft(found) ? done(found.left, []) : done(null, [...found.right])
    )
  }

type Reply =
  | { readonly _tag: "Found"; readonly found: Fetched }
  | { readonly _tag: "Moved"; readonly location: string }
  /** Seconds to wait. */
  | { readonly _tag: "Busy"; readonly status: number; readonly wait: number }

/** One exchange to the end of its body: interrupting it ends the connection. */
const once = Effect.fnUntraced(function* (way: Route.Way, url: URL, { accept, maxBytes }: Limits) {
  const now = yield* Clock.currentTimeMillis
  const exchange = async (signal: AbortSignal): Promise<Reply | FetchError> => {
    const response = await way.fetch(url, {
      dispatcher: way.dispatcher,
      redirect: "manual",
      signal,
      headers: { accept: accept ?? "*/*", "user-agent": userAgent }
    })
    const { status, headers } = response
    const location = headers.get("location")
    if (status >= 300 && (status >= 400 || location !== null)) {
      // A connection that breaks while nobody wants what it brings is no failure.
      await response.body?.cancel().catch(() => {})
      if (location !== null && status < 400) return { _tag: "Moved", location }
      const wait = Option.map(
        Failure.retryAfter((name) => headers.get(name), now),
        (asked) => Math.ceil(Duration.toSeconds(asked))
      )
      if (status === 429) return { _tag: "Busy", status, wait: Option.getOrElse(wait, () => patience.unasked) }
      return status === 503 && Option.isSome(wait) ? { _tag: "Busy", status, wait: wait.value } : failed(url, status)
    }
    const { bytes, cut } = await upTo(response.body, maxBytes)
    const type = headers.get("content-type") ?? ""
    return {
      _tag: "Found",
      found: {
        url,
        contentType: (type.split(";")[0] ?? "").trim().toLowerCase(),
        charset: /charset\s*=\s*["']?([^"';,\s]+)/i.exec(type)?.[1] ?? "",
        bytes,
        cut
      }
    }
  }
  const reply = yield* Effect.tryPromise({ try: exchange, catch: (error) => broken(url, error) })
  return reply instanceof FetchError ? yield* reply : reply
})

const userAgent = "Mozilla/5.0 (compatible; batch-runner)"

const broken = (url: URL, error: unknown): FetchError | Refused => {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  if (cause instanceof Refused) return cause
  const code = Failure.codeOf(cause)
  const packed = code.startsWith("Z_") || code.startsWith("ERR__ERROR_FORMAT") || code.startsWith("ERR_BROTLI")
  const why = packed ? "its answer is wrongly compressed" : Failure.connectionWords(cause)
  return new FetchError({ detail: Failure.oneLine(`${url.host} cannot be read: ${why}`, "") })
}

/** The beginning of a body: what comes after it is not waited for. */
export const upTo = async (body: AsyncIterable<Uint8Array> | null, most: number) => {
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
