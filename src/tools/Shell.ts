/** How tools that look at files ask the sandbox: small POSIX scripts with quoted words, and paths that a shell can take. */
import { Effect } from "effect"
import { Sandbox, type SandboxError } from "../sandbox/Sandbox.ts"
import { ToolFailure } from "./Tool.ts"

/** Seconds that a script of a file tool may take. */
export const limit = 60

/** `word` as one word of a POSIX shell. */
export const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** A line that leaves in `$p` the path, never mistaken for an option. */
export const pathVariable = (path: string): string => `p=${quote(path.startsWith("/") ? path : `./${path}`)}`

/** Runs a tool's own script and gives its output, at most about `keep` bytes of it. */
export const run = Effect.fn("Shell.run")(function* (script: string, keep: number) {
  const sandbox = yield* Sandbox
  const result = yield* sandbox.exec(script, { timeout: limit, keep })
  switch (result._tag) {
    case "Exited":
      return Buffer.concat([result.output.head, result.output.tail])
    case "TimedOut":
      return yield* new ToolFailure({ error: `gave up after ${limit} seconds; try a narrower path` })
    case "NoDirectory":
      return yield* new ToolFailure({ error: `the working directory ${result.cwd} does not exist` })
  }
})

/** A path as the sandbox takes it, `~` standing for its home; what no file can be named is a failure. */
export const path = Effect.fn("Shell.path")(function* (
  name: string,
  value: string
): Effect.fn.Return<string, ToolFailure | SandboxError, Sandbox> {
  if (value.trim() === "") return yield* new ToolFailure({ error: `${name}: expected a path, got an empty string` })
  if (value.includes("\0")) return yield* new ToolFailure({ error: `${name}: a path cannot hold a NUL byte` })
  if (value.length > 4096) return yield* new ToolFailure({ error: `${name}: a path has at most 4096 characters` })
  const wellFormed = value.toWellFormed()
  if (wellFormed !== "~" && !wellFormed.startsWith("~/")) return wellFormed
  const home = (yield* run(`printf %s "\${HOME:-}"`, 8192)).toString("utf8")
  return home.startsWith("/") ? home + wellFormed.slice(1) : wellFormed
})

/** Refuses a text that is to stand in a command but holds a NUL byte. */
export const noNul = (name: string, value: string): Effect.Effect<void, ToolFailure> =>
  value.includes("\0") ? Effect.fail(new ToolFailure({ error: `${name}: cannot hold a NUL byte` })) : Effect.void
