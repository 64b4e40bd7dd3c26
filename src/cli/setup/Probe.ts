/** Looks at services and programs without paying: one request without a body, a handshake, a program's version. */
import { execFile } from "node:child_process"
import * as Http from "node:http"
import * as Https from "node:https"
import { Effect, Either, Predicate } from "effect"

/** Seconds that a look takes at most. */
const limit = 15

/** What came of it; the left is a clause. */
export type Probed = Either.Either<string, string>

const codeOf = (cause: unknown): string => {
  const inner = Predicate.hasProperty(cause, "cause") && cause.cause !== undefined ? cause.cause : cause
  return Predicate.hasProperty(inner, "code")
    ? String(inner.code)
    : Predicate.hasProperty(inner, "name")
      ? String(inner.name)
      : "no answer"
}

const late = Either.left(`no answer within ${limit} seconds`)

const bounded = (probe: Effect.Effect<Probed>): Effect.Effect<Probed> =>
  Effect.timeoutTo(probe, { duration: `${limit} seconds`, onSuccess: (probed) => probed, onTimeout: () => late })

/** Asks for a path of a service with a key in a header of its own; no redirect gets the key. */
export const get = (
  service: string,
  path: string,
  headers: Readonly<Record<string, string>>
): Effect.Effect<Probed> => {
  if (!URL.canParse(path, service)) return Effect.succeed(Either.left("it is no address"))
  const url = new URL(path, service)
  return bounded(
    Effect.match(
      Effect.tryPromise((signal) =>
        fetch(url, { headers, redirect: "manual", signal }).then(async (response) => {
          await response.body?.cancel()
          return response.status
        })
      ),
      {
        onFailure: ({ error }) => Either.left(`${url.host} cannot be reached: ${codeOf(error)}`),
        onSuccess: (status) =>
          status >= 200 && status < 300
            ? Either.right(`${url.host} answers`)
            : Either.left(`HTTP ${status} from ${url.host}`)
      }
    )
  )
}

/** Shakes hands with the server of a WebSocket, and goes. */
const handshake = (url: URL): Effect.Effect<Probed> =>
  bounded(
    Effect.async<Probed>((resume) => {
      const to = new URL(url)
      to.protocol = url.protocol === "wss:" ? "https:" : "http:"
      const request = (to.protocol === "https:" ? Https : Http).request(to, {
        headers: {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "YmF0Y2gtcnVubmVyLWxvb2s="
        }
      })
      request.on("upgrade", (_, socket) => {
        socket.destroy()
        resume(Effect.succeed(Either.right(`${url.host} answers`)))
      })
      request.on("response", (response) => {
        response.destroy()
        resume(Effect.succeed(Either.left(`HTTP ${response.statusCode} from ${url.host}`)))
      })
      request.on("error", (error) =>
        resume(Effect.succeed(Either.left(`${url.host} cannot be reached: ${codeOf(error)}`)))
      )
      request.end()
      return Effect.sync(() => request.destroy())
    })
  )

/** A browser at its CDP address: its version where it is asked by HTTP, else the handshake. */
export const cdp = (address: string): Effect.Effect<Probed> => {
  if (!URL.canParse(address)) return Effect.succeed(Either.left("it is no address"))
  const url = new URL(address)
  return /^wss?:$/.test(url.protocol) ? handshake(url) : get(address, "/json/version", {})
}

/** The first line of what a program says of itself; it is told no key of the environment. */
export const version = (path: string): Effect.Effect<Probed> =>
  bounded(
    Effect.async<Probed>((resume) => {
      const child = execFile(
        path,
        ["--version"],
        { timeout: limit * 1000, killSignal: "SIGKILL", env: { PATH: process.env.PATH, HOME: process.env.HOME } },
        (error, stdout) => {
          const line =
            stdout
              .trim()
              .split(/\n|\s{2,}/)[0]
              ?.slice(0, 120) ?? ""
          resume(
            Effect.succeed(error === null ? Either.right(line) : Either.left(`it does not start: ${codeOf(error)}`))
          )
        }
      )
      return Effect.sync(() => {
        child.kill("SIGKILL")
      })
    })
  )
