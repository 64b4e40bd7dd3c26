/** What a model is shown of an image: by its content, small, bare of metadata, and never unpacked without bounds. */
import { Effect, Either } from "effect"
import sharp from "sharp"
import { describe, expect, it } from "vitest"
import * as Picture from "../../../src/tools/vision/Picture.ts"

const of = async (bytes: Uint8Array, library?: () => Promise<Picture.Library>) => {
  const made = await Effect.runPromise(Effect.either(Picture.of(bytes, library)))
  if (Either.isLeft(made)) return { error: made.left.message }
  const { width, height, exif, orientation } = await sharp(made.right.bytes).metadata()
  return {
    mime: made.right.mime,
    width,
    height,
    bare: exif === undefined && orientation === undefined,
    bytes: made.right.bytes
  }
}
const plain = (width: number, height: number, background = "red") =>
  sharp({ create: { width, height, channels: 3, background } })
const noise = (width: number, height: number) =>
  sharp({
    create: { width, height, channels: 3, background: "red", noise: { type: "gaussian", mean: 128, sigma: 90 } }
  })
const missing = () => Promise.reject(new Error("no build for this platform"))

describe("A picture", () => {
  it.each([
    ["png", "image/png"],
    ["jpeg", "image/jpeg"],
    ["gif", "image/png"],
    ["webp", "image/jpeg"],
    ["avif", "image/jpeg"],
    ["tiff", "image/jpeg"]
  ] as const)("is read from %s, and shown as %s.", async (kind, mime) => {
    expect(await of(await plain(40, 30)[kind]().toBuffer())).toMatchObject({ mime, width: 40, height: 30, bare: true })
  })
  it("is drawn from SVG, without what lies elsewhere.", async () => {
    const svg = (inside: string, size = 'width="40" height="30"') =>
      Buffer.from(
        `\ufeff<?xml version="1.0"?><!-- a --><svg xmlns="http://www.w3.org/2000/svg" ${size}>${inside}</svg>`
      )
    expect(await of(svg('<rect width="9" height="9"/>'))).toMatchObject({ mime: "image/png", width: 40, height: 30 })
    const file = await of(svg(`<image href="file://${process.cwd()}/package.json" width="9" height="9"/>`))
    const without = await of(svg(""))
    expect(file.bytes).toEqual(without.bytes)
    expect(await of(svg("", 'width="90000" height="90000"'))).toEqual({
      error: expect.stringMatching(/40 million pixels/)
    })
  })
  it("is made no larger than models look at, in pixels and in bytes.", async () => {
    expect(await of(await plain(4000, 1000).png().toBuffer())).toMatchObject({ width: 1568, height: 392 })
    const drawn = await of(await noise(1500, 1500).png().toBuffer())
    expect(drawn).toMatchObject({ mime: "image/jpeg", width: 1500 })
    expect(drawn.bytes?.length).toBeLessThanOrEqual(3_500_000)
  })
  it("stands upright, and tells nothing of whoever took it.", async () => {
    const taken = await plain(40, 30)
      .jpeg()
      .withExif({ IFD0: { Copyright: "somebody" } })
      .withMetadata({ orientation: 6 })
      .toBuffer()
    expect(await of(taken)).toMatchObject({ width: 30, height: 40, bare: true })
  })
  it("of several frames is the first, and what shines through stays so.", async () => {
    const frames = await Promise.all(["red", "blue"].map((colour) => plain(20, 20, colour).png().toBuffer()))
    const moving = await of(
      await sharp(frames, { join: { animated: true } })
        .gif({ delay: [9, 9] })
        .toBuffer()
    )
    expect(moving).toMatchObject({ mime: "image/png", width: 20, height: 20 })
    expect((await sharp(moving.bytes).stats()).dominant).toMatchObject({ r: 248, g: 8, b: 8 })
    const clear = sharp({ create: { width: 9, height: 9, channels: 4, background: { r: 9, g: 9, b: 9, alpha: 0.5 } } })
    expect(await of(await clear.webp().toBuffer())).toMatchObject({ mime: "image/png" })
  })
})

describe("Bytes that are no picture", () => {
  const png = plain(40, 30).png().toBuffer()
  it("are told as what they are.", async () => {
    for (const [bytes, error] of [
      [Buffer.alloc(0), /empty/],
      [Buffer.from("%PDF-1.7"), /PDF/],
      [Buffer.from("BM123456"), /BMP/],
      [Buffer.from("\0\0\0\x18ftypheic"), /HEIC/],
      [Buffer.from("<!DOCTYPE html><html>"), /HTML/],
      [Buffer.from("hello"), /PNG, JPEG, GIF/],
      [Buffer.from("<?xml version='1.0'?><rss/>"), /PNG, JPEG, GIF/],
      [(await png).subarray(0, 60), /damaged or no real PNG/],
      [Buffer.from("\x89PNG\r\n\x1a\nhello", "latin1"), /damaged or no real PNG/],
      [Buffer.from(`<svg ${"<!---->".repeat(3000)}`), /damaged or no real SVG/]
    ] as const) {
      expect(await of(bytes)).toEqual({ error: expect.stringMatching(error) })
    }
  })
  it("or would be too many, are not unpacked.", async () => {
    const bomb = await plain(15_000, 15_000).png().toBuffer()
    const before = performance.now()
    expect(await of(bomb)).toEqual({ error: expect.stringMatching(/40 million pixels/) })
    expect(await of(bomb, missing)).toEqual({ error: expect.stringMatching(/40 million pixels/) })
    expect(await of(Buffer.alloc(Picture.bytesAtMost + 1))).toEqual({ error: expect.stringMatching(/20 MB/) })
    expect(performance.now() - before).toBeLessThan(2000)
  })
})

describe("Without the image library", () => {
  it("small pictures of the common kinds pass as they are.", async () => {
    const made = [
      await plain(40, 30).png().toBuffer(),
      await plain(40, 30).jpeg().toBuffer(),
      await plain(40, 30).gif().toBuffer(),
      await plain(40, 30).webp().toBuffer(),
      await plain(40, 30).webp({ lossless: true }).toBuffer(),
      await plain(40, 30).ensureAlpha(0.5).webp().toBuffer()
    ]
    const kinds = ["png", "jpeg", "gif", "webp", "webp", "webp"]
    for (const [at, bytes] of made.entries()) {
      const whole = await of(bytes, missing)
      expect([whole.mime, whole.bytes]).toEqual([`image/${kinds[at]}`, bytes])
      expect(await of(bytes.subarray(0, bytes.length - 20), missing)).toEqual({
        error: expect.stringMatching(/damaged|no real/)
      })
    }
  })
  it("others are refused with what would do.", async () => {
    expect(await of(await plain(40, 30).tiff().toBuffer(), missing)).toEqual({
      error: expect.stringMatching(/as PNG or JPEG instead of TIFF/)
    })
    expect(await of(await plain(7000, 10).png().toBuffer(), missing)).toEqual({
      error: expect.stringMatching(/at most 6272 pixels/)
    })
    expect(await of(await noise(1500, 1500).png().toBuffer(), missing)).toEqual({
      error: expect.stringMatching(/3.5 MB/)
    })
  })
})
