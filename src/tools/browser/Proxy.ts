/** The one way of the local browser into the net: a proxy that judges each address and connects to just what it judged. */
import * as Http from "node:http"
import { type AddressInfo, connect, type LookupFunction } from "node:net"
import { type Duplex, pipeline } from "node:stream"
import { Effect, Either, Predicate, type Scope } from "effect"
import type { Guard } from "../net/Guard.ts"

export interface Proxy {
  readonly port: number
  /** Why the last connection to a URL's host did not come about. */
  readonly why: (url: string) => string | undefined
}

/** Hosts whose failures are remembered. */
const remembered = 1000
/** Milliseconds until a connection must stand. */
const patience = 20_000
const headerBytes = 256 * 1024

/**
 * Listens on the loopback until the scope closes. It asks for no password: it reaches nothing that a program of this machine
 * could not reach by itself.
 */
export const make = (guard: Guard): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const failures = new Map<string, string>()
    const open = new Set<Duplex>()
    const held = <S extends Duplex>(socket: S): S => {
      open.add(socket)
      socket.on("close", () => open.delete(socket)).on("error", () => socket.destroy())
      return socket
    }
    const fails = (url: URL, reason: string) => {
      failures.delete(url.host)
      failures.set(url.host, reason)
      for (const oldest of [...failures.keys()].slice(0, Math.max(0, failures.size - remembered)))
        failures.delete(oldest)
    }
    /** Calls `go` with a way to the URL's host, or tells why there is none. */
    const judged = async (given: string, go: (url: URL, lookup: LookupFunction) => void, refuse: () => void) => {
      const url = guard.url(given)
      if (Either.isLeft(url)) {
        if (URL.canParse(given)) fails(new URL(given), url.left.message)
        return refuse()
      }
      const found = await Effect.runPromise(Effect.either(guard.resolve(url.right.hostname)))
      if (Either.isRight(found)) {
        failures.delete(url.right.host)
        return go(url.right, (_, options, done) => {
          const [first] = found.right
          if (options.all === true || first === undefined) done(null, [...found.right])
          else done(null, first.address, first.family)
        })
      }
      fails(url.right, found.left.message)
      refuse()
    }

    const server = Http.createServer({ maxHeaderSize: headerBytes }, (request, response) => {
      const broken = () => response.destroy()
      request.on("error", broken)
      response.on("error", broken)
      judged(
        request.url ?? "",
        (url, lookup) => {
          const { "proxy-connection": _, "proxy-authorization": __, ...headers } = request.headers
          const onward = Http.request({
            host: bare(url.hostname),
            port: url.port === "" ? 80 : Number(url.port),
            path: `${url.pathname}${url.search}`,
            method: request.method ?? "GET",
            headers: { ...headers, connection: "close" },
            lookup,
            agent: false,
            maxHeaderSize: headerBytes
          })
          const late = setTimeout(() => onward.destroy(new Error("ETIMEDOUT")), patience)
          onward.on("socket", (socket) => held(socket).on("connect", () => clearTimeout(late)))
          onward.on("error", (error) => {
            clearTimeout(late)
            if (!response.headersSent) fails(url, unreachable(url, error))
            broken()
          })
          // Nobody asked to change the protocol: sockets of pages come by CONNECT.
          onward.on("upgrade", (_, socket) => {
            socket.destroy()
            fails(url, `${url.host} answers in another protocol`)
            broken()
          })
          onward.on("response", (answer) => {
            const { connection: _, "keep-alive": __, ...kept } = answer.headers
            const begun = Either.try(() =>
              response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", defined(kept))
            )
            if (Either.isLeft(begun)) {
              fails(url, `${url.host} answers with a header that is none`)
              onward.destroy()
              return
            }
            pipeline(answer, response, () => {})
          })
          response.on("close", () => onward.destroy())
          pipeline(request, onward, () => {})
        },
        broken
      ).catch(broken)
    })
    server.on("connection", held)
    server.on("connect", (request: Http.IncomingMessage, client: Duplex, early: Buffer) => {
      judged(
        `https://${request.url ?? ""}`,
        (url, lookup) => {
          const onward = held(connect({ host: bare(url.hostname), port: port(request.url ?? ""), lookup }))
          const late = setTimeout(() => onward.destroy(new Error("ETIMEDOUT")), patience)
          let stands = false
          onward.on("connect", () => {
            stands = true
            clearTimeout(late)
            client.write("HTTP/1.1 200 Connection established\r\n\r\n")
            onward.write(early)
            client.pipe(onward)
            onward.pipe(client)
          })
          onward.on("error", (error) => {
            if (stands) return
            clearTimeout(late)
            fails(url, unreachable(url, error))
            client.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
          })
          onward.on("close", () => stands && client.end())
          client.on("close", () => onward.destroy())
        },
        () => client.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
      ).catch(() => client.destroy())
    })
    server.requestTimeout = 0
    server.headersTimeout = 0

    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          for (const socket of open) socket.destroy()
        })
    )
    return {
      port: portOf(server.address()),
      why: (url) => (URL.canParse(url) ? failures.get(new URL(url).host) : undefined)
    }
  })

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, "")

/** The port of `host:port`; a URL drops the one that its scheme has anyway. */
const port = (authority: string): number => Number(/:(\d+)$/.exec(authority)?.[1] ?? 443)

const portOf = (address: AddressInfo | string | null): number =>
  address !== null && typeof address === "object" ? address.port : 0

const unreachable = (url: URL, error: Error): string => {
  const code = Predicate.hasProperty(error, "code") ? String(error.code) : error.message
  return `${url.host} cannot be reached: ${code}`
}

/** Headers that have a value. */
const defined = (headers: Http.IncomingHttpHeaders): Http.OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
