/** The example of tools of one's own, and what such tools may not be called. */
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import * as Tool from "../../src/tools/Tool.ts"
import * as Toolbox from "../../src/tools/Toolbox.ts"
import * as Toolset from "../../src/tools/Toolset.ts"
import * as Folder from "../support/Folder.ts"
import { rows } from "./OwnTools.ts"

it.scopedLive("A program's own tools are called in sessions, and counted in rows beside those of the program.", () =>
  Effect.gen(function* () {
    const path = join(yield* Folder.scoped, "prompts.jsonl")
    yield* Effect.promise(() => writeFile(path, '{"prompt":"Order as many bolts as there are."}\n'))
    const call = (name: string, args: Record<string, unknown>) => ({
      reasoning: "I see.",
      tool_calls: [{ name, arguments: args }]
    })
    const [row, ...more] = yield* rows(path, {
      prompts: {},
      default: [
        call("look_up", { part: "nut" }),
        call("look_up", { part: "bolt" }),
        call("order", { count: "40" }),
        call("order", {}),
        { reasoning: "Done.", content: "40 are ordered." }
      ]
    })
    expect(more).toEqual([])
    const results = row.conversations.filter((turn: { from: string }) => turn.from === "tool")
    expect(results.map((turn: { value: string }) => JSON.parse(turn.value))).toEqual([
      { error: "part: there is no nut; there are bolts only, ask for bolt" },
      { part: "bolt", in_stock: 40 },
      { ordered: 40 },
      { error: "bad arguments for order: count: is missing (expected a whole number)" }
    ])
    expect(row.toolsets_used).toContain("stock")
    expect(row.tool_stats).toMatchObject({
      look_up: { count: 2, success: 1, failure: 1 },
      order: { count: 2, success: 1, failure: 1 },
      terminal: { count: 0, success: 0, failure: 0 }
    })
  })
)

const tool = (name: string) =>
  Tool.make({ name, description: "", parameters: Schema.Struct({}), run: () => Effect.succeed({}) })

const refused = (...sets: ReadonlyArray<readonly [name: string, ...tools: ReadonlyArray<string>]>) =>
  Toolbox.layer(
    {},
    ...sets.map(([name, ...tools]) => Toolset.make({ name, description: "", tools: tools.map(tool) }))
  ).pipe(
    Layer.build,
    Effect.flip,
    Effect.map(({ message }) => message)
  )

it.scoped("A name that is taken, or that no model can call, is refused with the name.", () =>
  Effect.gen(function* () {
    expect(yield* refused(["mine", "terminal"])).toBe('there are two tools "terminal"; give one of them another name')
    expect(yield* refused(["mine", "vision_analyze"])).toContain('two tools "vision_analyze"')
    expect(yield* refused(["a", "one"], ["b", "one"])).toContain('two tools "one"')
    expect(yield* refused(["web", "one"])).toBe('there are two toolsets "web"; give one of them another name')
    expect(yield* refused(["a", "look up"])).toBe(
      'the tool "look up" has a name that models cannot call; allowed: at most 64 letters, digits, _ and -'
    )
  })
)
