/** A file that a tool made: kept by content under the run folder, and put into the sandbox where its model finds it. */
import { Effect } from "effect"
import { Sandbox } from "../sandbox/Sandbox.ts"
import type { Media } from "./Media.ts"
import { ToolFailure } from "./Tool.ts"

/** Leaves the bytes in both places; gives the result's field that names the kept one. */
export const leave = Effect.fn("Product.leave")(function* (
  media: Media,
  file: { readonly path: string; readonly bytes: Uint8Array; readonly extension: string }
) {
  const sandbox = yield* Sandbox
  const kept = yield* media.keep(file.bytes, file.extension)
  yield* sandbox.write(file.path, file.bytes).pipe(
    Effect.catchTag(
      "FileError",
      (error) =>
        new ToolFailure({
          error: `it was made, but cannot be put into the sandbox: ${error.message}`,
          result: { success: false, ...(kept === undefined ? {} : { media: kept }) }
        })
    )
  )
  return kept === undefined ? {} : { media: kept }
})
