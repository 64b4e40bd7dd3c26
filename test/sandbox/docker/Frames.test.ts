/** What an engine sends is the same however it is cut into chunks. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { jsonLines, reader } from "../../../src/sandbox/docker/Frames.ts"
import { chunks, cuts } from "../../support/Chunks.ts"

const frame = (data: Uint8Array, stream = 1): Buffer => {
  const header = Buffer.alloc(8)
  header.writeUInt8(stream, 0)
  header.writeUInt32BE(data.length, 4)
  return Buffer.concat([header, data])
}

const readFrames = (pieces: ReadonlyArray<Uint8Array>): Buffer => {
  const taken: Array<Buffer> = []
  const read = reader((data) => taken.push(Buffer.from(data)))
  for (const piece of pieces) {
    const chunk = Buffer.from(piece)
    read(chunk)
    // The memory of a chunk is its owner's: what was kept of it must be a copy.
    chunk.fill(0x55)
  }
  return Buffer.concat(taken)
}

describe("The frames of an engine", () => {
  const payloads = fc.array(fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(0, 1, 2)), { maxLength: 12 })

  it("give what is in them, in order, however they are cut.", () => {
    fc.assert(
      fc.property(payloads, cuts, (all, at) => {
        const sent = Buffer.concat(all.map(([data, stream]) => frame(data, stream)))
        expect(readFrames(chunks(sent, at))).toEqual(Buffer.concat(all.map(([data]) => data)))
      }),
      { numRuns: 500 }
    )
  })

  it("may be empty, and may be cut at every byte.", () => {
    const words = ["", "one", "", "", "two", ""]
    const sent = Buffer.concat(words.map((word) => frame(Buffer.from(word))))
    expect(readFrames([...sent].map((byte) => Uint8Array.of(byte))).toString()).toBe("onetwo")
    expect(readFrames([sent]).toString()).toBe("onetwo")
    expect(readFrames([Buffer.alloc(0), sent, Buffer.alloc(0)]).toString()).toBe("onetwo")
  })

  it("of many in one chunk are taken without a deep stack.", () => {
    const sent = Buffer.concat(Array.from({ length: 50_000 }, () => frame(Buffer.from("x"))))
    expect(readFrames([sent]).length).toBe(50_000)
  })

  it("that are larger than a signed number are taken in pieces as they come.", () => {
    let size = 0
    const read = reader((data) => {
      size += data.length
    })
    const header = Buffer.alloc(8)
    header.writeUInt32BE(2 ** 32 - 1, 4)
    read(header)
    read(Buffer.alloc(1000))
    expect(size).toBe(1000)
  })
})

describe("Lines of JSON", () => {
  const readLines = (pieces: ReadonlyArray<Uint8Array>): ReadonlyArray<unknown> => {
    const taken: Array<unknown> = []
    const read = jsonLines((value) => taken.push(value))
    for (const piece of pieces) read(Buffer.from(piece))
    return taken
  }
  const value = fc.dictionary(fc.string({ unit: "grapheme", minLength: 1 }), fc.jsonValue(), { maxKeys: 4 })

  it("give their values, however they are cut, inside a character too.", () => {
    fc.assert(
      fc.property(fc.array(value, { maxLength: 8 }), fc.constantFrom("\n", "\r\n"), cuts, (values, end, at) => {
        const texts = values.map((one) => JSON.stringify(one))
        const sent = Buffer.from(texts.map((text) => text + end).join(""))
        expect(readLines(chunks(sent, at)).map((one) => JSON.stringify(one))).toEqual(
          texts.map((text) => JSON.stringify(JSON.parse(text)))
        )
      }),
      { numRuns: 300 }
    )
  })

  it("that are no JSON are passed over, and so is a last one that does not end.", () => {
    const sent = Buffer.from('{"a":1}\nnot json\n\n{"b":\n[]\n{"c":"ü"}\n{"d":4}')
    for (const pieces of [[sent], [...sent].map((byte) => Uint8Array.of(byte))]) {
      expect(readLines(pieces)).toEqual([{ a: 1 }, [], { c: "ü" }])
    }
  })
})
