/**
 * The frames in which an engine sends what a program prints: one byte for the stream, three of nothing, four for the length,
 * then the bytes. dockerode's own reader takes a step down the stack for each frame, and copies all that follows.
 */
import { Either, Option } from "effect"

const headerLength = 8

/** Gives a reader of such a stream; standard output and standard error go to `take` as they come. */
export const reader = (take: (data: Uint8Array) => void): ((chunk: Buffer) => void) => {
  let header: Buffer = Buffer.alloc(0)
  let left = 0
  return (chunk) => {
    let at = 0
    while (at < chunk.length) {
      if (left > 0) {
        const part = chunk.subarray(at, at + left)
        take(part)
        left -= part.length
        at += part.length
        continue
      }
      const piece = chunk.subarray(at, at + headerLength - header.length)
      header = header.length === 0 ? piece : Buffer.concat([header, piece])
      at += piece.length
      if (header.length < headerLength) {
        // The chunk's memory is not ours to keep.
        header = Buffer.from(header)
        return
      }
      left = header.readUInt32BE(4)
      header = Buffer.alloc(0)
    }
  }
}

/** Gives a reader of lines of JSON; what is no JSON is passed over. */
export const jsonLines = (take: (value: unknown) => void): ((chunk: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      const line = rest.toString("utf8", 0, end)
      rest = rest.subarray(end + 1)
      const value = parse(line)
      if (value !== undefined) take(value)
    }
  }
}

const parse = (line: string): unknown =>
  Option.getOrUndefined(Either.getRight(Either.try((): unknown => JSON.parse(line))))
