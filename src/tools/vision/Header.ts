/** What bytes are, by their own beginning: the kind of an image, and where that tells it, its size. Pure. */

export type Kind = "png" | "jpeg" | "gif" | "webp" | "avif" | "tiff" | "svg"

export interface Size {
  readonly width: number
  readonly height: number
}

const starts = (bytes: Buffer, at: number, text: string): boolean =>
  bytes.toString("latin1", at, at + text.length) === text

/** The kind of an image; undefined for anything else. */
export const kindOf = (bytes: Buffer): Kind | undefined => {
  if (starts(bytes, 0, "\x89PNG\r\n\x1a\n")) return "png"
  if (starts(bytes, 0, "\xff\xd8\xff")) return "jpeg"
  if (starts(bytes, 0, "GIF87a") || starts(bytes, 0, "GIF89a")) return "gif"
  if (starts(bytes, 0, "RIFF") && starts(bytes, 8, "WEBP")) return "webp"
  if (starts(bytes, 0, "II*\0") || starts(bytes, 0, "MM\0*")) return "tiff"
  if (starts(bytes, 4, "ftyp") && /avi[fs]/.test(bytes.toString("latin1", 8, 40))) return "avif"
  const text = bytes.toString("utf8", 0, 4096)
  return /^\ufeff?\s*<(?:svg|\?xml|!--|!doctype svg)/i.test(text) && /<svg[\s>]/i.test(text) ? "svg" : undefined
}

/** What bytes that are no image are, as far as that helps. */
export const told = (bytes: Buffer): string => {
  if (bytes.length === 0) return "empty"
  if (starts(bytes, 0, "%PDF")) return "a PDF document; make an image of its page first"
  if (starts(bytes, 0, "BM")) return "a BMP image, or no image at all; convert it to PNG first"
  if (starts(bytes, 4, "ftyphei") || starts(bytes, 4, "ftypmif1"))
    return "a HEIC image; convert it to PNG or JPEG first"
  if (/^\s*<(?:!doctype html|html|head|body)/i.test(bytes.toString("utf8", 0, 512))) return "an HTML page, not an image"
  return "no image of a kind that is read here: PNG, JPEG, GIF, WebP, AVIF, TIFF, SVG"
}

/** The size that a whole PNG, JPEG, GIF or WebP says of itself; undefined when it is not whole, or of another kind. */
export const sizeOf = (bytes: Buffer, kind: Kind): Size | undefined => {
  const size = sizes[kind]?.(bytes)
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined
}

const sizes: Partial<Record<Kind, (bytes: Buffer) => Size | undefined>> = {
  png: (bytes) =>
    bytes.length >= 45 && starts(bytes, 12, "IHDR") && bytes.subarray(-16).includes("IEND")
      ? { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
      : undefined,
  gif: (bytes) =>
    bytes.length >= 14 && bytes.at(-1) === 0x3b
      ? { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
      : undefined,
  webp: (bytes) => (bytes.length >= 30 && bytes.readUInt32LE(4) + 8 <= bytes.length ? ofWebp(bytes) : undefined),
  jpeg: (bytes) => (bytes.subarray(-64).includes("\xff\xd9", 0, "latin1") ? ofJpeg(bytes) : undefined)
}

const ofWebp = (bytes: Buffer): Size | undefined => {
  if (starts(bytes, 12, "VP8X")) {
    return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) }
  }
  if (starts(bytes, 12, "VP8L")) {
    const packed = bytes.readUInt32LE(21)
    return { width: 1 + (packed & 0x3fff), height: 1 + ((packed >>> 14) & 0x3fff) }
  }
  return starts(bytes, 12, "VP8 ")
    ? { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    : undefined
}

/** Segment by segment to the one that begins the picture. */
const ofJpeg = (bytes: Buffer): Size | undefined => {
  for (let at = 2; at + 9 <= bytes.length; ) {
    const marker = bytes.readUInt8(at + 1)
    if (bytes.readUInt8(at) !== 0xff) return undefined
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    // Filling may stand before a marker.
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}
