/** A store in memory keeps the same books as a run folder. */
import { expect, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import * as Memory from "../../src/store/Memory.ts"
import { Store } from "../../src/store/Store.ts"
import * as Rows from "../support/Rows.ts"

const session = {
  version: "1.2.3",
  seed: 1,
  config: {},
  started_at: "2026-01-15T10:30:00",
  ended_at: "2026-01-15T10:30:05",
  duration_seconds: 5,
  released: { ...Rows.usage, cost_usd: 0.125 },
  released_calls: 2,
  tools: []
}

it.effect(
  "A store in memory knows what failed and how, and counts what was spent on released prompts at its end.",
  () =>
    Effect.gen(function* () {
      const contents = yield* Ref.make(Memory.empty)
      yield* Effect.gen(function* () {
        const store = yield* Store
        yield* store.save(Rows.kept({ prompt: "a" }))
        yield* store.save(Rows.failed({ prompt: "b", sample: 1, kind: "content_refused" }))
        expect(store.failures.get(0)).toMatchObject({ sample: 1, kind: "content_refused" })
        expect(yield* store.sums).toMatchObject({ apiCalls: 2, costUsd: 0.5 })
        yield* store.finish({ statistics: {}, card: "", session })
        expect(yield* store.sums).toMatchObject({ kept: 1, apiCalls: 4, costUsd: 0.625, tokens: { cached: 3 } })
      }).pipe(Effect.provide(Memory.layer({ toolNames: Rows.toolNames, contents })))
    })
)
