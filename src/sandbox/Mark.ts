/** The lines that scripts of ours print about themselves, kept apart from the output: the mark of their begin, and that of their end. */
import type * as Output from "./Output.ts"
import { markByte } from "./Shell.ts"

/** Bytes before the mark that are looked through. */
const noiseLimit = 16_384

/** Takes what a script prints; `found` is called when its mark has come. */
export const intake = (output: Output.Accumulator, found: () => void) => {
  let mark: string | null = null
  let noise = Buffer.alloc(0)
  return {
    /** The mark's line without the mark; null while none came. */
    mark: () => mark,
    take: (data: Uint8Array) => {
      if (mark !== null) return output.push(data)
      noise = Buffer.concat([noise, data]).subarray(0, Math.max(noiseLimit, data.length))
      const from = noise.indexOf(markByte)
      const to = from < 0 ? -1 : noise.indexOf(0x0a, from)
      if (to < 0) return
      mark = noise.toString("latin1", from + 1, to)
      output.push(noise.subarray(to + 1))
      found()
    },
    /** What came after the mark; before one came, what was printed instead. */
    value: (): Output.Output => (mark === null ? { head: noise, tail: new Uint8Array(0), cut: 0 } : output.value())
  }
}

/** Bytes of an exit code and its line's end. */
const codeLength = 4

/**
 * Passes on what a script prints up to the mark of its end: the mark's byte, `word`, a blank, the exit code, a line's end.
 * `found` is called with the code; what follows is printed by something that outlives the script, and dropped.
 */
export const ending = (word: string, take: (data: Uint8Array) => void, found: (code: number) => void) => {
  const needle = Buffer.concat([Buffer.from([markByte]), Buffer.from(`${word} `)])
  let held = Buffer.alloc(0)
  let over = false
  // The mark may be cut in two: what may be its beginning waits for the rest.
  const begun = (all: Buffer): number => {
    const last = all.lastIndexOf(markByte)
    return last >= 0 && needle.subarray(0, all.length - last).equals(all.subarray(last)) ? last : all.length
  }
  return {
    take: (data: Uint8Array) => {
      if (over) return
      const all =
        held.length === 0 ? Buffer.from(data.buffer, data.byteOffset, data.length) : Buffer.concat([held, data])
      let sure = begun(all)
      // A command may print something like it.
      for (let at = all.indexOf(needle); at >= 0; at = all.indexOf(needle, at + 1)) {
        const from = at + needle.length
        const rest = all.toString("latin1", from, from + codeLength)
        const code = /^(\d{1,3})\n/.exec(rest)?.[1]
        if (code !== undefined) {
          over = true
          if (at > 0) take(all.subarray(0, at))
          return found(Number(code))
        }
        if (/^\d{0,3}$/.test(rest)) sure = at
      }
      held = Buffer.from(all.subarray(sure))
      if (sure > 0) take(all.subarray(0, sure))
    },
    /** Passes on what was held back, when nothing more will come. */
    end: () => {
      if (!over && held.length > 0) take(held)
      over = true
    }
  }
}
