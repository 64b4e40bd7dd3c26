/** The tool `patch`: changes inside files, by replacing a text or by a patch for several files at once. */
import { Effect, Schema } from "effect"
import * as Arguments from "./Arguments.ts"
import * as Files from "./patch/Files.ts"
import * as Tool from "./Tool.ts"

/** Changes files. */
export const patch: Tool.Tool = Tool.make({
  name: "patch",
  description:
    "Change files. Either replace a text in one file: path, old_string, new_string (old_string must be unique unless " +
    "replace_all; small differences in white space are forgiven). Or give patch, a text for several files, which is " +
    "applied whole or not at all:\n" +
    "*** Begin Patch\n*** Update File: src/a.py\n@@ def greet():\n context line\n-old line\n+new line\n" +
    "*** Add File: src/b.py\n+first line\n*** Delete File: src/c.py\n*** End Patch\n" +
    "(*** Move to: path after an Update line renames; a unified diff is taken too). Gives {success, diff}.",
  parameters: Schema.Struct({
    mode: Schema.optional(
      Arguments.choice("replace or patch; may be left out, the other arguments tell", "replace", "patch")
    ),
    path: Schema.optional(Arguments.text("File to change, to replace a text")),
    old_string: Schema.optional(Arguments.text("Text to find, with its indentation and enough lines to be unique")),
    new_string: Schema.optional(Arguments.text("Text to put in its place; empty to delete")),
    replace_all: Schema.optional(Arguments.flag("true: replace every occurrence; false by default")),
    patch: Schema.optional(Arguments.text("Patch text for one or more files, in place of the other arguments"))
  }),
  run: Effect.fn("patch.run")(function* (args) {
    const byPatch = args.mode === "patch" || (args.mode === undefined && args.patch !== undefined)
    if (byPatch) {
      if (args.patch === undefined) return yield* missing(["patch"], "mode patch")
      return yield* Files.applyPatch(args.patch)
    }
    const { path, old_string, new_string } = args
    if (path === undefined || old_string === undefined || new_string === undefined) {
      const fields = Object.entries({ path, old_string, new_string }).filter(([, value]) => value === undefined)
      return yield* missing(
        fields.map(([name]) => name),
        "replacing a text"
      )
    }
    return yield* Files.replaceIn(path, { old: old_string, new: new_string, all: args.replace_all === true })
  })
})

const missing = (fields: ReadonlyArray<string>, form: string): Effect.Effect<never, Tool.ToolFailure> =>
  Effect.fail(
    new Tool.ToolFailure({
      error: `${fields.map((name) => `${name}: is missing`).join("; ")}; ${form} needs ${
        form === "mode patch" ? "it" : "path, old_string and new_string (or give patch, a patch text)"
      }`
    })
  )
