/** The order of the merged data set: every good row once, by prompt and sample, rows without a prompt last. */
import { Option, Schema } from "effect"
import { encodeLine } from "../trajectory/Trajectory.ts"
import * as Foreign from "./Foreign.ts"
import { type Ledger, unmatched } from "./Ledger.ts"
import { decodeRow } from "./StoredRow.ts"

/** What the merge left behind. */
export interface Merged {
  readonly rows: number
  /** Rows of `rows` whose prompt the data set no longer has. */
  readonly strays: number
}

/** Numbers of the ledger's entries in the order in which their rows are written. */
export const order = (ledger: Ledger): Uint32Array => {
  const good: Array<number> = []
  for (let at = 0; at < ledger.size; at++) {
    if (ledger.isKept(at)) good.push(at)
  }
  const rank = (at: number): number => (ledger.place(at) === unmatched ? Number.POSITIVE_INFINITY : ledger.place(at))
  return Uint32Array.from(good).sort((a, b) => {
    const byPlace = rank(a) === rank(b) ? 0 : rank(a) - rank(b)
    return byPlace || ledger.sample(a) - ledger.sample(b) || a - b
  })
}

const opening = Buffer.from('{"prompt_index":')
const decode = Schema.decodeUnknownSync(Schema.parseJson(Schema.Object))

/** The line of another program's row in our own shape, with its place. */
export const completed = (line: Buffer, toolNames: ReadonlyArray<string>, place: number): Buffer => {
  const text = line.toString("utf8")
  return Option.match(decodeRow(text, toolNames), {
    onNone: () => line,
    onSome: (stored) => Buffer.from(encodeLine(Foreign.complete(text, stored, toolNames, place)))
  })
}

/** A row's line with its place in the data set last given; our own rows open with the place, others are taken apart. */
export const withPlace = (line: Buffer, place: number): Buffer => {
  const comma = line.indexOf(44, opening.length)
  const ours =
    line.subarray(0, opening.length).equals(opening) &&
    /^-?\d+$/.test(line.toString("latin1", opening.length, Math.max(comma, opening.length)))
  return ours
    ? Buffer.concat([opening, Buffer.from(String(place)), line.subarray(comma)])
    : Buffer.from(encodeLine({ ...decode(line.toString("utf8")), prompt_index: place }))
}
