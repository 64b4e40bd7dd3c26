/** The index finds every row by content and occurrence, and costs some bytes a row whatever the prompts weigh. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { ContentIndex } from "../../src/dataset/ContentIndex.ts"
import * as ContentKey from "../../src/dataset/ContentKey.ts"
import * as Memory from "../support/Memory.ts"

const key = (text: string) => ContentKey.of({ text, image: "", cwd: "" })

describe("The index", () => {
  it("tells equal rows apart by occurrence, and finds each.", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 2 }), { maxLength: 300 }), (texts) => {
        const index = new ContentIndex()
        const places = new Map<string, Array<number>>()
        for (const [place, text] of texts.entries()) {
          index.add(key(text), place * 7, text.length)
          places.set(text, [...(places.get(text) ?? []), place])
        }
        expect(index.size).toBe(texts.length)
        for (const [text, found] of places) {
          expect(index.count(key(text))).toBe(found.length)
          expect([-1, ...found.keys(), found.length].map((occurrence) => index.find(key(text), occurrence))).toEqual([
            -1,
            ...found,
            -1
          ])
        }
        for (const [place, text] of texts.entries()) {
          expect([index.key(place), index.offset(place), index.length(place)]).toEqual([
            key(text),
            place * 7,
            text.length
          ])
          expect(index.occurrence(place)).toBe(places.get(text)?.indexOf(place))
        }
        expect([index.count(key("absent")), index.find(key("absent"), 0)]).toEqual([0, -1])
      })
    )
  })
  it("holds 200,000 rows in less than 60 bytes each, and finds each of them.", () => {
    const rows = 200_000
    const before = Memory.inUse()
    const index = new ContentIndex()
    for (let row = 0; row < rows; row++) index.add(key(`prompt ${row % 150_000}`), row * 1000, 999)
    expect((Memory.inUse() - before) / rows).toBeLessThan(60)
    let wrong = 0
    for (let row = 0; row < rows; row++) {
      if (index.find(key(`prompt ${row % 150_000}`), row < 150_000 ? 0 : 1) !== row) wrong++
    }
    expect([wrong, index.size]).toEqual([0, rows])
  })
  it("takes offsets beyond four gigabytes.", () => {
    const index = new ContentIndex()
    index.add(key("far"), 2 ** 40 + 1, 5)
    expect(index.offset(0)).toBe(2 ** 40 + 1)
  })
})

describe("The key of a prompt", () => {
  const of = (text: string, image = "", cwd = "") => ContentKey.of({ text, image, cwd })
  it("is made of text, image and working directory, wherever one ends and the next begins.", () => {
    const contents = [
      of("ab"),
      of("b", "a"),
      of("b", "", "a"),
      of("", "ab"),
      of("", "a", "b"),
      of("1:a0:b"),
      of("b", "a0:")
    ]
    expect(new Set(contents.map((each) => JSON.stringify(each))).size).toBe(contents.length)
    expect(of("ab", "i", "c")).toEqual(of("ab", "i", "c"))
  })
  it("is written as 21 digits that read back as the same key.", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const digits = ContentKey.toText(of(text))
        expect(digits).toMatch(/^[0-9a-f]{21}$/)
        expect(ContentKey.fromText(digits)).toEqual(of(text))
      })
    )
  })
})
