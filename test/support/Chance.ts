/** Chance that is the same in every run: a number by a seed and what it is for. */

/** A number from 0 up to and without 1, by the seed and the parts; another order of asking changes nothing. */
export const chance = (seed: number, ...parts: ReadonlyArray<string | number>): number => {
  // FNV-1a, then the last steps of MurmurHash3: texts that differ in one character share nothing.
  let hash = 0x811c9dc5 ^ seed
  for (const part of parts) {
    for (const char of `${part}\u0000`) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
