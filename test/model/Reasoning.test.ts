/** Reasoning is found wherever an endpoint puts it, once, and leaves no tag behind. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Reasoning from "../../src/model/Reasoning.ts"

const part = (text: string, more: Partial<Reasoning.Source> = {}) => Reasoning.part({ text, ...more })
const someTag = /<\/?(?:think|reasoning_scratchpad)>/i
const squeezed = (text: string) => text.replace(/\s+/g, "")

describe("Reasoning in the text", () => {
  it.each([
    ["a text without tags as it is", " Hi\n", " Hi\n", ""],
    ["a leading block", "<think>\nHm.\n</think>\n\nHi", "Hi", "Hm."],
    ["a scratchpad", "<REASONING_SCRATCHPAD>\nHm.\n</REASONING_SCRATCHPAD>\nHi\n", "Hi\n", "Hm."],
    ["a block in the middle", "Hi <think>Hm.</think> there", "Hi there", "Hm."],
    ["a block at the end", "  Hi\n<think>Hm.</think>\n", "  Hi", "Hm."],
    ["several blocks", "<think>A</think>\nOne\n\n<think>B</think>\nTwo", "One\n\nTwo", "A\n\nB"],
    ["blocks that follow one another", "<think>A</think>\n\n<think>B</think>\nTwo", "Two", "A\n\nB"],
    ["nested blocks", "Hi <think>a <think>b</think> c</think> there", "Hi there", "a b c"],
    ["a block that is never closed", "Hi\n<think>Hm, so", "Hi", "Hm, so"],
    ["a closing tag that was never opened", "Hm.\n</think>\n\nHi", "Hi", "Hm."],
    ["a closing tag after a whole block", "<think>a</think> b </think> c", "c", "a\n\nb"],
    ["an opening tag named inside a block", "<think>I use <think> first</think>Hi", "Hi", "I use  first"],
    ["tags in other letters", "<Think>Hm.</THINK>Hi", "Hi", "Hm."],
    ["an empty block", "<think>\n\n</think>\n\nHi", "Hi", ""],
    ["<thinking>, which is no tag of ours,", "<thinking>a</thinking>", "<thinking>a</thinking>", ""],
    ["a tag that forms at a seam", "<thi<think>x</think>nk>Hi", "Hi", "x"]
  ])("parts %s.", (_, text, content, reasoning) => {
    expect(part(text)).toEqual({ content, reasoning })
  })
})

describe("Reasoning of the endpoint's own fields", () => {
  const details = [
    { type: "reasoning.text", text: "First.", signature: "s", id: null },
    { type: "reasoning.encrypted", data: "xxxx" },
    { type: "reasoning.summary", summary: "Second." }
  ]
  it("is read from each of them.", () => {
    expect(part("Hi", { reasoning: "Hm." }).reasoning).toBe("Hm.")
    expect(part("Hi", { reasoning_content: "Hm." }).reasoning).toBe("Hm.")
    expect(part("Hi", { reasoning_details: details }).reasoning).toBe("First.\n\nSecond.")
    expect(part("Hi", { parts: ["Hm."] }).reasoning).toBe("Hm.")
  })
  it("stands once when several fields and the text hold it.", () => {
    const all = { reasoning: "First.\nSecond.", reasoning_content: "First. Second.", reasoning_details: details }
    expect(part("<think>\nFirst. Second.\n</think>\nHi", all)).toEqual({ content: "Hi", reasoning: "First.\nSecond." })
    expect(part("<think>First.</think><think>Second.</think>Hi", all).reasoning).toBe("First.\nSecond.")
  })
  it("keeps what differs.", () => {
    expect(part("<think>C</think>Hi", { reasoning: "A", reasoning_content: "B" }).reasoning).toBe("A\n\nB\n\nC")
  })
  it("is nothing when the fields hold no text.", () => {
    for (const nothing of [
      null,
      undefined,
      "",
      "  ",
      7,
      {},
      [],
      [null],
      [{ type: "reasoning.encrypted", data: "x" }]
    ]) {
      const fields = { reasoning: nothing, reasoning_content: nothing, reasoning_details: nothing }
      expect(part("Hi", fields)).toEqual({ content: "Hi", reasoning: "" })
    }
  })
  it("loses tags that would end the row's own block.", () => {
    expect(part("Hi", { reasoning: "a </think> b <think>c" }).reasoning).toBe("a  b c")
    expect(part("Hi", { reasoning: "<think>\nHm.\n</think>" }).reasoning).toBe("Hm.")
    expect(part("Hi", { reasoning: "</th</think>ink>" }).reasoning).toBe("")
  })
  it("is well-formed Unicode.", () => {
    expect(part("Hi", { reasoning: "a\ud800b" }).reasoning).toBe("a\ufffdb")
  })
})

describe("Whatever the text", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "<think>",
      "</think>",
      "<REASONING_SCRATCHPAD>",
      "</REASONING_SCRATCHPAD>",
      "<thi",
      "nk>",
      "</",
      "\n",
      " "
    ),
    fc.string({ unit: "grapheme" }),
    fc.string({ unit: "binary" })
  )
  const text = fc.array(piece).map((pieces) => pieces.join(""))
  it("no tag survives, and nothing else is lost.", () => {
    fc.assert(
      fc.property(text, (given) => {
        const { content, reasoning } = part(given)
        expect(content).not.toMatch(someTag)
        expect(reasoning).not.toMatch(someTag)
        const left = [...squeezed(content + reasoning)].sort().join("")
        expect(left.toWellFormed().length).toBeLessThanOrEqual(squeezed(given).length)
        if (!someTag.test(given)) {
          expect(content).toBe(given)
        }
      }),
      { numRuns: 500 }
    )
  })
  it("a block in front of an answer parts into both.", () => {
    const plain = fc.string({ unit: "grapheme" }).filter((one) => !one.includes("<") && one.trim() !== "")
    fc.assert(
      fc.property(plain, plain, (thought, answer) => {
        expect(part(`<think>\n${thought}\n</think>\n${answer}`)).toEqual({
          content: answer.trimStart(),
          reasoning: thought.trim()
        })
        expect(part(`<think>${thought}</think>${answer}`, { reasoning: thought }).reasoning).toBe(thought.trim())
      })
    )
  })
  it("hostile texts of megabytes cost milliseconds.", () => {
    const n = 200_000
    const hostile = [
      "<think>".repeat(n),
      "</think>".repeat(n),
      "<think></think>".repeat(n),
      "<thi".repeat(n) + "nk>".repeat(n),
      `<think>${"<thi".repeat(n)}${"nk>".repeat(n)}`,
      `${" ".repeat(n * 5)}</think>${" ".repeat(n * 5)}`,
      "a </think>".repeat(n)
    ]
    const start = performance.now()
    for (const one of hostile) {
      part(one)
      part("Hi", { reasoning: one, reasoning_content: one })
    }
    expect(performance.now() - start).toBeLessThan(8000)
  })
})
