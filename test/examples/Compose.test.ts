/** The example that a program which composes us would copy. */
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Folder from "../support/Folder.ts"
import { answers } from "./Compose.ts"

it.scoped("A run inside another program uses the model, sandboxes, sampler and store that it is given.", () =>
  Effect.gen(function* () {
    const path = join(yield* Folder.scoped, "prompts.jsonl")
    yield* Effect.promise(() => writeFile(path, '{"prompt":"What time is it?"}\n{"prompt":"And now?"}\n'))
    const printed: Array<string> = []
    const result = yield* Effect.consoleWith((console) =>
      Effect.withConsole(answers(path), {
        ...console,
        log: (text) => Effect.sync(() => void printed.push(String(text)))
      })
    )
    expect(result.answers).toEqual(
      Array.from({ length: 2 }, () => "<think>\nNow I know.\n</think>\nThe clock says 12:00.")
    )
    expect(result.report).toMatchObject({ toDo: 0, location: "memory", merged: { rows: 2 }, sums: { costUsd: 0.004 } })
    expect(printed.toSorted()).toEqual(["2 prompts", "Kept: prompt 0", "Kept: prompt 1"])
  })
)
