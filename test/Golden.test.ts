/** The files that others read, byte by byte: a row, the statistics, the checkpoint and the card of one small run. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as Pipeline from "../src/Pipeline.ts"
import * as Folder from "./support/Folder.ts"
import * as Offline from "./support/Offline.ts"

const golden = (name: string) => fileURLToPath(new URL(`golden/${name}`, import.meta.url))

/** `UPDATE_GOLDEN=1 npx vitest run test/Golden.test.ts` writes them anew; read the difference before you keep it. */
const check = (name: string, content: string) => {
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(golden(name), content)
  expect(content).toBe(readFileSync(golden(name), "utf8"))
}

const looks: ReadonlyArray<Offline.Line> = [
  {
    content: "I will look.",
    reasoning: "The folder first,\nthen a note.",
    tool_calls: [
      { name: "terminal", arguments: { command: 'echo "naïve \u2028 text"' } },
      { name: "todo", arguments: { todos: [{ id: "a" }] } }
    ],
    usage: { prompt: 120, completion: 30, reasoning: 12, cached: 100, cost_usd: 0.0012 }
  },
  {
    content: "Done \u{1f600}, and half a pair: \ud83d.",
    usage: { prompt: 180, completion: 9, cost_usd: 0.0008 }
  }
]

const about: Offline.About = {
  rows: [
    { id: 1, prompt: 'Say "naïve".', cwd: "/srv", tags: ["a", { b: null }] },
    { prompt: "No reasoning." },
    { prompt: "Fly." },
    { prompt: "Fail." },
    { prompt: 'Say "naïve".' }
  ],
  prompts: {
    'Say "naïve".': looks,
    "No reasoning.": [{ content: "Plain.", usage: { prompt: 10, completion: 1 } }],
    "Fly.": [
      { reasoning: "Wings.", tool_calls: [{ name: "fly", arguments: {} }], usage: { prompt: 10, completion: 1 } },
      { content: "No wings.", usage: { prompt: 20, completion: 2 } }
    ],
    "Fail.": []
  },
  config: {
    run_name: "golden",
    num_workers: 1,
    distribution: "terminal_only",
    ephemeral_system_prompt: "SECRET ephemeral",
    prefill_messages: [{ role: "user", content: "SECRET prefill" }],
    base_url: "https://user:SECRET@example.com/v1?key=SECRET"
  }
}

/** Runs it at a fixed time; gives a reader of the files that it left. */
const ran = Effect.gen(function* () {
  const folder = yield* Folder.scoped
  yield* TestClock.setTime(Date.UTC(2026, 0, 15, 10, 30))
  const store = Offline.folderStore(folder, { runName: "golden" })
  yield* Pipeline.run().pipe(Effect.provide(Offline.layer({ ...about, store })))
  return (name: string) => readFileSync(join(folder, name), "utf8")
})

describe("The files of a run", () => {
  it.scoped("are what they always were.", () =>
    Effect.gen(function* () {
      const read = yield* ran
      check("row.jsonl", `${read("trajectories.jsonl").split("\n")[0]}\n`)
      check("statistics.json", read("statistics.json"))
      check("checkpoint.json", read("checkpoint.json"))
      check("card.md", read("README.md"))
    })
  )
  it.scoped("have no secret of the configuration.", () =>
    Effect.gen(function* () {
      const read = yield* ran
      const run = JSON.parse(read("run.json"))
      expect(run.sessions.length).toBe(1)
      expect(run.sessions[0].config).toMatchObject({
        base_url: "https://example.com/v1",
        distribution: "terminal_only"
      })
      for (const name of [
        "run.json",
        "trajectories.jsonl",
        "batch_0.jsonl",
        "discarded.jsonl",
        "failures.jsonl",
        "README.md"
      ]) {
        expect(read(name)).not.toContain("SECRET")
      }
    })
  )
  it.scoped("are the same whenever and however often the run is made.", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* ran, yield* ran]
      for (const name of [
        "trajectories.jsonl",
        "statistics.json",
        "checkpoint.json",
        "discarded.jsonl",
        "failures.jsonl"
      ]) {
        expect(two(name)).toBe(one(name))
      }
    })
  )
})

/** The shape of a value: keys in their order, and types at every depth; a list is the shapes of its elements. */
const shape = (value: unknown): string => {
  if (Array.isArray(value)) return `[${[...new Set(value.map(shape))].join("|")}]`
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value
  return `{${Object.entries(value)
    .map(([key, part]) => `${key}:${shape(part)}`)
    .join(",")}}`
}

describe("Rows of different sessions", () => {
  const call = (name: string, args: object) => ({ reasoning: "r", tool_calls: [{ name, arguments: { ...args } }] })
  it.effect("have the same keys in the same order and the same types at every depth.", () =>
    Effect.gen(function* () {
      yield* Pipeline.run()
      const { contents } = yield* Offline.Traces
      const { entries } = yield* contents
      const rows = entries.flatMap(({ outcome }) => (outcome._tag === "Kept" ? [outcome.row] : []))
      expect(rows.map(({ completed, partial }) => [completed, partial])).toEqual([
        [true, false],
        [true, false],
        [false, true],
        [false, true],
        [false, false],
        [true, false]
      ])
      const shapes = rows.map((row) => {
        // An empty list has no types of its own.
        const full = row.conversations.map((turn) => ({
          ...turn,
          tool_calls:
            turn.tool_calls.length > 0 ? turn.tool_calls : [{ id: "", type: "", function: { name: "", arguments: "" } }]
        }))
        return shape({ ...row, conversations: full })
      })
      expect(new Set(shapes).size).toBe(1)
      expect(shapes[0]).toContain("metadata:{batch_num:number,timestamp:string,model:string,image:string,cwd:string,")
    }).pipe(
      Effect.provide(
        Offline.layer({
          rows: [
            "plain",
            { prompt: "tools", cwd: "/w", id: { deep: [1] } },
            "cut",
            "bad",
            "long",
            { prompt: "image", image: "i" }
          ],
          prompts: {
            plain: [{ reasoning: "r", content: "c" }],
            tools: [call("terminal", { command: "ls" }), call("todo", {}), { content: "c", usage: { cost_usd: 0.1 } }],
            cut: [{ reasoning: "r", content: "", finish_reason: "length" }],
            bad: [call("terminal", {}), call("todo", { todos: 5 }), call("terminal", {})],
            long: [call("todo", {}), call("todo", {}), call("todo", {})],
            image: [{ reasoning: "r", content: "c" }]
          },
          config: { num_workers: 1, max_turns: 3 }
        })
      )
    )
  )
})
