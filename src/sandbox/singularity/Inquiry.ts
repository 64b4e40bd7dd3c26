/** Whether images can be had, as far as that can be told without fetching or converting them. */
import { Effect, Either } from "effect"
import type { Image } from "../Inspection.ts"
import * as Cache from "./Cache.ts"
import * as Reference from "./Reference.ts"

/** One image; `folder` holds those that are converted already. */
export const ask = (folder: string, name: string): Effect.Effect<Image> =>
  Effect.sync(() => {
    const reference = Reference.read(name, process.cwd())
    if (reference._tag === "Local") {
      return Either.match(Cache.local(name, reference.path), {
        onLeft: ({ message }): Image => ({ _tag: "Missing", why: message }),
        onRight: (): Image => ({ _tag: "Present" })
      })
    }
    return Cache.converted(folder, reference.address)
      ? { _tag: "Present" }
      : { _tag: "Unknown", why: "converted at first use, not checked" }
  })
