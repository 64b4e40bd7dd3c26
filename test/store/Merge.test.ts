/** A merged row bears the place of its prompt in the data set last given and is otherwise what was written. */
import { describe, expect, it } from "vitest"
import * as Merge from "../../src/store/Merge.ts"
import { encodeLine } from "../../src/trajectory/Trajectory.ts"
import * as Rows from "../support/Rows.ts"

const withPlace = (line: string, place: number) => Merge.withPlace(Buffer.from(line), place).toString("utf8")

describe("A merged row", () => {
  it("differs from the written one by its place alone, letter for letter.", () => {
    const line = encodeLine(Rows.row({ prompt: 'é\u2028"prompt_index":9,', place: 41 }))
    for (const place of [0, 7, 1_000_000, -1]) {
      expect(withPlace(line, place)).toBe(line.replace('{"prompt_index":41,', `{"prompt_index":${place},`))
    }
    expect(withPlace(withPlace(line, -1), 41)).toBe(line)
  })
  it("of another program gets its place wherever it stands, and keeps its fields.", () => {
    const line = '{ "conversations": [], "prompt_index": "3", "__proto__": 1, "text": "\u2028" }'
    expect(withPlace(line, 5)).toBe('{"conversations":[],"prompt_index":5,"__proto__":1,"text":"\\u2028"}')
    expect(withPlace('{"prompt_index":null,"a":1}', 5)).toBe('{"prompt_index":5,"a":1}')
  })
})
