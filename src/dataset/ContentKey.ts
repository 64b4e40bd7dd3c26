/** What makes two prompts the same prompt: their text, image and working directory, as one number of 52 + 32 bits. */
import { hash } from "node:crypto"

/** A digest of the content in two parts that typed arrays hold exactly. */
export interface ContentKey {
  readonly high: number
  readonly low: number
}

/**
 * Images and directories that a session of the run gave, or gives, to rows without their own. They count as none, so that
 * a row is the same row whatever the default was when it ran.
 */
export interface Defaults {
  readonly images: ReadonlySet<string>
  readonly cwds: ReadonlySet<string>
}

export const noDefaults: Defaults = { images: new Set(), cwds: new Set() }

export interface Content {
  readonly text: string
  readonly image: string
  readonly cwd: string
}

/** Lengths stand before the parts that are not last, so that no two contents share a text. */
export const of = (content: Content, defaults: Defaults): ContentKey => {
  const image = defaults.images.has(content.image) ? "" : content.image
  const cwd = defaults.cwds.has(content.cwd) ? "" : content.cwd
  return ofText(`${image.length}:${image}${cwd.length}:${cwd}${content.text}`)
}

/** The key of any text. */
export const ofText = (text: string): ContentKey => {
  const digest = hash("sha1", text, "hex")
  return { high: Number.parseInt(digest.slice(0, 13), 16), low: Number.parseInt(digest.slice(13, 21), 16) }
}
