/** A file as lines of bytes with their offsets, read in one pass; gzip is unpacked on the way. */
import type { FileHandle } from "node:fs/promises"
import { Readable } from "node:stream"
import { createGunzip } from "node:zlib"

export interface Line {
  readonly bytes: Uint8Array
  /** Where the line begins in the (unpacked) text. */
  readonly offset: number
  /** 1-based. */
  readonly number: number
  /** False for a last line without a line end. */
  readonly ended: boolean
}

const chunkSize = 256 * 1024

/** The bytes of a file from its start; a file that begins with gzip's mark is unpacked. */
export const contents = (file: FileHandle, gzip: boolean): Readable => {
  const raw = file.createReadStream({ start: 0, autoClose: false, highWaterMark: chunkSize })
  if (!gzip) return raw
  const unpacked = createGunzip({ chunkSize })
  raw.on("error", (error) => unpacked.destroy(error))
  // Who reads is told of damage; what the unpacker says after that would have no listener, and end the process.
  unpacked.on("error", () => raw.destroy())
  return raw.pipe(unpacked)
}

/** Calls `each` for every line until it answers false; gives the count of bytes seen. */
export const scan = async (chunks: Readable | Iterable<Buffer>, each: (line: Line) => boolean): Promise<number> => {
  let pending: Array<Buffer> = []
  let offset = 0
  let seen = 0
  let number = 0
  const emit = (bytes: Buffer, ended: boolean): boolean => {
    const more = each({ bytes, offset, number: ++number, ended })
    offset += bytes.length + 1
    return more
  }
  // Stopping early must not destroy the stream: that would close the file, which is read again later.
  for await (const chunk of chunks instanceof Readable ? chunks.iterator({ destroyOnReturn: false }) : chunks) {
    const bytes: Buffer = chunk
    seen += bytes.length
    let start = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      const rest = bytes.subarray(start, end)
      start = end + 1
      const line = pending.length === 0 ? rest : Buffer.concat([...pending, rest])
      pending = []
      if (!emit(line, true)) return seen
    }
    if (start < bytes.length) pending.push(bytes.subarray(start))
  }
  if (pending.length > 0) emit(Buffer.concat(pending), false)
  return seen
}
