/** A row is one line that any reader of JSON takes, with the same keys and types whatever the session was like. */
import { FastCheck as fc, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { encodeLine, Row, rowEncoder, timestamp } from "../../src/trajectory/Trajectory.ts"
import * as Rows from "../support/Rows.ts"

/** What a value becomes when every text in it is well-formed. */
const wellFormed = (value: unknown): unknown => {
  if (typeof value === "string") return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key.toWellFormed(), wellFormed(part)]))
}

/** Texts of any code units, halves of surrogate pairs and line separators among them more often than chance has it. */
const text = fc
  .array(
    fc.oneof(
      fc.string(),
      fc.constantFrom("\ud800", "\udfff", "\ud83d\ude00", "\u2028", "\u2029", "\\ud800", "\n", "\r", "\0", "\u0085")
    )
  )
  .map((parts) => parts.join(""))

const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    text,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("any")),
    fc.dictionary(text, tie("any"))
  )
})).any

describe("A line", () => {
  it("is one line that reads back as the well-formed value, with no raw separator and no half of a pair.", () => {
    fc.assert(
      fc.property(fc.dictionary(text, value), (row) => {
        const line = encodeLine(row)
        expect(line).not.toMatch(/[\n\r\u0085\u2028\u2029]/)
        expect(line.isWellFormed()).toBe(true)
        expect(JSON.parse(line)).toEqual(wellFormed(JSON.parse(JSON.stringify(row))))
        // An escape stands behind an odd number of backslashes; an even number is text about backslashes.
        expect(line).not.toMatch(/(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/)
      }),
      { numRuns: 500 }
    )
  })
  it("has halves of surrogate pairs replaced in values and keys at any depth, and whole pairs left.", () => {
    expect(encodeLine({ a: ["\ud800", { "k\udc00": "x\ud83d\ude00\ud83d" }] })).toBe(
      '{"a":["\ufffd",{"k\ufffd":"x\ud83d\ude00\ufffd"}]}'
    )
  })
  it("has U+0085, U+2028 and U+2029 escaped, in keys too.", () => {
    expect(encodeLine({ "a\u2028": "b\u2029c\u2028\u0085" })).toBe('{"a\\u2028":"b\\u2029c\\u2028\\u0085"}')
  })
  it("keeps a key named __proto__.", () => {
    const row = { tool_stats: Object.fromEntries([["__proto__", 1]]), text: "\ud800" }
    expect(encodeLine(row)).toBe('{"tool_stats":{"__proto__":1},"text":"\ufffd"}')
  })
  it("leaves text about escapes alone.", () => {
    expect(encodeLine({ a: "\\ud800" })).toBe('{"a":"\\\\ud800"}')
  })
})

describe("A row", () => {
  it("is the same line whether its tools were written before or not.", () => {
    const encode = rowEncoder()
    fc.assert(
      fc.property(
        text,
        text,
        fc.constantFrom("[]", "\ud800\u2028", '[{"name":"terminal"}]'),
        (prompt, source, tools) => {
          const row = { ...Rows.row({ prompt }), source, tools, reason: "last" }
          expect(encode(row)).toBe(encodeLine(row))
        }
      )
    )
  })
  it("is what its schema says.", () => {
    expect(Schema.is(Row)(JSON.parse(encodeLine(Rows.row({ prompt: "x" }))))).toBe(true)
  })
  it("bears its time in UTC, to the second.", () => {
    expect(timestamp(Date.UTC(2026, 0, 15, 10, 30, 0, 999))).toBe("2026-01-15T10:30:00")
  })
})
