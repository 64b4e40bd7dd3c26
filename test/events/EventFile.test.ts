/** Happenings as lines of a file: in order, well-formed, and bounded in memory. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import * as EventFile from "../../src/events/EventFile.ts"
import { type Event, type EventsService, silent, together } from "../../src/events/Events.ts"
import * as Folder from "../support/Folder.ts"

const tool = (name: string): Event => ({ event: "tool", prompt_index: 0, sample: 0, tool: name, ok: true, took: 1 })

describe("A line", () => {
  it("has the time first, in UTC with milliseconds, and one line end.", () => {
    expect(EventFile.lineOf(tool("x"), 1_700_000_000_123)).toBe(
      '{"at":"2023-11-14T22:13:20.123Z","event":"tool","prompt_index":0,"sample":0,"tool":"x","ok":true,"took":1}\n'
    )
  })
  it("is well-formed, and holds nothing that any reader takes for a line end.", () => {
    const line = EventFile.lineOf(tool("a\ud800b\u2028c\u2029d\u0085e\nf"), 0)
    expect(line).not.toMatch(/\\ud800|[\u0085\u2028\u2029]|\n./)
    expect(JSON.parse(line).tool).toBe("a\ufffdb\u2028c\u2029d\u0085e\nf")
    expect(JSON.parse(EventFile.lineOf(tool("\\ud800"), 0)).tool).toBe("\\ud800")
  })
})

describe("A file of happenings", () => {
  it.live("has all of them in their order when its scope closes.", () =>
    Effect.gen(function* () {
      const path = join(yield* Folder.scoped, "events.jsonl")
      yield* Effect.scoped(
        Effect.flatMap(EventFile.open(path), (events) =>
          Effect.forEach(
            Array.from({ length: 5000 }),
            (_, n) => Effect.zipRight(events.emit(tool(`${n}`)), n % 500 === 0 ? Effect.sleep(15) : Effect.void),
            { discard: true }
          )
        )
      )
      const lines = readFileSync(path, "utf8").trimEnd().split("\n")
      expect(lines.map((line) => JSON.parse(line).tool)).toEqual(Array.from({ length: 5000 }, (_, n) => `${n}`))
    }).pipe(Effect.scoped)
  )
  it.live("drops what does not fit into four megabytes of waiting lines, and says how many.", () =>
    Effect.gen(function* () {
      const path = join(yield* Folder.scoped, "events.jsonl")
      const log: Array<string> = []
      const listener = Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ message }) => void log.push(String(message)))
      )
      const big = tool("x".repeat(100_000))
      yield* Effect.scoped(
        Effect.flatMap(EventFile.open(path), (events) =>
          // No time to write in between.
          Effect.sync(() => {
            for (let n = 0; n < 100; n++) Effect.runSync(Effect.provide(events.emit(big), listener))
          })
        )
      ).pipe(Effect.provide(listener))
      const kept = readFileSync(path, "utf8").split("\n").length - 1
      expect(kept).toBeGreaterThan(35)
      expect(kept).toBeLessThan(45)
      expect(log).toEqual([expect.stringContaining("lines are dropped"), `--events: ${path} lacks ${100 - kept} lines`])
    }).pipe(Effect.scoped)
  )
})

describe("Listeners together", () => {
  const noting = (heard: Array<string>, name: string): EventsService => ({
    on: true,
    emit: ({ event }) => Effect.sync(() => void heard.push(`${name} ${event}`))
  })
  it.effect("all hear everything, and nobody is silence.", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      yield* together([noting(heard, "a"), silent, noting(heard, "b")]).emit(tool("x"))
      expect(heard).toEqual(["a tool", "b tool"])
      expect(together([]).on).toBe(false)
      expect(together([silent]).on).toBe(false)
    })
  )
})
