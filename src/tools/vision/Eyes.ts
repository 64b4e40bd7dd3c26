/** Eyes for tools that show a picture to a model: which model sees, and how it is asked. */
import { Effect, Either, type Scope } from "effect"
import type { Model, ModelError } from "../../model/Model.ts"
import * as Consult from "../Consult.ts"
import type { Setting } from "../Setting.ts"
import type { ToolFailure } from "../Tool.ts"
import type { ToolSession } from "../ToolSession.ts"

export interface Eyes {
  /** Answers a question about an image, on behalf of a tool. */
  readonly see: (
    image: { readonly bytes: Uint8Array; readonly mime: string },
    question: string,
    tool: string
  ) => Effect.Effect<string, ToolFailure | ModelError, Model | ToolSession>
}

/** Left is what is lacking, as a clause. */
export const eyes = (setting: Setting): Effect.Effect<Either.Either<Eyes, string>, never, Scope.Scope> =>
  Effect.sync(() => {
    if (setting.visionModel === "" && setting.endpoint?.offline !== true) return Either.left("no --vision_model")
    const see: Eyes["see"] = ({ bytes, mime }, question, tool) =>
      Effect.map(
        Consult.ask({
          tool,
          model: setting.visionModel === "" ? undefined : setting.visionModel,
          messages: [
            {
              role: "user",
              content: question,
              images: [`data:${mime};base64,${Buffer.from(bytes).toString("base64")}`]
            }
          ]
        }),
        ({ content }) => content
      )
    return Either.right({ see })
  })
