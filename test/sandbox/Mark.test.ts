/** The marks of our scripts are found in whatever a command prints, and nothing of its output is lost or added. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Mark from "../../src/sandbox/Mark.ts"
import * as Output from "../../src/sandbox/Output.ts"
import { chunks, cuts } from "../support/Chunks.ts"

const word = "123-456-789-t0.1"
const needle = Buffer.from(`\x1e${word} `)

interface Taken {
  readonly output: Buffer
  readonly codes: ReadonlyArray<number>
}

const taken = (pieces: ReadonlyArray<Uint8Array>, end = true): Taken => {
  const parts: Array<Buffer> = []
  const codes: Array<number> = []
  const ending = Mark.ending(
    word,
    (data) => parts.push(Buffer.from(data)),
    (code) => codes.push(code)
  )
  for (const piece of pieces) {
    const chunk = Buffer.from(piece)
    ending.take(chunk)
    // What was held back must be a copy.
    chunk.fill(0x55)
  }
  if (end) ending.end()
  return { output: Buffer.concat(parts), codes }
}

/** Output as commands make it, with everything in it that looks like the beginning of our mark. */
const output = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 20 }),
      fc.constant(Uint8Array.of(0x1e)),
      fc.integer({ min: 1, max: needle.length - 1 }).map((length) => needle.subarray(0, length)),
      fc.constantFrom("\n", "\x1e-\n", "\x1e77\n", `${word} 0\n`, `\x1e\x1e${word}`).map((text) => Buffer.from(text))
    ),
    { maxLength: 8 }
  )
  .map((parts) => Buffer.concat(parts))
  // Two parts may make a whole needle by chance.
  .filter((bytes) => !bytes.includes(needle))

const code = fc.integer({ min: 0, max: 255 })

describe("The mark of an end", () => {
  it("is found in any cut of any output, which is given as it was, and what follows is dropped.", () => {
    fc.assert(
      fc.property(output, code, fc.uint8Array({ maxLength: 10 }), cuts, (printed, exit, after, at) => {
        const sent = Buffer.concat([printed, needle, Buffer.from(`${exit}\n`), after])
        expect(taken(chunks(sent, at))).toEqual({ output: printed, codes: [exit] })
      }),
      { numRuns: 1000 }
    )
  })

  it("that never comes leaves the output as it was.", () => {
    fc.assert(
      fc.property(output, cuts, (printed, at) => {
        expect(taken(chunks(printed, at))).toEqual({ output: printed, codes: [] })
      }),
      { numRuns: 500 }
    )
  })

  it("is found when it comes byte by byte, and not before its line has ended.", () => {
    const sent = Buffer.from(`out\x1e${word} 137\n`)
    const bytes = [...sent].map((byte) => Uint8Array.of(byte))
    expect(taken(bytes)).toEqual({ output: Buffer.from("out"), codes: [137] })
    expect(taken(bytes.slice(0, -1), false)).toEqual({ output: Buffer.from("out"), codes: [] })
    expect(taken(bytes.slice(0, -1))).toEqual({ output: sent.subarray(0, -1), codes: [] })
  })

  it("holds nothing back that cannot be its beginning.", () => {
    for (const text of ["a\x1eb", `\x1e${word.slice(0, 5)}x`, `a\x1e${word}x`, "plain"]) {
      expect(taken([Buffer.from(text)], false).output.toString()).toBe(text)
    }
    expect(taken([Buffer.from("a\x1e")], false).output.toString()).toBe("a")
    expect(taken([Buffer.from("a\x1e"), Buffer.from("b")], false).output.toString()).toBe("a\x1eb")
  })

  it("is not taken from a command that prints something like it: a code is a number of three digits at most.", () => {
    for (const text of ["x", "", " ", "1x", "-1", "1.5", "1234", "999999", "0x10", "1e2"]) {
      const printed = Buffer.from(`\x1e${word} ${text}\nmore\n`)
      const sent = Buffer.concat([printed, needle, Buffer.from("3\n")])
      for (const pieces of [[sent], [...sent].map((byte) => Uint8Array.of(byte))]) {
        expect(taken(pieces), JSON.stringify(text)).toEqual({ output: printed, codes: [3] })
      }
    }
  })

  it("is found right behind something like it.", () => {
    for (const like of [`\x1e${word} `, `\x1e${word} abcdef`, `\x1e${word}`, `\x1e${word} 1`]) {
      const sent = Buffer.from(`${like}\x1e${word} 7\n`)
      for (const pieces of [[sent], [...sent].map((byte) => Uint8Array.of(byte))]) {
        expect(taken(pieces), JSON.stringify(like)).toEqual({ output: Buffer.from(like), codes: [7] })
      }
    }
  })
})

describe("The mark of a begin", () => {
  const begun = (pieces: ReadonlyArray<Uint8Array>) => {
    let found = 0
    const intake = Mark.intake(Output.capped(100_000), () => found++)
    for (const piece of pieces) intake.take(Buffer.from(piece))
    return { mark: intake.mark(), found, output: Buffer.from(Output.bytes(intake.value())) }
  }
  const noise = fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 0x1e)))

  it("is found in any cut, once, and what comes after it is the output.", () => {
    fc.assert(
      fc.property(noise, fc.constantFrom("-", "1", "4194303"), fc.uint8Array({ maxLength: 60 }), cuts, (...all) => {
        const [before, mark, after, at] = all
        const sent = Buffer.concat([before, Buffer.from(`\x1e${mark}\n`), after])
        expect(begun(chunks(sent, at))).toEqual({ mark, found: 1, output: Buffer.from(after) })
      }),
      { numRuns: 500 }
    )
  })

  it("that does not come leaves what was printed instead.", () => {
    fc.assert(
      fc.property(noise, cuts, (before, at) => {
        expect(begun(chunks(before, at))).toEqual({ mark: null, found: 0, output: before })
      })
    )
    expect(begun([Buffer.from("sh: not found\n\x1e12")])).toMatchObject({ mark: null, found: 0 })
  })
})
