/** The HTTP transport under the model's client: whole responses over undici's dispatcher, with a connection pool and limits of our own. */
import { promisify } from "node:util"
import * as Zlib from "node:zlib"
import { Effect, type Scope } from "effect"
import * as RateLimits from "./RateLimits.ts"
import type * as Undici from "./Undici.ts"

/** Bytes of one answer at most. */
export const maxResponseBytes = 64 * 1024 * 1024

/** Posts a body and gives the whole response; `signal` ends it, and so does the end of `limit` milliseconds. */
export type Post = (body: string, signal: AbortSignal | null, limit: number) => Promise<globalThis.Response>

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

/** How an exchange differs from the usual one: a body posted, an answer of `maxResponseBytes` at most. */
export interface Kind {
  readonly method?: "GET" | "POST"
  /** Bytes of an answer at most. */
  readonly most?: number
}

/**
 * Posts to `url` with exactly `headers`, whatever the client adds: nothing of the environment gets onto the wire.
 * Redirects are not followed. Proxy variables of the environment count, except for this machine itself. Connections close with the scope.
 */
export const make = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  { method = "POST", most = maxResponseBytes }: Kind = {}
): Effect.Effect<Post, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const undici = yield* Effect.promise(() => import("./Undici.ts"))
    const options = { ...limits, maxResponseSize: most }
    const dispatcher = yield* Effect.acquireRelease(
      Effect.try(() => (isLoopback(url.hostname) ? new undici.Agent(options) : new undici.EnvHttpProxyAgent(options))),
      (open) => Effect.promise(() => open.destroy())
    )
    return over(dispatcher, url, headers, method)
  })

/** How long an answer may take is decided around the call, so neither its headers nor its body have a limit here. */
const limits = {
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: 30_000,
  connect: { timeout: 30_000 }
}

/**
 * An exchange that failed. The client takes every error whose text speaks of time for the end of its own limit;
 * the text of this one says nothing, `reason` holds what happened.
 */
export class Lost extends Error {
  readonly reason: unknown
  constructor(reason: unknown) {
    super("connection lost")
    this.reason = reason
  }
}

/** The time for an answer is over. */
export const tooLate: unique symbol = Symbol("too late")

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

interface Received {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

/** Collects one response; undici's own `request` makes a stream of it, which costs half as much again as the exchange itself. */
class Exchange implements Undici.Dispatcher.DispatchHandler {
  private readonly settle: (end: Received | Lost) => void
  private connection: Undici.Dispatcher.DispatchController | undefined
  private status = 0
  private headers: Headers = {}
  private chunks: Array<Buffer> = []
  private over = false

  constructor(settle: (end: Received | Lost) => void) {
    this.settle = settle
  }

  /** Gives up: the request is taken back, wherever it is. */
  end(reason: unknown): void {
    if (this.over) return
    this.over = true
    this.settle(new Lost(reason))
    this.connection?.abort(new Error("given up"))
  }

  onRequestStart(connection: Undici.Dispatcher.DispatchController): void {
    this.connection = connection
    if (this.over) connection.abort(new Error("given up"))
  }

  onResponseStart(_: Undici.Dispatcher.DispatchController, status: number, headers: Headers): void {
    this.status = status
    this.headers = headers
    this.chunks = []
  }

  onResponseData(_: Undici.Dispatcher.DispatchController, chunk: Buffer): void {
    this.chunks.push(chunk)
  }

  onResponseEnd(): void {
    if (this.over) return
    this.over = true
    const [only, ...more] = this.chunks
    const bytes = only !== undefined && more.length === 0 ? only : Buffer.concat(this.chunks)
    this.settle({ status: this.status, headers: this.headers, bytes })
  }

  onResponseError(_: Undici.Dispatcher.DispatchController, error: unknown): void {
    this.end(error)
  }
}

const over = (
  dispatcher: Undici.Dispatcher,
  url: URL,
  headers: Readonly<Record<string, string>>,
  method: "GET" | "POST"
): Post => {
  const reply = replies()
  const to = { origin: url.origin, path: `${url.pathname}${url.search}`, method, headers: { ...headers } }
  const exchange = (body: string, signal: AbortSignal | null, limit: number) =>
    new Promise<Received>((resolve, reject) => {
      const whole = new Exchange((end) => {
        clearTimeout(timer)
        signal?.removeEventListener("abort", aborted)
        if (end instanceof Lost) reject(end)
        else resolve(end)
      })
      const aborted = () => whole.end(signal?.reason)
      const timer = setTimeout(() => whole.end(tooLate), limit)
      signal?.addEventListener("abort", aborted)
      dispatcher.dispatch({ ...to, body: method === "GET" ? null : body }, whole)
    })
  return (body, signal, limit) =>
    exchange(body, signal, limit).then(({ status, headers: given, bytes }) => {
      const encoding = given["content-encoding"]
      const header = status === 200 && !saysWhen(given) ? {} : kept(given)
      return encoding === undefined
        ? reply(status, header, textOf(bytes))
        : inflate(String(encoding), bytes).then(
            (inflated) => reply(status, header, textOf(inflated)),
            (error: unknown) => Promise.reject(new Lost(error))
          )
    })
}

/** UTF-8 without the mark that some servers put in front. */
const textOf = (bytes: Buffer): string => bytes.toString("utf8", bytes[0] === 0xef && bytes[1] === 0xbb ? 3 : 0)

/** Some servers say when to come back with HTTP 200 too; building no list for all others keeps a success cheap. */
const saysWhen = (headers: Headers): boolean =>
  headers["retry-after"] !== undefined || headers["retry-after-ms"] !== undefined || RateLimits.present(headers)

const keptNames = ["retry-after", "retry-after-ms", "location", ...RateLimits.names]

const kept = (headers: Headers): Record<string, string> =>
  Object.fromEntries(
    keptNames.flatMap((name) => {
      const value = headers[name]
      return value === undefined ? [] : [[name, String(value)]]
    })
  )

const limit = { maxOutputLength: maxResponseBytes }

/** Some servers compress without being asked to, perhaps twice; a name that is no compression is none. */
const inflate = (encodings: string, bytes: Buffer): Promise<Buffer> =>
  encodings
    .toLowerCase()
    .split(",")
    .reduceRight((done, encoding) => done.then((each) => inflateOnce(encoding.trim(), each)), Promise.resolve(bytes))

const inflateOnce = (encoding: string, bytes: Buffer): Promise<Buffer> => {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return promisify(Zlib.gunzip)(bytes, limit)
    case "deflate":
      // With or without the head that its name asks for: the head begins with an 8 in its lower half.
      return promisify(((bytes[0] ?? 0) & 15) === 8 ? Zlib.inflate : Zlib.inflateRaw)(bytes, limit)
    case "br":
      return promisify(Zlib.brotliDecompress)(bytes, limit)
    default:
      return Promise.resolve(bytes)
  }
}
