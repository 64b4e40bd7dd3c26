/** Tool results made shorter, to make room in a conversation that is longer than the model takes. Pure. */
import { Either, Predicate } from "effect"
import * as Text from "../tools/Text.ts"
import { render } from "../tools/Tool.ts"

/** Results that the model has acted on: from so many characters they are shortened, to so many bytes. */
const acted = { from: 2000, to: 1000 }
/** Results that it has not read yet: only huge ones. */
const unread = { from: 16_000, to: 16_000 }

/** A result that the model has acted on. */
export const older = (text: string): string => shorten(text, acted)
/** A result that the model has yet to read. */
export const newest = (text: string): string => shorten(text, unread)

/** Bytes that a long part of a result is left at least, its mark included. */
const least = 120

/**
 * `text`, a JSON object, when it is at most `from` characters long; else a JSON object of at most `to` bytes (`to` not below
 * 500) that keeps its short fields, and head and tail of its long ones with a mark between them. Never longer than before.
 */
export const shorten = (text: string, { from, to }: { readonly from: number; readonly to: number }): string => {
  if (text.length <= from) return text
  // What nests without end overflows whatever walks through it.
  const short = Either.getOrElse(
    Either.try(() => fields(JSON.parse(text), to) ?? wrapped(text, to)),
    () => wrapped(text, to)
  )
  return short.length < text.length ? short : text
}

const fields = (value: unknown, budget: number): string | undefined => {
  const short = within(value, budget)
  return Predicate.isRecord(short) ? render(short) : undefined
}

/** What has no fields to shorten, as the text of one field. */
const wrapped = (text: string, budget: number): string => {
  const name = "shortened"
  return render({ [name]: cut(text, budget - name.length - 7) })
}

/** `value` in at most `budget` bytes of JSON, `budget` not below `least`. */
const within = (value: unknown, budget: number): unknown => {
  const json = JSON.stringify(value)
  if (Buffer.byteLength(json) <= budget) return value
  if (Predicate.isString(value)) return cut(value, budget - 2)
  if (Array.isArray(value)) return listWithin(value, budget)
  if (Predicate.isRecord(value)) {
    const entries = Object.entries(value)
    const room = entries.reduce((left, [name]) => left - sizeOf(name) - 2, budget - 2)
    const sizes = entries.map(([, part]) => sizeOf(part))
    if (sum(sizes.map(needed)) <= room) {
      const level = levelOf(sizes, room)
      return Object.fromEntries(entries.map(([name, part]) => [name, within(part, level)]))
    }
  }
  return cut(json, budget - 2)
}

const listWithin = (list: ReadonlyArray<unknown>, budget: number): ReadonlyArray<unknown> => {
  const sizes = list.map(sizeOf)
  const costs = sizes.map((size) => needed(size) + 1)
  const room = budget - 2
  if (sum(costs) <= room) {
    const level = levelOf(sizes, room - list.length)
    return list.map((part) => within(part, level))
  }
  const half = (room - Buffer.byteLength(leftOut(list.length, "items")) - 3) / 2
  const start = howMany(costs, half)
  const end = howMany(costs.toReversed(), half)
  const level = levelOf([...sizes.slice(0, start), ...sizes.slice(sizes.length - end)], 2 * half - start - end)
  return [
    ...list.slice(0, start).map((part) => within(part, level)),
    leftOut(list.length - start - end, "items"),
    ...list.slice(list.length - end).map((part) => within(part, level))
  ]
}

/** Head and tail of a text that costs more than `budget` bytes inside a JSON string. */
const cut = (text: string, budget: number): string => {
  if (Text.head(text, budget).length === text.length) return text
  // Both line ends are escapes of two bytes.
  const half = (budget - Buffer.byteLength(leftOut(text.length, "characters")) - 4) / 2
  const start = Text.head(text, half)
  const end = Text.tail(text.slice(start.length), half)
  return `${start}\n${leftOut(text.length - start.length - end.length, "characters")}\n${end}`
}

const leftOut = (count: number, what: string): string => `[… ${count} ${what} left out to make room …]`

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
const needed = (size: number): number => Math.min(size, least)
const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((all, each) => all + each, 0)

/** How many of the first fit. */
const howMany = (costs: ReadonlyArray<number>, room: number): number => {
  let left = room
  const over = costs.findIndex((each) => {
    left -= each
    return left < 0
  })
  return over === -1 ? costs.length : over
}

/** The most that each may take so that all together fit: who needs less leaves the rest to the others. */
const levelOf = (sizes: ReadonlyArray<number>, room: number): number => {
  let left = room
  for (const [at, size] of sizes.toSorted((a, b) => a - b).entries()) {
    const share = left / (sizes.length - at)
    if (size > share) return share
    left -= size
  }
  return Number.POSITIVE_INFINITY
}
