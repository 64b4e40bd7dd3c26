/** The data set of a run: which prompts it has, in order, and the text of each when its turn comes. */
import { Context, type Effect, Schema } from "effect"
import type { ContentIndex } from "./ContentIndex.ts"
import type { Prompt } from "./Prompt.ts"

/** A data set that cannot be used. `message` is one line for its owner. */
export class DatasetError extends Schema.TaggedError<DatasetError>()("DatasetError", {
  reason: Schema.Literal("NotFound", "Unreadable", "NoPrompts", "Changed"),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** A line that was skipped. */
export interface BadLine {
  /** 1-based. */
  readonly line: number
  readonly why: string
}

export interface DatasetService {
  /** As the user named it. */
  readonly path: string
  readonly index: ContentIndex
  /** All skipped lines are counted, the first ones kept. */
  readonly badLines: { readonly count: number; readonly first: ReadonlyArray<BadLine> }
  /** The 1-based line of the first prompt that names an image; 0 for none. */
  readonly firstImageLine: number
  /** The 1-based line of the first prompt that names none; 0 when all do. */
  readonly firstPlainLine: number
  /** The prompt at a place, 0 to `index.size` - 1. */
  readonly read: (place: number) => Effect.Effect<Prompt, DatasetError>
}

export class Dataset extends Context.Tag("batch-runner/Dataset")<Dataset, DatasetService>() {}
