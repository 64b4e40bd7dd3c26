/** A picture that a service made: fetched from where it says, and known by its content. */
import { Effect, Either, type Scope } from "effect"
import * as Address from "../net/Address.ts"
import * as Fetch from "../net/Fetch.ts"
import * as Guard from "../net/Guard.ts"
import { ToolFailure } from "../Tool.ts"
import * as Header from "../vision/Header.ts"

/** Bytes of a picture at most. */
export const maxBytes = 30_000_000

/** Bytes of an answer that holds one as base64. */
export const maxAnswerBytes = Math.ceil((maxBytes * 4) / 3) + 1_000_000

export interface Picture {
  readonly bytes: Uint8Array
  /** Of its file, by its content. */
  readonly extension: "png" | "jpg" | "webp" | "gif"
}

/** The kinds that models and browsers know. */
const extensions: Partial<Record<Header.Kind, Picture["extension"]>> = {
  png: "png",
  jpeg: "jpg",
  webp: "webp",
  gif: "gif"
}

/** Bytes of the smallest picture. */
const minBytes = 30

/** Takes bytes for a picture, if they are one. */
export const of = (bytes: Uint8Array): Either.Either<Picture, ToolFailure> => {
  if (bytes.length > maxBytes) return Either.left(new ToolFailure({ error: `the picture has more than 30 MB` }))
  const kind =
    bytes.length < minBytes ? undefined : Header.kindOf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
  const extension = kind && extensions[kind]
  return extension === undefined
    ? Either.left(new ToolFailure({ error: "what came is no PNG, JPEG, WebP or GIF picture; try again" }))
    : Either.right({ bytes, extension })
}

const dataUrl = /^data:[^,]{0,200},/i

/** A picture as base64, with or without the head of a data URL. */
export const fromBase64 = (text: string): Either.Either<Picture, ToolFailure> =>
  of(Buffer.from(text.replace(dataUrl, ""), "base64"))

/** Gets the picture of a data URL, or of an address that a service names. */
export type Read = (address: string) => Effect.Effect<Picture, ToolFailure>

/** Seconds for the download of a picture. */
const seconds = 60

/** Reads addresses of the internet, and those of the service at `own`, which the user chose, wherever that is. */
export const reader = (allowPrivate: boolean, own: URL): Effect.Effect<Read, never, Scope.Scope> =>
  Effect.map(Fetch.make(guardOf(allowPrivate, own)), (fetcher) =>
    Effect.fn("Picture.read")(function* (address: string) {
      if (dataUrl.test(address)) return yield* fromBase64(address)
      const found = yield* Effect.mapError(
        fetcher.get(address, { maxBytes: maxBytes + 1, timeout: seconds, accept: "image/*" }),
        (error) => new ToolFailure({ error: `the picture was made, but cannot be fetched: ${error.message}` })
      )
      return yield* of(found.bytes)
    })
  )

/** The guard of model-named addresses, with the service's own host and port let through. */
export const guardOf = (allowPrivate: boolean, own: URL): Guard.Guard => {
  const strict = Guard.make({ allowPrivate })
  const open = Guard.make({ allowPrivate: true })
  return {
    url: (given) =>
      Either.flatMap(open.url(given), (url) => {
        if (url.host === own.host) return Either.right(url)
        // Its name may be that of a private address, which no other port of it may use.
        return url.hostname === own.hostname && Address.literal(url.hostname) === undefined && !allowPrivate
          ? Either.left(new Guard.Refused({ detail: `${url.host} is another port of ${own.host}, and is not reached` }))
          : strict.url(given)
      }),
    resolve: (hostname) => (hostname === own.hostname ? open : strict).resolve(hostname),
    remote: strict.remote
  }
}
