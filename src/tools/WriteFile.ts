/** The tool `write_file`: a whole file, created or replaced. */
import { Effect, Schema } from "effect"
import { Sandbox } from "../sandbox/Sandbox.ts"
import * as Arguments from "./Arguments.ts"
import * as Shell from "./Shell.ts"
import * as Tool from "./Tool.ts"

/** Writes a file. */
export const writeFile: Tool.Tool = Tool.make({
  name: "write_file",
  description:
    "Write a text file, replacing the one that is there; missing directories are created. For a change inside a file " +
    "use patch. Gives {bytes_written}.",
  parameters: Schema.Struct({
    path: Arguments.text("Path of the file, absolute or from the working directory"),
    content: Arguments.text("The whole content")
  }),
  run: Effect.fn("write_file.run")(function* ({ path, content }) {
    const sandbox = yield* Sandbox
    const place = yield* Shell.path("path", path)
    const bytes = Buffer.from(content.toWellFormed(), "utf8")
    yield* sandbox
      .write(place, bytes)
      .pipe(Effect.catchTag("FileError", (error) => new Tool.ToolFailure({ error: error.message })))
    return { bytes_written: bytes.length }
  })
})
