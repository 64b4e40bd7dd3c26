/** What a backend says of itself and of images while nothing is started, pulled, built or written. */
import type { Effect } from "effect"
import type { SandboxError } from "./Sandbox.ts"

/** Whether an image can be had. */
export type Image =
  /** Nothing needs to be fetched. */
  | { readonly _tag: "Present" }
  /** Its registry has it. */
  | { readonly _tag: "Offered" }
  /** `why` is one sentence with the image's name. */
  | { readonly _tag: "Missing"; readonly why: string }
  /** `why` is a clause. */
  | { readonly _tag: "Unknown"; readonly why: string }

export interface Inspection {
  /** The backend as it was found, in a few words. */
  readonly told: string
  readonly image: (name: string) => Effect.Effect<Image, SandboxError>
}

/** A few words for people. */
export const toldOf = (image: Image): string => {
  switch (image._tag) {
    case "Present":
      return "there"
    case "Offered":
      return "to be pulled, its registry has it"
    case "Missing":
      return "cannot be had"
    case "Unknown":
      return image.why
  }
}
