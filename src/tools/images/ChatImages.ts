/** Pictures of a chat model that answers with them, asked through the run's own model. */
import { Effect } from "effect"
import * as Consult from "../Consult.ts"
import { ToolFailure } from "../Tool.ts"
import type { Painter, Ratio } from "./Painter.ts"
import type { Read } from "./Picture.ts"

const shapes: Readonly<Record<Ratio, string>> = {
  landscape: "wide (landscape, 3:2)",
  square: "square (1:1)",
  portrait: "tall (portrait, 2:3)"
}

/** Draws by a question to `model`. */
export const make = (model: string, read: Read): Painter => ({
  draw: Effect.fn("ChatImages.draw")(function* ({ prompt, ratio }) {
    const answer = yield* Consult.ask({
      tool: "image_generate",
      model,
      picture: true,
      messages: [{ role: "user", content: `Make one picture, ${shapes[ratio]}:\n\n${prompt}` }]
    })
    const first = answer.images?.[0]
    if (first !== undefined) return yield* read(first)
    const said = answer.content.trim().slice(0, 300)
    return yield* new ToolFailure({
      error: `${model} made no picture${said === "" ? "; try other words" : `, it answered: ${said}`}`
    })
  })
})
