/** Temporary folders of tests. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** A folder that is gone with its scope. */
export const scoped = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "batch-runner-test-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)
