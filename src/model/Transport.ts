/** The HTTP transport under the model's client: a `fetch` over undici's `request`, with a connection pool and limits of our own. */
import { promisify } from "node:util"
import * as Zlib from "node:zlib"
import { Effect, type Scope } from "effect"
import type * as Undici from "./Undici.ts"

/** Bytes of one answer at most. */
export const maxResponseBytes = 64 * 1024 * 1024

/** What the client needs of the global `fetch`. */
export type Fetch = (
  input: string | URL | globalThis.Request,
  init?: globalThis.RequestInit
) => Promise<globalThis.Response>

/**
 * Whole responses, body read. Their own headers are left out but for those that say when to come back: without a content type
 * the client hands over the text as it is, which we decode ourselves. Made when needed: naming `Response` costs Node 40 ms.
 */
const replies = () => {
  class Reply extends Response {
    override readonly text: () => Promise<string>
    constructor(status: number, headers: Record<string, string>, text: string) {
      // No other numbers can be said to the client.
      super(null, { status: Math.min(599, Math.max(200, status)), headers })
      this.text = () => Promise.resolve(text)
    }
  }
  return (...of: ConstructorParameters<typeof Reply>): Response => new Reply(...of)
}

/** Whether a host name means this machine itself. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" ||
  hostname.endsWith(".localhost") ||
  hostname === "[::1]" ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname)

/**
 * A `fetch` that posts with exactly `headers`, whatever the client adds: nothing of the environment gets onto the wire.
 * Redirects are not followed. Proxy variables of the environment count, except for this machine itself. Idle connections close with the scope.
 */
export const make = (
  baseUrl: string,
  headers: Readonly<Record<string, string>>
): Effect.Effect<Fetch, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const undici = yield* Effect.promise(() => import("./Undici.ts"))
    const hostname = yield* Effect.try(() => new URL(baseUrl).hostname)
    const dispatcher = yield* Effect.acquireRelease(
      Effect.try(() => (isLoopback(hostname) ? new undici.Agent(limits) : new undici.EnvHttpProxyAgent(limits))),
      (open) => Effect.promise(() => open.destroy())
    )
    return over(undici, dispatcher, headers)
  })

/** How long an answer may take is decided around the call, so neither its headers nor its body have a limit here. */
const limits = {
  headersTimeout: 0,
  bodyTimeout: 0,
  maxResponseSize: maxResponseBytes,
  keepAliveTimeout: 30_000,
  connect: { timeout: 30_000 }
}

/**
 * A connection that failed. The client takes every error whose text speaks of time for the end of its own limit;
 * the text of this one says nothing, `reason` holds what happened.
 */
export class Lost extends Error {
  readonly reason: unknown
  constructor(reason: unknown) {
    super("connection lost")
    this.reason = reason
  }
}

const over = (
  undici: typeof Undici,
  dispatcher: Undici.Dispatcher,
  headers: Readonly<Record<string, string>>
): Fetch => {
  const reply = replies()
  const exchange: Fetch = async (input, init) => {
    const response = await undici.request(input instanceof Request ? input.url : input, {
      method: "POST",
      headers,
      body: typeof init?.body === "string" ? init.body : null,
      signal: init?.signal ?? null,
      dispatcher
    })
    const encoding = response.headers["content-encoding"]
    const text =
      encoding === undefined || encoding === "identity"
        ? await response.body.text()
        : await inflate(String(encoding), await response.body.bytes())
    return reply(response.statusCode, response.statusCode === 200 ? {} : kept(response.headers), text)
  }
  return (input, init) =>
    exchange(input, init).catch((error: unknown) =>
      // What the client aborts itself, by its limit or for an interrupted call, it must see as it is.
      Promise.reject(init?.signal?.aborted ? error : new Lost(error))
    )
}

const kept = (headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>): Record<string, string> =>
  Object.fromEntries(
    ["retry-after", "retry-after-ms", "location"].flatMap((name) => {
      const value = headers[name]
      return value === undefined ? [] : [[name, String(value)]]
    })
  )

const limit = { maxOutputLength: maxResponseBytes }

/** Some servers compress without being asked to. */
const inflate = async (encoding: string, bytes: Uint8Array): Promise<string> => {
  switch (encoding.toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return String(await promisify(Zlib.gunzip)(bytes, limit))
    case "deflate":
      return String(await promisify(Zlib.inflate)(bytes, limit))
    case "br":
      return String(await promisify(Zlib.brotliDecompress)(bytes, limit))
    default:
      return ""
  }
}
