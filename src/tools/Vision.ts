/** The tool vision_analyze: a question about an image, answered by a model that sees. */
import { Effect, Either, Schema, type Scope } from "effect"
import { Sandbox } from "../sandbox/Sandbox.ts"
import * as Arguments from "./Arguments.ts"
import * as Fetch from "./net/Fetch.ts"
import * as Guard from "./net/Guard.ts"
import type { Setting } from "./Setting.ts"
import * as Shell from "./Shell.ts"
import * as Tool from "./Tool.ts"
import { type Built, lacking } from "./Toolset.ts"
import { type Eyes, eyes } from "./vision/Eyes.ts"
import * as Picture from "./vision/Picture.ts"

const name = "vision_analyze"

/** Seconds that an image may take to come. */
const patience = 60

/** Looks once at what there is of it here. */
export const make = (setting: Setting): Effect.Effect<Built, never, Scope.Scope> =>
  Effect.flatMap(
    eyes(setting),
    Either.match({
      onLeft: (lacks) => Effect.succeed(lacking(lacks, name)),
      onRight: (seeing) =>
        Effect.map(Fetch.make(Guard.make({ allowPrivate: setting.allowPrivateNetwork })), (fetcher) => [
          tool(seeing, fetcher)
        ])
    })
  )

const tool = (seeing: Eyes, fetcher: Fetch.Fetcher): Tool.Tool =>
  Tool.make({
    name,
    description:
      "Look at an image and answer a question about it. The image is a URL, a file in the sandbox or a data URL: PNG, " +
      "JPEG, GIF (its first frame), WebP, AVIF, TIFF or SVG of at most 20 MB. Gives {success, analysis}.",
    parameters: Schema.Struct({
      image_url: Arguments.text("Where the image is: an http or https URL, a path in the sandbox, or a data URL"),
      question: Arguments.text("What to find out about the image")
    }),
    run: Effect.fn("vision_analyze.run")(function* ({ image_url, question }) {
      if (question.trim() === "") return yield* failed("question: say what to find out about the image")
      const image = yield* imageAt(image_url.trim(), fetcher)
      const analysis = yield* seeing.see(image, question, name)
      return { success: true, analysis }
    })
  })

const failed = (error: string) => new Tool.ToolFailure({ error })

interface Image {
  readonly bytes: Uint8Array
  /** As whoever gave it says; empty for nothing. */
  readonly mime: string
}

const imageAt = (
  place: string,
  fetcher: Fetch.Fetcher
): Effect.Effect<Image, Tool.ToolFailure | Tool.RunError, Sandbox> => {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(place)?.[1]?.toLowerCase() ?? ""
  if (place === "") return failed("image_url: expected a URL, a path in the sandbox or a data URL, got an empty string")
  if (scheme === "data") return inText(place)
  if (scheme === "http" || scheme === "https") return fetched(place, fetcher)
  if (scheme === "file") return inFile(place.replace(/^file:(?:\/\/(?:localhost(?=\/))?)?/i, ""), true)
  return /^[a-z][a-z0-9+.-]+:\/\//i.test(place)
    ? failed(
        `image_url: ${scheme} addresses are not read; give an http or https URL, a path in the sandbox or a data URL`
      )
    : inFile(place, false)
}

const fetched = Effect.fnUntraced(function* (url: string, fetcher: Fetch.Fetcher) {
  const accept = "image/*,*/*;q=0.5"
  const { bytes, contentType, cut } = yield* Effect.mapError(
    fetcher.get(url, { maxBytes: Picture.bytesAtMost, timeout: patience, accept }),
    ({ message }) => failed(`image_url: ${message}`)
  )
  return cut ? yield* failed(Picture.tooLarge.message) : { bytes, mime: contentType }
})

/** Longer than any image that is looked at, encoded. */
const charactersAtMost = Picture.bytesAtMost * 1.5

const malformed = failed("image_url: this data URL is malformed; expected data:image/png;base64,…")

const inText = (url: string): Effect.Effect<Image, Tool.ToolFailure> => {
  if (url.length > charactersAtMost) return failed(Picture.tooLarge.message)
  const comma = url.indexOf(",")
  const [mime = "", ...rest] = url.slice("data:".length, Math.max(0, comma)).split(";")
  const data = url.slice(comma + 1)
  if (comma < 0 || data.trim() === "") return malformed
  const bytes = rest.some((word) => word.trim().toLowerCase() === "base64")
    ? Either.right(Buffer.from(data, "base64"))
    : Either.try(() => Buffer.from(decodeURIComponent(data)))
  return Either.match(bytes, {
    onLeft: () => malformed,
    onRight: (whole) => Effect.succeed({ bytes: whole, mime: mime.trim().toLowerCase() })
  })
}

/** A file of the sandbox, never of this machine. Blanks and the like are escaped in the path of a URL. */
const inFile = Effect.fnUntraced(function* (given: string, escaped: boolean) {
  const plain = escaped
    ? Either.getOrElse(
        Either.try(() => decodeURIComponent(given)),
        () => given
      )
    : given
  const path = yield* Shell.path("image_url", plain)
  const sandbox = yield* Sandbox
  const { bytes, size } = yield* sandbox
    .read(path, { maxBytes: Picture.bytesAtMost })
    .pipe(Effect.catchTag("FileError", ({ message }) => failed(`image_url: ${message}`)))
  return size > bytes.length ? yield* failed(Picture.tooLarge.message) : { bytes, mime: "" }
})
