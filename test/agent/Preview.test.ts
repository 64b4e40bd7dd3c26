/** What the log shows of a model's text is short, on one line, and harmless to a terminal. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Preview from "../../src/agent/Preview.ts"
import type { Answer } from "../../src/model/Model.ts"
import { noUsage } from "../../src/model/Model.ts"

const answer = (more: Partial<Answer>): Answer => ({
  content: "",
  reasoning: "",
  toolCalls: [],
  finishReason: "stop",
  usage: noUsage,
  echo: {},
  ...more
})

describe("A preview", () => {
  it("shows at most so many characters, on one line, without control characters.", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.integer({ min: 0, max: 100 }), (text, chars) => {
        const shown = Preview.ofText(text, chars)
        expect(shown).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u)
        expect(Array.from(shown).length).toBeLessThanOrEqual(chars + 1)
      })
    )
    expect(Preview.ofText("a\n\tb\u001b[31mc", 100)).toBe("a b [31mc")
    expect(Preview.ofText("abcdef", 3)).toBe("abc…")
    expect(Preview.ofText("\u{1f600}\u{1f601}\u{1f602}", 2)).toBe("\u{1f600}\u{1f601}…")
  })
  it("of an answer shows its text, else its reasoning, and the calls that it makes.", () => {
    expect(Preview.ofAnswer(answer({ content: "Hi", reasoning: "Hm" }), 10)).toBe("Hi")
    expect(
      Preview.ofAnswer(
        answer({
          reasoning: "Hm",
          toolCalls: [
            { id: "1", name: "ls", arguments: "{}" },
            { id: "2", name: "cd", arguments: "{}" }
          ]
        }),
        10
      )
    ).toBe("Hm [calls ls, cd]")
  })
})
