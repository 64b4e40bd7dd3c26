import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Output from "../../src/sandbox/Output.ts"

const encode = (text: string) => new TextEncoder().encode(text)
const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 })
const joined = (parts: ReadonlyArray<Uint8Array>) => new Uint8Array(Buffer.concat(parts))

describe("Output", () => {
  it("keeps the first and the last bytes, whatever pieces they come in", () => {
    fc.assert(
      fc.property(chunks, fc.nat(60), fc.nat(60), (parts, head, tail) => {
        const accumulator = Output.accumulator({ head, tail })
        for (const part of parts) accumulator.push(part)
        const all = joined(parts)
        const output = accumulator.value()
        expect(output.head).toEqual(all.slice(0, head))
        const rest = all.slice(Math.min(head, all.length))
        expect(output.tail).toEqual(rest.slice(Math.max(0, rest.length - tail)))
        expect(Output.size(output)).toBe(all.length)
      })
    )
  })

  it("gives the same value at every moment as if it ended then", () => {
    fc.assert(
      fc.property(chunks, fc.nat(30), (parts, keep) => {
        const growing = Output.capped(keep)
        parts.forEach((part, index) => {
          growing.push(part)
          const anew = Output.capped(keep)
          anew.push(joined(parts.slice(0, index + 1)))
          expect(growing.value()).toEqual(anew.value())
        })
      })
    )
  })

  it("shows a text that fits word for word", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(10), (text, more) => {
        const bytes = encode(text)
        const output = Output.capped(bytes.length + more)
        output.push(bytes)
        expect(Output.text(output.value())).toBe(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))
      })
    )
  })

  it("never cuts a code point in two, and counts what it leaves out", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 20 }), fc.integer({ min: 0, max: 18 }), (text, keep) => {
        const whole = encode(text)
        const output = Output.capped(keep)
        output.push(whole)
        const shown = Output.text(output.value())
        const [head = "", count = "0", tail = ""] = shown.split(/\n?\[\.\.\. (\d+) bytes left out \.\.\.\]\n/)
        expect(text.startsWith(head)).toBe(true)
        expect(text.endsWith(tail)).toBe(true)
        const gap = whole.length - encode(head).length - encode(tail).length
        // A line end just before the marker belongs to the head.
        expect(gap - Number(count)).toBeGreaterThanOrEqual(0)
        expect(gap - Number(count)).toBeLessThanOrEqual(1)
      })
    )
  })

  it("replaces bytes that are no UTF-8 and gives well-formed text", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(50), (bytes, keep) => {
        const output = Output.capped(keep)
        output.push(bytes)
        expect(Output.text(output.value()).isWellFormed()).toBe(true)
      })
    )
  })

  it("puts one line between head and tail", () => {
    const output = Output.capped(8)
    output.push(encode("abcdefghijklmnop"))
    expect(Output.text(output.value())).toBe("abcd\n[... 8 bytes left out ...]\nmnop")
  })
})
