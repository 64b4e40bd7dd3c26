/** The values of single options, read from what was typed: each checked, a wrong one told with what is allowed. */
import { existsSync, readFileSync } from "node:fs"
import { Either, Option, ParseResult, Schema } from "effect"
import { UsageError } from "./UsageError.ts"

/** Values by option name; switches are booleans. */
export type Typed = Readonly<Record<string, Option.Option<string> | boolean>>

export const bad = (name: string, given: string, allowed: string): UsageError =>
  new UsageError({
    detail: `--${name}: given ${JSON.stringify(given.length > 300 ? `${given.slice(0, 300)}…` : given)}, allowed: ${allowed}`
  })

/** The value of one option, `fallback` where it was not given. */
export type Read<A> = Either.Either<A, UsageError>

export const text = (typed: Typed, name: string): string | undefined => {
  const value = typed[name]
  return typeof value === "object" ? Option.getOrUndefined(value) : undefined
}

export const filled = (typed: Typed, name: string): string | undefined => text(typed, name)?.trim() || undefined

export const on = (typed: Typed, name: string): boolean => typed[name] === true

/** An empty value is more likely a variable that is not set than a wish for the default, which may cost money. */
export const notEmpty = (typed: Typed, name: string, fallback: string, allowed: string): Read<string> =>
  text(typed, name)?.trim() === ""
    ? Either.left(bad(name, "", `${allowed}; or leave it out${fallback === "" ? "" : ` for ${fallback}`}`))
    : Either.right(filled(typed, name) ?? fallback)

export const required = (typed: Typed, name: string, what: string): Read<string> => {
  const value = filled(typed, name)
  return value === undefined
    ? Either.left(new UsageError({ detail: `--${name} is required: ${what}` }))
    : Either.right(value)
}

export const whole = <F>(
  typed: Typed,
  name: string,
  fallback: F,
  least = Number.MIN_SAFE_INTEGER,
  most = Number.MAX_SAFE_INTEGER
): Read<number | F> => {
  const value = text(typed, name)?.trim()
  if (value === undefined) return Either.right(fallback)
  const number = Number(value)
  if (/^[+-]?\d+$/.test(value) && number >= least && number <= most) return Either.right(number)
  const from = least > Number.MIN_SAFE_INTEGER ? ` of at least ${least}` : ""
  const to = most < Number.MAX_SAFE_INTEGER ? ` and at most ${most}` : ""
  return Either.left(bad(name, value, `a whole number${from}${to}`))
}

export const count = <F>(typed: Typed, name: string, fallback: F, most?: number): Read<number | F> =>
  whole(typed, name, fallback, 1, most)

export const choice = <A extends string, F>(
  typed: Typed,
  name: string,
  literals: { readonly literals: ReadonlyArray<A> },
  fallback: F
): Read<A | F> => {
  const value = text(typed, name)?.trim()
  if (value === undefined) return Either.right(fallback)
  const found = literals.literals.find((literal) => literal === value.toLowerCase())
  return found === undefined ? Either.left(bad(name, value, literals.literals.join(", "))) : Either.right(found)
}

export const list = (typed: Typed, name: string): ReadonlyArray<string> =>
  (text(typed, name) ?? "")
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")

const units = new Map([
  ["", 0],
  ["b", 0],
  ["k", 10],
  ["m", 20],
  ["g", 30],
  ["t", 40]
])

/** The least memory in which a shell runs. */
const leastMemory = 16 * 2 ** 20

/** Bytes, written as 512m or 2g. */
export const amount = <F>(typed: Typed, name: string, fallback: F): Read<number | F> => {
  const value = text(typed, name)?.trim()
  if (value === undefined) return Either.right(fallback)
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?$/i.exec(value) ?? []
  const bytes = Math.round(Number(number) * 2 ** (units.get(unit.toLowerCase()) ?? 0))
  return number !== "" && bytes >= leastMemory && Number.isSafeInteger(bytes)
    ? Either.right(bytes)
    : Either.left(bad(name, value, "an amount of at least 16m, such as 512m or 2g"))
}

/** Dollars, or another amount that may have decimals. */
export const positive = <F>(typed: Typed, name: string, fallback: F, allowed: string): Read<number | F> => {
  const value = text(typed, name)?.trim()
  if (value === undefined) return Either.right(fallback)
  const number = /^\d+(\.\d+)?$|^\.\d+$/.test(value) ? Number(value) : 0
  return number > 0 && number <= 1e12 ? Either.right(number) : Either.left(bad(name, value, allowed))
}

/** The content of a JSON file that an option names; `shape` says in a line what it must be. */
export const jsonFile = <A, I, F>(
  typed: Typed,
  name: string,
  schema: Schema.Schema<A, I>,
  fallback: F,
  shape: string,
  onExcessProperty: "ignore" | "error" = "ignore"
): Read<A | F> => {
  const path = filled(typed, name)
  if (path === undefined) return Either.right(fallback)
  if (!existsSync(path)) return Either.left(bad(name, path, `an existing file with ${shape}`))
  const content = Either.try({
    try: () => readFileSync(path, "utf8").replace(/^\uFEFF/, ""),
    catch: () => bad(name, path, "a file that can be read")
  })
  const json = Either.flatMap(content, (text) =>
    Either.try({
      try: (): unknown => JSON.parse(text),
      catch: () => new UsageError({ detail: `--${name}: ${path} is not JSON, allowed: ${shape}` })
    })
  )
  return Either.flatMap(json, (value) =>
    Either.mapLeft(Schema.decodeUnknownEither(schema, { onExcessProperty })(value), (error) => {
      const issue = ParseResult.ArrayFormatter.formatErrorSync(error)[0]
      const where = issue === undefined || issue.path.length === 0 ? "" : ` (${issue.path.join(".")}: ${issue.message})`
      return new UsageError({ detail: `--${name}: ${path} does not fit${where}, allowed: ${shape}` })
    })
  )
}
