/** The tool image_generate: a picture from a text. */
import { Effect, Ref, Schema, type Scope } from "effect"
import * as Arguments from "./Arguments.ts"
import * as Choice from "./images/Choice.ts"
import { type Painter, ratios } from "./images/Painter.ts"
import * as Media from "./Media.ts"
import * as Product from "./Product.ts"
import type { Setting } from "./Setting.ts"
import * as Tool from "./Tool.ts"
import { perSession } from "./ToolSession.ts"
import { type Built, lacking } from "./Toolset.ts"

/** Characters of a prompt at most. */
const longest = 32_000

/** Looks once at what there is of it here. */
export const make = (setting: Setting): Effect.Effect<Built, never, Scope.Scope> =>
  Effect.map(Choice.make(setting), (chosen) =>
    typeof chosen === "string" ? lacking(chosen, "image_generate") : [tool(chosen, Media.make(setting.mediaFolder))]
  )

const tool = ({ draw }: Painter, media: Media.Media): Tool.Tool => {
  /** Pictures of a session so far. */
  const count = perSession(Ref.make(0))
  return Tool.make({
    name: "image_generate",
    description:
      "Make a picture from a text. Gives {success, image}: image is the path of the new file, from the working " +
      "directory; media, where it is there, is the name under which the run's records keep it, not a path for you.",
    parameters: Schema.Struct({
      prompt: Arguments.text("What the picture shows, in detail"),
      aspect_ratio: Schema.optional(Arguments.choice("Shape of the picture; landscape by default", ...ratios))
    }),
    run: Effect.fn("image_generate.run")(function* ({ prompt, aspect_ratio: ratio = "landscape" }) {
      if (prompt.trim() === "") return yield* failed("prompt: expected a text, got an empty one")
      if (prompt.length > longest) return yield* failed(`prompt: at most ${longest} characters, got ${prompt.length}`)
      const { bytes, extension } = yield* draw({ prompt: prompt.toWellFormed(), ratio })
      const number = yield* Ref.updateAndGet(yield* count.get, (made) => made + 1)
      // The hash keeps apart what several sessions leave in one working directory.
      const image = `images/${number}-${Media.hashOf(bytes).slice(0, 8)}.${extension}`
      const kept = yield* Product.leave(media, { path: image, bytes, extension })
      return { success: true, image, ...kept }
    })
  })
}

const failed = (error: string) => new Tool.ToolFailure({ error })
