/** Reasoning is found wherever an endpoint puts it, once, and leaves no tag behind. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Reasoning from "../../../src/model/openai/Reasoning.ts"

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

describe("Where reasoning has a field of its own", () => {
  it.each([
    ["a tag in the middle of the text is text", "The tag </think> closes it.", "The tag </think> closes it."],
    [
      "a block in indented code is text",
      '    s = "<think>"\n    e = "</think>"\nend',
      '    s = "<think>"\n    e = "</think>"\nend'
    ],
    ["a copy in front of the text is none", "<think>Hm.</think>\nHi", "Hi"],
    ["a copy that only a closing tag ends is none", "Hm.\n</think>\nHi", "Hi"]
  ])("%s.", (_, text, content) => {
    expect(part(text, { reasoning: "Hm.", ended: true })).toEqual({ content, reasoning: "Hm." })
  })
})

describe("A tag that the text only speaks of", () => {
  const ended = (text: string) => part(text, { ended: true })
  it.each([
    ["that nothing closes in the middle of a whole answer", "The tag <think> is used. Done"],
    ["of a scratchpad, in the middle of a whole answer", "First <REASONING_SCRATCHPAD>, then the rest."],
    ["in a code span", "Use `<think>x</think>` in text"],
    ["alone in its code span", "`<think>` opens it and `</think>` closes it."],
    ["somewhere in a code span", "Write `a <think> b </think> c` so."],
    ["in a code span of two backticks", "Write `` `<think>` </think> `` so."],
    ["in a code span of two lines", "Write `<think>a\nb</think>` so."],
    ["in a code fence", "So:\n```xml\n<think>\nHm.\n</think>\n```\nDone"],
    ["in a fence that begins the text", "```\n<think>\n```"],
    ["in a longer fence around a fence", "````\n```\n</think>\n```\n````\nDone"],
    ["in an indented or quoted fence", "1. So:\n   ```\n   <think>\n   ```\n> ```\n> </think>\n> ```\nDone"],
    ["that ends a text, alone in a fence", "End with\n```\n</think>\n```\nalways."],
    ["behind a backtick that nothing closes", "Use `<think>x</think> in text"],
    ["that closes, behind such a backtick", "It ends with `</think> as ever."]
  ])("%s stays.", (_, text) => {
    expect(ended(text)).toEqual({ content: text, reasoning: "" })
    expect(ended(`<think>\nHm.\n</think>\n${text}`)).toEqual({ content: text, reasoning: "Hm." })
    expect(part(text, { ended: true, reasoning: "Hm." })).toEqual({ content: text, reasoning: "Hm." })
  })
  it("in code stays also when the text was cut.", () => {
    for (const text of ["Use `<think>", "Use `<think>x</think>` and", "```\n<think>\nHm.\n</think>", "```\n<think>"]) {
      expect(part(text)).toEqual({ content: text, reasoning: "" })
    }
  })
  it.each([
    ["at the start, never closed, in a whole answer", "\n<think>Hm, so", "", "Hm, so"],
    ["behind another, never closed", "<think>a</think>\n<think>Hm, so", "", "a\n\nHm, so"],
    ["that names its own end in code", "<think>I write `</think>` so.</think>Hi", "Hi", "I write `` so."],
    [
      "that names tags in code and is followed by some",
      "<think>`<think>` it is</think>`<think>`",
      "`<think>`",
      "`` it is"
    ],
    ["with a backtick too many", "<think>The `foo is odd.</think>The `bar` is.", "The `bar` is.", "The `foo is odd."],
    ["with a fence that is left open", "<think>\n```\nx</think>\n```\ny\n```", "```\ny\n```", "```\nx"],
    [
      "that was opened in the prompt, with such a fence",
      "```py\nx\n</think>\n```py\ny\n```",
      "```py\ny\n```",
      "```py\nx"
    ],
    ["that was opened in the prompt and names a tag", "Is it `<think>`?\n</think>\nHi", "Hi", "Is it ``?"],
    ["right behind code", "Use `x`<think>Hm.</think> so", "Use `x` so", "Hm."],
    ["right behind a fence", "```\nx\n```<think>Hm.</think>\nso", "```\nx\n```\nso", "Hm."],
    ["between tags that stay", "`<think>` <think>Hm.</think> `</think>`", "`<think>` `</think>`", "Hm."],
    ["that names a tag, before code with a pair", "<think>a <think> b</think>Hi `<think>x`", "Hi `<think>x`", "a  b"]
  ])("is none of the tags of a block %s.", (_, text, content, reasoning) => {
    expect(ended(text)).toEqual({ content, reasoning })
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
  it("is read from an object around the text, once.", () => {
    expect(part("Hi", { reasoning: { text: "Hm." } }).reasoning).toBe("Hm.")
    expect(part("Hi", { reasoning: { content: "Hm." } }).reasoning).toBe("Hm.")
    expect(part("Hi", { reasoning: { text: " ", content: "Hm." }, reasoning_content: "Hm." }).reasoning).toBe("Hm.")
    expect(part("Hi", { reasoning: { effort: "low", text: 7, content: null } }).reasoning).toBe("")
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
  const text = fc.array(piece).map((pieces) => pieces.join("").replaceAll("`", ""))
  it("no tag survives where there is no code, and nothing else is lost.", () => {
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
  it("tags that open in the middle of a whole answer stay when there is none that closes.", () => {
    fc.assert(
      fc.property(text, (given) => {
        const spoken = `So: ${given}`.replace(/<\/(?=think>|reasoning_scratchpad>)/gi, "<").toWellFormed()
        expect(part(spoken, { ended: true })).toEqual({ content: spoken, reasoning: "" })
      }),
      { numRuns: 500 }
    )
  })
  it("tags in spans and fences stay, and a block in front of them is cut.", () => {
    const line = text.map((given) => given.replace(/[\n\r]/g, "").toWellFormed())
    const lines = fc.array(line).map((each) => each.join("\n"))
    const plain = line.map((given) => given.replaceAll("<", ""))
    const code = fc.oneof(
      line.map((given) => `\`<${given}>\``),
      lines.map((given) => `\n\`\`\`html\n${given}\n\`\`\`\n`)
    )
    const speech = fc.array(fc.tuple(plain, code)).map((each) => `So: ${each.flat().join("")}.`)
    fc.assert(
      fc.property(speech, fc.boolean(), (given, ended) => {
        expect(part(given, { ended })).toEqual({ content: given, reasoning: "" })
        expect(part(`<think>Hm.</think>\n${given}`, { ended })).toEqual({ content: given, reasoning: "Hm." })
      }),
      { numRuns: 500 }
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
  it("hostile code costs no more.", () => {
    const n = 100_000
    const hostile = [
      "`<think>`".repeat(n),
      "```\n<think>\n".repeat(n),
      "```a\n</think>\n".repeat(n),
      "a <think> ` \n \n</think>".repeat(n),
      Array.from({ length: 1000 }, (_, size) => `${"`".repeat(size + 1)}<think>`).join("")
    ]
    const start = performance.now()
    for (const one of hostile) {
      part(one, { ended: true })
    }
    expect(performance.now() - start).toBeLessThan(8000)
  })
})
