/** The guard before every address that a model names: what it refuses is refused after redirects and at the moment of connecting too. */
import { lookup as dnsLookup, type LookupAddress } from "node:dns"
import { Effect, Either, Schema } from "effect"
import * as Address from "./Address.ts"

/** An address that tools may not reach, or that is none. `message` is for the model. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  detail: Schema.String,
  /** Whether nothing is wrong with the address but that its name cannot be looked up here. */
  noHost: Schema.optionalWith(Schema.Boolean, { default: () => false })
}) {
  override get message(): string {
    return this.detail
  }
}

/** Resolves a host name to all its addresses. */
export type Resolve = (hostname: string) => Promise<ReadonlyArray<LookupAddress>>

export interface Guard {
  /**
   * The URL without user name and password, when it is http or https and its host is no address that is refused.
   * Names are only judged by `resolve`.
   */
  readonly url: (given: string) => Either.Either<URL, Refused>
  /** All addresses of a host, name or literal; refused when any of them is. What connects must use these and ask no more. */
  readonly resolve: (hostname: string) => Effect.Effect<ReadonlyArray<LookupAddress>, Refused>
  /**
   * The URL for a service or a proxy that looks names up by itself: refused as far as can be told from here. A name that is not
   * known here may be known there, unless it is one of a private network.
   */
  readonly remote: (given: string) => Effect.Effect<URL, Refused>
}

const byDns: Resolve = (hostname) =>
  new Promise((done, fail) =>
    dnsLookup(hostname, { all: true }, (error, addresses) => (error === null ? done(addresses) : fail(error)))
  )

export interface Options {
  /** Whether private, loopback and link-local addresses are reached too. */
  readonly allowPrivate: boolean
  /** How names are resolved; the system's way by default. */
  readonly resolve?: Resolve
  /** Which addresses are reached; those of the public internet by default. */
  readonly permits?: (address: string) => boolean
}

/** Seconds to look a name up. */
const patience = 10

const notPublic = (host: string): Refused =>
  new Refused({ detail: `${host} is a private or local address, and those are not reached from here` })

const unknown = (host: string): Refused => new Refused({ detail: `there is no host ${host}`, noHost: true })

export const make = ({ allowPrivate, resolve = byDns, permits = Address.isPublic }: Options): Guard => {
  const allowed = (address: string): boolean => allowPrivate || permits(address)
  const url = (given: string): Either.Either<URL, Refused> => {
    const text = given.trim()
    if (!URL.canParse(text)) {
      return Either.left(
        new Refused({
          detail: `${JSON.stringify(text.slice(0, 200))} is no URL: give a whole one, such as https://example.com/page`
        })
      )
    }
    const found = new URL(text)
    if (found.protocol !== "http:" && found.protocol !== "https:") {
      return Either.left(
        new Refused({ detail: `${found.protocol.slice(0, 50)} addresses are not reached, only http and https` })
      )
    }
    const address = Address.isLoopbackName(found.hostname) ? "127.0.0.1" : Address.literal(found.hostname)
    if (address !== undefined && !allowed(address)) return Either.left(notPublic(found.hostname))
    found.username = ""
    found.password = ""
    return Either.right(found)
  }
  const all = (hostname: string): Effect.Effect<ReadonlyArray<LookupAddress>, Refused> => {
    const address = Address.literal(hostname)
    if (address !== undefined) {
      return allowed(address)
        ? Effect.succeed([{ address, family: address.includes(":") ? 6 : 4 }])
        : notPublic(hostname)
    }
    return Effect.tryPromise({ try: () => resolve(hostname), catch: () => unknown(hostname) }).pipe(
      Effect.timeoutFail({ duration: `${patience} seconds`, onTimeout: () => unknown(hostname) }),
      Effect.flatMap((addresses) => {
        if (addresses.length === 0) return unknown(hostname)
        return addresses.every((each) => allowed(each.address)) ? Effect.succeed(addresses) : notPublic(hostname)
      })
    )
  }
  return {
    url,
    resolve: all,
    remote: Effect.fn("Guard.remote")(function* (given) {
      const found = yield* url(given)
      yield* Effect.catchIf(
        all(found.hostname),
        ({ noHost }) => noHost && (allowPrivate || !Address.isInternalName(found.hostname)),
        () => Effect.void
      )
      return found
    })
  }
}
