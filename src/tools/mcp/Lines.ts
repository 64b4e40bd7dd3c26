/** What a server prints, taken apart into messages and the rest, within a fixed memory and a fixed amount for each call. */
import { ownByte } from "./Script.ts"

/** Bytes of one message, and bytes, lines and messages between two requests of ours, at most. */
export const limits = { message: 16_000_000, bytes: 64_000_000, lines: 500_000, messages: 10_000 }

export interface Heard {
  /** A line that may be a message. */
  readonly message: (text: string) => void
  /** A line of the script's own. */
  readonly own: (text: string) => void
  /** It prints more than anybody could read: why. Nothing is taken any more. */
  readonly flood: (why: string) => void
}

const brace = 0x7b

const telling = /error|cannot|could not|unable|fail|not found|no such|denied|unknown|invalid|missing|required/i

/** Takes what is printed. */
export const intake = (heard: Heard) => {
  let pending: Array<Uint8Array> = []
  let pendingBytes = 0
  let bytes = 0
  let lines = 0
  let messages = 0
  let closed = false
  let last: Array<Uint8Array> = []
  /** Whether the server has ended: what comes now is what it said before. */
  let over = false

  const flood = (why: string) => {
    closed = true
    pending = []
    heard.flood(why)
  }
  const line = (data: Uint8Array) => {
    if (++lines > limits.lines) return flood(`it sent more than ${limits.lines} lines`)
    if (data[0] === ownByte) {
      over = true
      heard.own(Buffer.from(data.subarray(1, 100)).toString("utf8").trim())
    } else if (data[0] === brace && !over) {
      if (++messages > limits.messages) return flood(`it sent more than ${limits.messages} messages`)
      heard.message(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8"))
    } else if (data.some((byte) => byte > 0x20)) {
      last.push(data.slice(0, 1000))
      if (last.length >= 40) last = last.slice(-20)
    }
  }
  return {
    take: (data: Uint8Array) => {
      if (closed) return
      bytes += data.length
      if (bytes > limits.bytes) return flood(`it sent more than ${limits.bytes} bytes`)
      let from = 0
      for (let to = data.indexOf(0x0a); to >= 0 && !closed; to = data.indexOf(0x0a, from)) {
        const rest = data.subarray(from, to)
        line(pending.length === 0 ? rest : Buffer.concat([...pending, rest]))
        pending = []
        pendingBytes = 0
        from = to + 1
      }
      if (closed || from === data.length) return
      pending.push(data.slice(from))
      pendingBytes += data.length - from
      if (pendingBytes > limits.message) flood(`it sent a message of more than ${limits.message} bytes`)
    },
    /** A request of ours begins: it may print as much again. */
    refill: () => {
      bytes = pendingBytes
      lines = 0
      messages = 0
    },
    /** Of the last lines that were no messages, the one that tells most. */
    last: () => {
      const lines = last.map((line) => Buffer.from(line).toString("utf8"))
      return lines.findLast((line) => telling.test(line) && !/^\s+at /.test(line)) ?? lines.at(-1) ?? ""
    }
  }
}
