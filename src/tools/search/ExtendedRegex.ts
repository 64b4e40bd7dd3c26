/** Perl-style patterns, as models write them, in the extended form that every grep knows. */
import { Either } from "effect"

export interface Extended {
  readonly pattern: string
  readonly ignoreCase: boolean
}

const outside: Readonly<Record<string, string>> = {
  d: "[0-9]",
  D: "[^0-9]",
  s: "[[:space:]]",
  S: "[^[:space:]]",
  w: "[[:alnum:]_]",
  W: "[^[:alnum:]_]",
  t: "\t",
  h: "[ \t]"
}
const inBrackets: Readonly<Record<string, string>> = { d: "0-9", s: "[:space:]", w: "[:alnum:]_", t: "\t" }
/** Escapes of letters that extended expressions share with Perl's. */
const shared = "bB"

/** The same pattern as an extended regular expression, or a sentence on what has no such form. */
export const translate = (perl: string): Either.Either<Extended, string> => {
  const ignoreCase = perl.startsWith("(?i)")
  const source = ignoreCase ? perl.slice(4) : perl
  const unknown = (what: string) => Either.left(`the grep of this sandbox knows no ${what}`)
  let pattern = ""
  for (let at = 0; at < source.length; at++) {
    const char = source[at] ?? ""
    const next = source[at + 1] ?? ""
    if (char === "\\") {
      if (next === "") return Either.left("the pattern ends with a backslash")
      if (!/[A-Za-z]/.test(next) || shared.includes(next)) pattern += char + next
      else if (outside[next] !== undefined) pattern += outside[next]
      else return unknown(`\\${next}`)
      at++
    } else if (char === "[") {
      const set = brackets(source, at)
      if (Either.isLeft(set)) return Either.left(set.left)
      pattern += set.right.text
      at = set.right.last
    } else if (source.startsWith("(?:", at)) {
      pattern += "("
      at += 2
    } else if (source.startsWith("(?", at)) return unknown("look-around, named groups or inline options ((?…)")
    else if (/[*+?}]/.test(char) && (next === "?" || next === "+")) return unknown("lazy or possessive quantifiers")
    else pattern += char
  }
  return Either.right({ pattern, ignoreCase })
}

/** The bracket expression that opens at `from`, and the place where it closes. */
const brackets = (
  source: string,
  from: number
): Either.Either<{ readonly text: string; readonly last: number }, string> => {
  const open = source[from + 1] === "^" ? "[^" : "["
  let literal = ""
  let text = ""
  for (let at = from + open.length; at < source.length; at++) {
    const char = source[at] ?? ""
    if (char === "]" && at > from + open.length) {
      // In brackets ] stands first, ^ not first and - last when they mean themselves.
      const close = literal.includes("]") ? "]" : ""
      const rest = ["^", "-"].filter((one) => literal.includes(one)).join("")
      if (open === "[" && close + text === "" && rest.startsWith("^")) {
        return Either.right({ text: rest === "^" ? "\\^" : "[-^]", last: at })
      }
      return Either.right({ text: `${open}${close}${text}${rest}]`, last: at })
    }
    const named = char === "[" ? /^\[:\^?[a-z]+:\]/.exec(source.slice(at, at + 12))?.[0] : undefined
    if (named !== undefined) {
      text += named
      at += named.length - 1
    } else if (char === "\\") {
      const next = source[++at] ?? ""
      if (inBrackets[next] !== undefined) text += inBrackets[next]
      else if (/[A-Za-z]/.test(next)) return Either.left(`the grep of this sandbox knows no \\${next} inside [ ]`)
      else if ("]^-".includes(next)) literal += next
      else text += next
    } else if (char === "]") literal += char
    else text += char
  }
  return Either.left("the pattern has a [ without its ]")
}
