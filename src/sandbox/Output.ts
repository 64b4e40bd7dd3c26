/** Output of a command within a fixed memory: its head and its tail, and how much lay between. */

/** `head` is followed by `cut` bytes that were left out, then by `tail`. */
export interface Output {
  readonly head: Uint8Array
  readonly tail: Uint8Array
  /** Bytes left out. */
  readonly cut: number
}

/** Collects the bytes of an output as they come; `value` may be asked at any time. */
export interface Accumulator {
  readonly push: (bytes: Uint8Array) => void
  readonly value: () => Output
}

const none = new Uint8Array(0)

/** Nothing at all. */
export const empty: Output = { head: none, tail: none, cut: 0 }

/** A whole text as an output. */
export const fromText = (text: string): Output => ({ head: new TextEncoder().encode(text), tail: none, cut: 0 })

/** Keeps at most `head` bytes from the beginning and `tail` bytes from the end; memory stays within that, whatever comes. */
export const accumulator = (limit: { readonly head: number; readonly tail: number }): Accumulator => {
  let head = none
  let headSize = 0
  let ring = none
  let total = 0

  const pushHead = (bytes: Uint8Array): number => {
    const taken = Math.min(bytes.length, limit.head - headSize)
    if (taken === 0) return 0
    if (headSize + taken > head.length) {
      const grown = new Uint8Array(Math.min(limit.head, Math.max(headSize + taken, 2 * head.length)))
      grown.set(head.subarray(0, headSize))
      head = grown
    }
    head.set(bytes.subarray(0, taken), headSize)
    headSize += taken
    return taken
  }

  // The byte number n after the head lies at n modulo the ring's size.
  const pushTail = (bytes: Uint8Array, from: number) => {
    if (limit.tail === 0 || bytes.length === 0) return
    if (ring.length === 0) ring = new Uint8Array(limit.tail)
    const last = bytes.subarray(Math.max(0, bytes.length - limit.tail))
    const at = (from + bytes.length - last.length) % limit.tail
    const first = last.subarray(0, limit.tail - at)
    ring.set(first, at)
    ring.set(last.subarray(first.length), 0)
  }

  return {
    push: (bytes) => {
      const taken = pushHead(bytes)
      pushTail(bytes.subarray(taken), total + taken - headSize)
      total += bytes.length
    },
    value: () => {
      const after = total - headSize
      const kept = Math.min(after, limit.tail)
      const tail = new Uint8Array(kept)
      if (kept > 0) {
        const at = after > limit.tail ? after % limit.tail : 0
        const first = ring.subarray(at, Math.min(ring.length, at + kept))
        tail.set(first)
        tail.set(ring.subarray(0, kept - first.length), first.length)
      }
      return { head: head.slice(0, headSize), tail, cut: after - kept }
    }
  }
}

/** Keeps `keep` bytes: half from the head, half from the tail. */
export const capped = (keep: number): Accumulator =>
  accumulator({ head: Math.ceil(keep / 2), tail: Math.floor(keep / 2) })

/** Bytes of the whole output, those left out included. */
export const size = (output: Output): number => output.head.length + output.cut + output.tail.length

/** What was kept, as it is: head, then tail. */
export const bytes = (output: Output): Uint8Array => {
  if (output.tail.length === 0) return output.head
  const all = new Uint8Array(output.head.length + output.tail.length)
  all.set(output.head)
  all.set(output.tail, output.head.length)
  return all
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80

/** Bytes at the end that begin a code point without ending it. */
const unfinished = (head: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, head.length); back++) {
    const byte = head[head.length - back]
    if (byte === undefined || isContinuation(byte)) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? back : 0
  }
  return 0
}

/** Bytes at the beginning that end a code point begun earlier. */
const leftover = (tail: Uint8Array): number => {
  let count = 0
  while (count < 3 && isContinuation(tail[count])) count++
  return count
}

const decode = (part: Uint8Array) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(part)

/** As text: UTF-8 with invalid bytes replaced, and between head and tail one line that says how many bytes were left out. */
export const text = (output: Output): string => {
  if (output.cut === 0) return decode(bytes(output))
  const before = unfinished(output.head)
  const after = leftover(output.tail)
  const head = decode(output.head.subarray(0, output.head.length - before))
  const tail = decode(output.tail.subarray(after))
  const gap = head === "" || head.endsWith("\n") ? "" : "\n"
  return `${head}${gap}[... ${output.cut + before + after} bytes left out ...]\n${tail}`
}
