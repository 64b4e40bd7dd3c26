/** What makes two prompts the same prompt: their text, image and working directory, as one number of 52 + 32 bits. */
import { hash } from "node:crypto"

/** A digest of the content in two parts that typed arrays hold exactly. */
export interface ContentKey {
  readonly high: number
  readonly low: number
}

/** What a row of the data set itself says: an image or a directory that an option gave it does not count. */
export interface Content {
  readonly text: string
  readonly image: string
  readonly cwd: string
}

/** Lengths stand before the parts that are not last, so that no two contents share a text. */
export const of = ({ text, image, cwd }: Content): ContentKey =>
  ofText(`${image.length}:${image}${cwd.length}:${cwd}${text}`)

/** The key of any text. */
export const ofText = (text: string): ContentKey => {
  const digest = hash("sha1", text, "hex")
  return { high: Number.parseInt(digest.slice(0, 13), 16), low: Number.parseInt(digest.slice(13, 21), 16) }
}

/** A key as 21 hexadecimal digits, and back. */
export const toText = ({ high, low }: ContentKey): string =>
  high.toString(16).padStart(13, "0") + low.toString(16).padStart(8, "0")

/** `text` must be 21 hexadecimal digits. */
export const fromText = (text: string): ContentKey => ({
  high: Number.parseInt(text.slice(0, 13), 16),
  low: Number.parseInt(text.slice(13), 16)
})
