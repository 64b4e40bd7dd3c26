/** `batch-runner clean`: removes what runs that were killed left behind, backend by backend, and says what it was. */
import { Console, Effect } from "effect"
import * as Docker from "../sandbox/Docker.ts"
import * as Local from "../sandbox/Local.ts"
import * as Modal from "../sandbox/Modal.ts"
import type { Cleaned, SandboxError } from "../sandbox/Sandbox.ts"
import * as Singularity from "../sandbox/Singularity.ts"
import * as Help from "./Help.ts"
import { UsageError } from "./UsageError.ts"

const backends: ReadonlyArray<readonly [name: string, clean: Effect.Effect<Cleaned, SandboxError>]> = [
  ["local", Local.clean],
  ["docker", Docker.clean],
  ["singularity", Singularity.clean],
  ["modal", Modal.clean]
]

/** Cleans up after dead runs on this machine; what belongs to live ones stays. Gives the exit code. */
export const run = Effect.fn("Clean.run")(function* (argv: ReadonlyArray<string>) {
  if (argv.some((word) => word === "--help" || word === "-h")) return yield* Effect.as(Console.log(Help.clean), 0)
  if (argv.length > 0) {
    return yield* new UsageError({ detail: `clean: given ${JSON.stringify(argv[0])}, allowed: nothing, or --help` })
  }
  const cleaned = yield* Effect.forEach(
    backends,
    ([name, clean]) => Effect.map(Effect.either(clean), (outcome) => ({ name, outcome })),
    { concurrency: "unbounded" }
  )
  const failed = cleaned.flatMap(({ name, outcome }) =>
    outcome._tag === "Left" ? [{ name, error: outcome.left }] : []
  )
  for (const { name, error } of failed) {
    yield* Console.error(`${name}: ${error.reason === "Unavailable" ? "not looked at: " : ""}${error.message}`)
  }
  const removed = cleaned.flatMap(({ outcome }) => (outcome._tag === "Right" ? outcome.right : []))
  const nothing = failed.length === 0 ? "Nothing was left behind." : "Nothing was found where it could be looked."
  yield* Console.log(removed.length === 0 ? nothing : `Removed ${removed.join(", ")}.`)
  // A backend that is not there has nothing of ours.
  return failed.every(({ error }) => error.reason === "Unavailable") ? 0 : 1
})
