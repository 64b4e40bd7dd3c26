/** The tools that rows count, over sessions with changing tools. */
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import * as Session from "../../src/store/Session.ts"

const names = FastCheck.uniqueArray(FastCheck.constantFrom("terminal", "todo", "mcp_a_x", "mcp_a_y", "mcp_b_x", "own"))

describe("The tools of a run's rows", () => {
  it("are those of all sessions, each in the place that it had before.", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.array(names, { maxLength: 6 }), (own) => {
        const records: Array<{ readonly tools: ReadonlyArray<string> }> = []
        let before: ReadonlyArray<string> = []
        for (const tools of own) {
          // A session writes down the tools that its rows count.
          const now = Session.toolNames(records, tools)
          expect(now.slice(0, before.length)).toEqual(before)
          expect(new Set(now).size).toBe(now.length)
          expect(now).toEqual(expect.arrayContaining([...tools]))
          expect(now.every((name) => before.includes(name) || tools.includes(name))).toBe(true)
          records.push({ tools: now })
          before = now
        }
      })
    )
  })
})
