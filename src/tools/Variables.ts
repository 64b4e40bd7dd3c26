/** What the user has of services outside: addresses and keys, by the names of environment variables. */
import { Redacted } from "effect"

export interface Variables {
  /** The value of the first name that has one, in the first source that has any; a blank one counts as not set. */
  readonly secret: (...names: ReadonlyArray<string>) => Redacted.Redacted | undefined
  /** The same in plain text, for what is no secret: an address, a path. */
  readonly plain: (...names: ReadonlyArray<string>) => string | undefined
}

/** Values from several sources: the first source that has one of the names wins, and in it the first name. */
export const from = (...sources: ReadonlyArray<Readonly<Record<string, string | undefined>>>): Variables => {
  const plain = (...names: ReadonlyArray<string>): string | undefined => {
    for (const source of sources) {
      for (const name of names) {
        const value = source[name]?.trim() ?? ""
        if (value !== "") return value
      }
    }
    return undefined
  }
  return {
    plain,
    secret: (...names) => {
      const value = plain(...names)
      return value === undefined ? undefined : Redacted.make(value)
    }
  }
}

/** Nothing is set. */
export const none: Variables = from()
