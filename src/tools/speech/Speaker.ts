/** Whatever speaks a text. */
import type { Effect } from "effect"
import type { ToolFailure } from "../Tool.ts"
import type { ToolSession } from "../ToolSession.ts"
import type { Kind } from "./Sound.ts"

/** What is to be said. */
export interface Words {
  readonly text: string
  /** Name of a voice; empty for the speaker's own. */
  readonly voice: string
  /** The kind of file that is asked for; undefined for the speaker's own. */
  readonly kind: Kind | undefined
}

export interface Speaker {
  /** Gives the bytes of a file, of the kind that is asked for where the speaker knows it. */
  readonly say: (words: Words) => Effect.Effect<Uint8Array, ToolFailure, ToolSession>
}

/** Bytes of a file at most. */
export const maxBytes = 30_000_000
