/** Output of a command within a fixed memory: its head and its tail, and how much lay between. */

/** `head` is followed by `cut` bytes that were left out, then by `tail`. */
export interface Output {
  readonly head: Uint8Array
  readonly tail: Uint8Array
  /** Bytes left out. */
  readonly cut: number
}
