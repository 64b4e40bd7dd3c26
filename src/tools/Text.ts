/** Text within a bound: what a result costs a model's context, cut so that it says how much is missing. */
import type { Output } from "../sandbox/Output.ts"

/** Bytes that the long field of one result may take, counted as it stands in the result's JSON. */
export const resultBytes = 50_000

/** Bytes of `text` inside a JSON string. */
export const cost = (text: string): number => {
  let sum = 0
  for (let at = 0; at < text.length; at++) sum += unitCost(text.charCodeAt(at))
  return sum
}

/** The longest beginning of `text` that costs at most `budget`; no surrogate pair is split. */
export const head = (text: string, budget: number): string => {
  let at = 0
  for (let sum = 0; at < text.length; at++) {
    sum += unitCost(text.charCodeAt(at))
    if (sum > budget) break
  }
  return text.slice(0, splits(text, at) ? at - 1 : at)
}

/** The longest end of `text` that costs at most `budget`; no surrogate pair is split. */
export const tail = (text: string, budget: number): string => {
  let at = text.length
  for (let sum = 0; at > 0; at--) {
    sum += unitCost(text.charCodeAt(at - 1))
    if (sum > budget) break
  }
  return text.slice(splits(text, at) ? at + 1 : at)
}

/** `text` whole when it fits, else its head and its tail with the number of characters between. */
export const bound = (text: string, budget = resultBytes): string => {
  const first = head(text, budget)
  if (first.length === text.length) return text
  const start = head(first, budget / 2)
  const end = tail(text.slice(start.length), budget / 2)
  return `${start}\n[… ${text.length - start.length - end.length} characters left out …]\n${end}`
}

/** An output as text, invalid UTF-8 replaced: `start` is all of it, unless bytes were left out between `start` and `end`. */
export interface Kept {
  readonly start: string
  readonly end: string
  /** Bytes left out. */
  readonly left: number
  /** Bytes of the whole output, those left out included. */
  readonly total: number
}

/** What was kept of what a command wrote. */
export const kept = (output: Output): Kept => {
  const total = output.head.length + output.cut + output.tail.length
  if (output.cut === 0) {
    return { start: Buffer.concat([output.head, output.tail]).toString("utf8"), end: "", left: 0, total }
  }
  const first = Buffer.from(trimEnd(output.head))
  const last = Buffer.from(trimStart(output.tail))
  return { start: first.toString("utf8"), end: last.toString("utf8"), left: total - first.length - last.length, total }
}

/** The line that stands where bytes were left out. */
export const gap = (left: number, total: number): string => `[… ${left} of ${total} bytes left out …]`

/** What a command wrote, as text within the budget: the middle left out when it is long. */
export const ofOutput = (output: Output, budget = resultBytes): string => {
  const { start, end, left, total } = kept(output)
  if (left === 0) return bound(start, budget)
  const first = head(start, budget / 2)
  const last = tail(end, budget / 2)
  return `${first}\n${gap(Math.max(left, total - Buffer.byteLength(first) - Buffer.byteLength(last)), total)}\n${last}`
}

/** Bytes of one UTF-16 unit inside a JSON string. */
const unitCost = (unit: number): number => {
  if (unit < 0x20) return unit === 9 || unit === 10 || unit === 13 || unit === 8 || unit === 12 ? 2 : 6
  if (unit === 0x22 || unit === 0x5c) return 2
  if (unit < 0x80) return 1
  if (unit < 0x800) return 2
  return unit >= 0xd800 && unit <= 0xdfff ? 2 : 3
}

const splits = (text: string, at: number): boolean =>
  at > 0 &&
  at < text.length &&
  (text.charCodeAt(at) & 0xfc00) === 0xdc00 &&
  (text.charCodeAt(at - 1) & 0xfc00) === 0xd800

/** Without a character that the cut went through at the end. */
const trimEnd = (bytes: Uint8Array): Uint8Array => {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return bytes
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return length > back ? bytes.subarray(0, bytes.length - back) : bytes
    }
  }
  return bytes
}

/** Without the rest of a character that the cut went through at the start. */
const trimStart = (bytes: Uint8Array): Uint8Array => {
  let at = 0
  while (at < 3 && at < bytes.length && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++
  return bytes.subarray(at)
}
