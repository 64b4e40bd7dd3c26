/** Bytes of a document as text: by its byte-order mark, else as its server says, else as it says itself, else as it looks. */
import { TextDecoder } from "node:util"

/** A decoder for a charset by any of its names; undefined for one that is unknown. */
const decoderOf = (label: string, fatal = false): Promise<TextDecoder | undefined> =>
  Promise.resolve()
    .then(() => new TextDecoder(label, { fatal }))
    .catch(() => undefined)

const marked = (bytes: Uint8Array): string => {
  const [a, b, c] = bytes
  if (a === 0xef && b === 0xbb && c === 0xbf) return "utf-8"
  if (a === 0xff && b === 0xfe) return "utf-16le"
  return a === 0xfe && b === 0xff ? "utf-16be" : ""
}

/** What a document says of itself at its beginning: an XML prolog, or a `meta` of HTML. */
const declared = (bytes: Uint8Array): string => {
  const start = Buffer.from(bytes.subarray(0, 4096)).toString("latin1")
  const prolog = /^\s*<\?xml[^<>]*?\bencoding\s*=\s*["']([\w.:-]+)["']/.exec(start)?.[1]
  const label = prolog ?? /<meta\b[^<>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)/i.exec(start)?.[1] ?? ""
  // It could not be read if it were one of these.
  return /^utf-?(?:16|32)/i.test(label) ? "utf-8" : label
}

/** `charset`: what the server says, empty for nothing. Null characters are left out. */
export const decode = async (bytes: Uint8Array, charset: string): Promise<string> => {
  for (const label of [marked(bytes), charset, declared(bytes)]) {
    const decoder = label === "" ? undefined : await decoderOf(label)
    if (decoder !== undefined) return tidy(decoder.decode(bytes))
  }
  const strict = await decoderOf("utf-8", true)
  // The end may lie within a letter, where the document was cut.
  const utf8 = await Promise.resolve()
    .then(() => strict?.decode(bytes, { stream: true }))
    .catch(() => undefined)
  if (utf8 !== undefined) return tidy(utf8)
  const western = await decoderOf("windows-1252")
  return tidy(western?.decode(bytes) ?? "")
}

const tidy = (text: string): string => text.replaceAll("\0", "").toWellFormed()
