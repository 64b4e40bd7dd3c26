/** What the headers of an answer say is left of an endpoint's limits. Pure. */
import type { RateLimit } from "../Model.ts"

/** The headers that a limit is read from: what it counts, what is left, and when it is whole again. */
const pairs = [
  ["requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
  ["tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
  ["requests", "x-ratelimit-remaining", "x-ratelimit-reset"],
  ["requests", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"],
  ["tokens", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"]
] as const

/** Names of all headers that count, those that must be there first. */
export const names: ReadonlyArray<string> = [
  ...pairs.map(([, remaining]) => remaining),
  ...pairs.map(([, , reset]) => reset)
]

/** Whether an answer has any of them. */
export const present = (headers: Readonly<Record<string, unknown>>): boolean =>
  pairs.some(([, remaining]) => headers[remaining] !== undefined)

/** Every limit that is told in full; `now` and the times are milliseconds since the epoch. What makes no sense is left out. */
export const read = (header: (name: string) => string | null | undefined, now: number): ReadonlyArray<RateLimit> =>
  pairs.flatMap(([of, left, whole]) => {
    const remaining = header(left)
    if (remaining === null || remaining === undefined || !plain.test(remaining)) return []
    const resetAt = timeOf(header(whole) ?? "", now)
    return resetAt >= now && resetAt <= now + day ? [{ of, remaining: Number(remaining), resetAt }] : []
  })

const day = 24 * 60 * 60 * 1000
/** More seconds from now than any limit has are a time of the clock; so many, they are milliseconds. */
const clockSeconds = 1e9
const clockMillis = 1e11

const plain = /^\d{1,15}(?:\.\d{0,9})?$/
const duration =
  /^(?=\d)(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?(?:(\d{1,9}(?:\.\d{0,9})?)s)?(?:(\d{1,9}(?:\.\d{0,9})?)ms)?$/
const date = /^\d{4}-\d\d-\d\dT[\d:.]{5,18}(?:Z|[+-]\d\d:?\d\d)$/

/** When a reset is, told as a length of time, seconds, a time of the clock or a date; NaN for none of them. */
const timeOf = (text: string, now: number): number => {
  if (plain.test(text)) {
    const given = Number(text)
    if (given >= clockMillis) return given
    return given >= clockSeconds ? given * 1000 : now + Math.ceil(given * 1000)
  }
  const parts = duration.exec(text)
  if (parts !== null) {
    const [days = 0, hours = 0, minutes = 0, seconds = 0, millis = 0] = parts.slice(1).map((part = "0") => Number(part))
    return now + Math.ceil((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + millis)
  }
  return date.test(text) ? Date.parse(text) : Number.NaN
}
