/** The guard before every address that a model names: what it refuses is refused after redirects and at the moment of connecting too. */
import { lookup as dnsLookup, type LookupAddress } from "node:dns"
import { Effect, Either, Schema } from "effect"
import * as Address from "./Address.ts"

/** An address that tools may not reach, or that is none. `message` is for the model. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

/** Resolves a host name to all its addresses. */
export type Resolve = (hostname: string) => Promise<ReadonlyArray<LookupAddress>>

export interface Guard {
  /** The URL, when it is http or https and its host is no address that is refused. Names are only judged by `resolve`. */
  readonly url: (given: string) => Either.Either<URL, Refused>
  /** All addresses of a host, name or literal; refused when any of them is. What connects must use these and ask no more. */
  readonly resolve: (hostname: string) => Effect.Effect<ReadonlyArray<LookupAddress>, Refused>
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

const notPublic = (host: string): Refused =>
  new Refused({ detail: `${host} is a private or local address, and those are not reached from here` })

export const make = ({ allowPrivate, resolve = byDns, permits = Address.isPublic }: Options): Guard => {
  const allowed = (address: string): boolean => allowPrivate || permits(address)
  return {
    url: (given) => {
      const text = given.trim()
      if (!URL.canParse(text))
        return Either.left(new Refused({ detail: `${JSON.stringify(text.slice(0, 200))} is no URL` }))
      const url = new URL(text)
      if (url.protocol !== "http:" && url.protocol !== "https:") {
        return Either.left(new Refused({ detail: `${url.protocol}// addresses are not reached, only http and https` }))
      }
      const address = Address.literal(url.hostname)
      return address !== undefined && !allowed(address) ? Either.left(notPublic(url.hostname)) : Either.right(url)
    },
    resolve: (hostname) => {
      const address = Address.literal(hostname)
      if (address !== undefined) {
        return allowed(address)
          ? Effect.succeed([{ address, family: address.includes(":") ? 6 : 4 }])
          : notPublic(hostname)
      }
      return Effect.tryPromise({
        try: () => resolve(hostname),
        catch: () => new Refused({ detail: `there is no host ${hostname}` })
      }).pipe(
        Effect.flatMap((addresses) => {
          if (addresses.length === 0) return new Refused({ detail: `there is no host ${hostname}` })
          return addresses.every((each) => allowed(each.address)) ? Effect.succeed(addresses) : notPublic(hostname)
        })
      )
    }
  }
}
