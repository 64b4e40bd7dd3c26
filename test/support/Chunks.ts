/** Bytes cut into chunks as a network would, for properties that must hold for every cut. */
import { FastCheck as fc } from "effect"

/** Places to cut at, as shares of the whole. */
export const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 })

/** The bytes in chunks; some may be empty. */
export const chunks = (bytes: Uint8Array, at: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const places = [0, ...at.map((share) => Math.round(share * bytes.length)).toSorted((a, b) => a - b), bytes.length]
  return places.slice(1).map((to, index) => bytes.subarray(places[index], to))
}
