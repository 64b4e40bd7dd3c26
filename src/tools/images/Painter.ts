/** Whatever makes a picture from a text. */
import { type Effect, Schema } from "effect"
import type { Needs, RunError, ToolFailure } from "../Tool.ts"
import type { Picture } from "./Picture.ts"

export const ratios = ["landscape", "square", "portrait"] as const
export type Ratio = (typeof ratios)[number]

/** What is to be drawn. */
export interface Wish {
  readonly prompt: string
  readonly ratio: Ratio
}

export interface Painter {
  readonly draw: (wish: Wish) => Effect.Effect<Picture, ToolFailure | RunError, Needs>
}

/** The endpoint has no API of this kind, or not for this model. */
export class NoSuchApi extends Schema.TaggedError<NoSuchApi>()("NoSuchApi", { detail: Schema.String }) {}
