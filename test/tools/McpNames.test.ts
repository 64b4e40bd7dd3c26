/** The names of MCP servers' tools among those of a run. */
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import * as Names from "../../src/tools/mcp/Names.ts"

const odd = FastCheck.oneof(
  FastCheck.string({ minLength: 1, maxLength: 80, unit: "grapheme" }),
  FastCheck.constantFrom("a.b", "a_b", "a/b", "a b", "x".repeat(70), `${"x".repeat(70)}y`)
)

describe("The tools of servers", () => {
  it("have names that every endpoint takes, each its own, the same each time.", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.array(odd), FastCheck.array(odd), (one, other) => {
        const given = () => {
          const taken = new Set<string>()
          return [Names.offered("s", one, taken), Names.offered("s".repeat(40), other, taken)]
        }
        const all = given().flatMap((names) => [...names.values()])
        for (const name of all) expect(name).toMatch(/^mcp_[A-Za-z0-9_-]{1,60}$/)
        expect(new Set(all).size).toBe(all.length)
        expect(new Set(given()[0]?.keys())).toEqual(new Set(one))
        expect(given()).toEqual(given())
      })
    )
  })
  it("keep a plain name whatever stands before it, and are told apart over servers.", () => {
    const taken = new Set<string>()
    expect(Object.fromEntries(Names.offered("a", ["b.c", "b_c"], taken))).toEqual({
      b_c: "mcp_a_b_c",
      "b.c": expect.stringMatching(/^mcp_a_b_c_[0-9a-f]{8}$/)
    })
    expect(Names.offered("a_b", ["c"], taken).get("c")).toMatch(/^mcp_a_b_c_[0-9a-f]{8}$/)
  })
})
