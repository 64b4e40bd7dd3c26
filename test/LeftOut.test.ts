/** A run that is gone on with leaves out what would fail again, says so, and runs the kinds of failures that it is told to. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Ref } from "effect"
import { Model, ModelError, noUsage } from "../src/model/Model.ts"
import * as Pipeline from "../src/Pipeline.ts"
import * as Folder from "./support/Folder.ts"
import * as Offline from "./support/Offline.ts"

const rows = ["refused", "busy", "long", "good"]
const reasons = { refused: "ContentRefused", busy: "Overloaded", long: "ContextTooLong" } as const
const reasonOf = new Map<string, ModelError["reason"]>(Object.entries(reasons))

/** One session of work: the prompts that were asked, what failed, and the report. With `well` nothing fails. */
const session = (folder: string, retry_failed: ReadonlyArray<string> | null, well = false) =>
  Effect.gen(function* () {
    const asked = yield* Ref.make<ReadonlyArray<string>>([])
    const model = Layer.succeed(Model, {
      complete: ({ prompt }) =>
        Effect.gen(function* () {
          yield* Ref.update(asked, (all) => [...all, prompt])
          const reason = reasonOf.get(prompt)
          if (reason !== undefined && !well) return yield* new ModelError({ reason, detail: "no" })
          return {
            ...{ content: "Done.", reasoning: "Hm.", toolCalls: [], finishReason: "stop" as const },
            ...{ usage: noUsage, echo: {} }
          }
        })
    })
    const store = Offline.folderStore(folder)
    const about = { rows, model, store, config: { num_workers: 1, batch_size: 1, retry_failed } }
    const report = yield* Pipeline.run().pipe(Effect.provide(Offline.layer(about)))
    return { asked: [...new Set(yield* Ref.get(asked))], report }
  })

const failures = (folder: string) =>
  readFileSync(join(folder, "failures.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .map(({ prompt_index, kind, attempt }) => [rows[prompt_index], kind, attempt])

describe("A run that is gone on with", () => {
  it.scoped("leaves out prompts whose failure would come again, and numbers the attempts at the others.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const first = yield* session(folder, null)
      expect([first.asked, first.report.toDo, [...first.report.leftOut]]).toEqual([rows, 3, []])
      const second = yield* session(folder, null)
      expect([second.asked, second.report.toDo]).toEqual([["busy"], 3])
      expect(second.report.leftOut).toEqual(
        new Map([
          ["content_refused", 1],
          ["context_too_long", 1]
        ])
      )
      expect(failures(folder)).toEqual([
        ["refused", "content_refused", 1],
        ["busy", "overloaded", 1],
        ["long", "context_too_long", 1],
        ["busy", "overloaded", 2]
      ])
      const json = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"))
      expect(json("statistics.json")).toMatchObject({ failed: 3 })
      // Batches hold what runs: four of the first session, one of the second.
      expect(Object.keys(json("checkpoint.json").batch_stats)).toEqual(["0", "1", "2", "3", "4"])
    })
  )
  it.scoped("runs the kinds that it is told to, and no other; `all` is every kind.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, null)
      const chosen = yield* session(folder, ["content_refused"])
      expect([chosen.asked, [...chosen.report.leftOut.keys()].toSorted()]).toEqual([
        ["refused"],
        ["context_too_long", "overloaded"]
      ])
      const all = yield* session(folder, ["all"], true)
      expect([all.asked, all.report.toDo, all.report.leftOut.size]).toEqual([["refused", "busy", "long"], 0, 0])
      const after = yield* session(folder, null)
      expect([after.asked, after.report.toDo, after.report.leftOut.size]).toEqual([[], 0, 0])
    })
  )
})
