/** Bytes from anywhere as a picture that a model can be shown: checked by their content, of a bounded size, bare of metadata. */
import { Effect, Either, Schema } from "effect"
import type { Sharp } from "sharp"
import * as Header from "./Header.ts"

/** Bytes that are no picture which can be shown. `message` is for the model. */
export class PictureError extends Schema.TaggedError<PictureError>()("PictureError", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

export interface Picture {
  readonly bytes: Uint8Array
  /** image/png, image/jpeg, image/webp or image/gif. */
  readonly mime: string
}

/** Bytes that are looked at, at most. */
export const bytesAtMost = 20 * 1024 * 1024

/** Pixels that are unpacked, at most: a small file may say that it is huge. */
const pixelsAtMost = 40_000_000

/** Pixels of the longer side, and bytes, beyond which models shrink a picture themselves or refuse it. */
const side = 1568
const shownAtMost = 3_500_000

/** Seconds that unpacking may take. */
const patience = 20

/** Pictures that are unpacked at once, in all sessions: each may take a few hundred megabytes. */
const places = Effect.unsafeMakeSemaphore(2)

export type Library = typeof import("./Sharp.ts").sharp

const load = (): Promise<Library> => import("./Sharp.ts").then(({ sharp }) => sharp)

const failed = (detail: string) => new PictureError({ detail })

/** The picture in these bytes, the first frame of one that moves. Without the image library small ones pass as they are. */
export const of = Effect.fn("Picture.of")(function* (given: Uint8Array, library: () => Promise<Library> = load) {
  if (given.length > bytesAtMost) return yield* tooLarge
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.length)
  const kind = Header.kindOf(bytes)
  if (kind === undefined) return yield* failed(`this is ${Header.told(bytes)}`)
  const sharp = yield* Effect.either(Effect.tryPromise(library))
  if (Either.isLeft(sharp)) return yield* asItIs(bytes, kind)
  return yield* places.withPermits(1)(scaled(sharp.right, bytes, kind))
})

/** More bytes than are looked at. */
export const tooLarge = failed(`the image is larger than ${bytesAtMost / 1024 / 1024} MB; make it smaller first`)

const tooManyPixels = failed(`the image has more than ${pixelsAtMost / 1e6} million pixels; make it smaller first`)

const scaled = Effect.fnUntraced(function* (sharp: Library, bytes: Buffer, kind: Header.Kind) {
  const source = () =>
    sharp(bytes, { limitInputPixels: pixelsAtMost, failOn: "error", autoOrient: true, sequentialRead: true, pages: 1 })
  const broken = (error: unknown) =>
    /pixel limit|too large|exceeds/i.test(String(error))
      ? tooManyPixels
      : failed(`the image cannot be read, it is damaged or no real ${kind.toUpperCase()}`)
  const attempt = <A>(work: () => Promise<A>) => Effect.tryPromise({ try: work, catch: broken })
  const { width = 0, height = 0, hasAlpha = false } = yield* attempt(() => source().metadata())
  if (width * height > pixelsAtMost) return yield* tooManyPixels
  const image = () =>
    source()
      .resize({ width: side, height: side, fit: "inside", withoutEnlargement: true })
      .toColourspace("srgb")
      .timeout({ seconds: patience })
  // Photographs grow many times over as PNG, drawings and text suffer as JPEG.
  if (hasAlpha || kind === "png" || kind === "gif" || kind === "svg") {
    const png = yield* attempt(() => image().png().toBuffer())
    if (png.length <= shownAtMost) return picture(png, "png")
  }
  const jpeg = (quality: number) => attempt(() => onWhite(image()).jpeg({ quality }).toBuffer())
  const fine = yield* jpeg(90)
  return picture(fine.length <= shownAtMost ? fine : yield* jpeg(60), "jpeg")
})

const onWhite = (image: Sharp): Sharp => image.flatten({ background: "#ffffff" })

const picture = (bytes: Uint8Array, kind: string): Picture => ({ bytes, mime: `image/${kind}` })

/** The kinds that every model with eyes takes. */
const common: ReadonlySet<Header.Kind> = new Set(["png", "jpeg", "webp", "gif"])

const asItIs = (bytes: Buffer, kind: Header.Kind): Effect.Effect<Picture, PictureError> => {
  const advice = "images cannot be scaled or converted on this machine"
  if (!common.has(kind)) return failed(`${advice}: give it as PNG or JPEG instead of ${kind.toUpperCase()}`)
  const size = Header.sizeOf(bytes, kind)
  if (size === undefined) return failed(`the image cannot be read, it is damaged or no real ${kind.toUpperCase()}`)
  if (size.width * size.height > pixelsAtMost) return tooManyPixels
  return Math.max(size.width, size.height) > 4 * side || bytes.length > shownAtMost
    ? failed(`${advice}: give one of at most ${4 * side} pixels a side and ${shownAtMost / 1e6} MB`)
    : Effect.succeed(picture(bytes, kind))
}
