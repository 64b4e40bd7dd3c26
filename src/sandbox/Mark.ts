/** The first line that a script of ours prints, which says that it has begun, kept apart from the output that follows it. */
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
