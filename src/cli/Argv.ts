/** What was typed, in the one spelling that the command's parser knows: `--name` and `=value` apart, each option once. */
import { Either, Option } from "effect"
import { type Flag, flags } from "./Flags.ts"
import { UsageError } from "./UsageError.ts"
import type { Typed } from "./Values.ts"

/** Options of the parser itself; they are left as they are. */
const builtIn = new Set(["--completions"])

/** Questions that are answered in place of a run, wherever they stand. */
const asked = new Set(["--help", "-h", "--version"])

const truths = new Map([
  ["true", true],
  ["1", true],
  ["yes", true],
  ["on", true],
  ["false", false],
  ["0", false],
  ["no", false],
  ["off", false]
])

/** Stands before a value, so that no value looks like an option. */
export const valueMark = "="

/** What stands behind the name of a switch that is off: it may be on by the user's own defaults. */
const off = "=false"

const bad = (detail: string) => Either.left(new UsageError({ detail }))

/** As much of what was typed as helps to find it. */
const shown = (typed: string): string => (typed.length > 100 ? `${typed.slice(0, 100)}…` : typed)

/** Underscores and dashes, `--name=value` and `--name value`; given twice, the last one counts. `known` are the options there are. */
export const normalize = (
  argv: ReadonlyArray<string>,
  known: ReadonlyArray<Flag> = flags
): Either.Either<ReadonlyArray<string>, UsageError> => {
  const given = new Map<string, string | boolean>()
  for (let at = 0; at < argv.length; at++) {
    const token = argv[at] ?? ""
    const [head = "", ...rest] = token.split("=")
    if (known === flags && builtIn.has(head)) return Either.right(argv)
    if (asked.has(token)) return Either.right([token])
    if (!token.startsWith("--")) {
      return bad(`unexpected ${JSON.stringify(shown(token))}: options are written --name=value or --name value`)
    }
    const name = head.slice(2).replaceAll("-", "_")
    const flag = known.find((each) => each.name === name)
    if (flag === undefined)
      return bad(`${shown(head)} is not an option; ${near(name, known, "--") ?? "--help lists all of them"}`)
    const inline = rest.length > 0 ? rest.join("=") : undefined
    const follower = argv[at + 1]
    if (flag.kind === "switch") {
      const taken = inline ?? (follower !== undefined && truths.has(follower.toLowerCase()) ? follower : undefined)
      if (inline === undefined && taken !== undefined) at++
      const on = taken === undefined ? true : truths.get(taken.toLowerCase())
      if (on === undefined)
        return bad(`--${name}: given ${JSON.stringify(shown(taken ?? ""))}, allowed: true or false, or no value`)
      given.set(name, on)
      continue
    }
    if (inline === undefined && (follower === undefined || isOption(follower, known))) {
      return bad(`--${name} needs a value: --${name}=<${flag.takes}>`)
    }
    if (inline === undefined) at++
    given.set(name, inline ?? follower ?? "")
  }
  return Either.right(
    [...given].flatMap(([name, value]) => {
      if (value === true) return [`--${name}`]
      return value === false ? [`--${name}${off}`] : [`--${name}`, `${valueMark}${value}`]
    })
  )
}

/** Names of the options in normalized tokens, those of switches that are off among them. */
export const named = (tokens: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(tokens.flatMap((token) => (token.startsWith("--") ? [nameOf(token)] : [])))

/** The values in normalized tokens of these options, as the command's parser would hand them over. */
export const typed = (tokens: ReadonlyArray<string>, known: ReadonlyArray<Flag>): Typed =>
  Object.fromEntries(
    known.map(({ name, kind }) => {
      const at = tokens.indexOf(`--${name}`)
      const value = Option.fromNullable(at < 0 ? undefined : tokens[at + 1]?.slice(valueMark.length))
      return [name, kind === "switch" ? at >= 0 : value]
    })
  )

/** Options whose values stand in no log; what stands for them no shell takes for a value. */
const withheld = new Set(["api_key", "browser_cdp_url", "ephemeral_system_prompt"])

/** An address with a password or a query, which may hold a key. */
const secretive = /^https?:\/\/([^/?#]*@|[^?]*\?)/i

/** The command line that goes on with the run that was started by these normalized tokens. */
export const resuming = (tokens: ReadonlyArray<string>): string => {
  const words: Array<string> = []
  for (let at = 0; at < tokens.length; at++) {
    const option = tokens[at] ?? ""
    const follower = tokens[at + 1]
    const value = follower?.startsWith(valueMark) ? follower.slice(valueMark.length) : undefined
    if (value !== undefined) at++
    if (option === "--resume" || option === `--resume${off}` || option === "--api_key") continue
    words.push(
      value === undefined
        ? option
        : `${option}=${withheld.has(option.slice(2)) || secretive.test(value) ? "<as before>" : quoted(value)}`
    )
  }
  return ["batch-runner", ...words, "--resume"].join(" ")
}

/** A word as a shell takes it. */
const quoted = (value: string): string => (/^[\w./@:,+-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`)

const nameOf = (token: string): string => (token.split("=")[0] ?? "").slice(2).replaceAll("-", "_")

/** Whether a token that could be a value is one of our options instead. */
const isOption = (token: string, known: ReadonlyArray<Flag>): boolean =>
  token.startsWith("--") && known.some(({ name }) => name === nameOf(token))

/** The known name that was meant most likely, as a question. */
export const near = (name: string, known: ReadonlyArray<Pick<Flag, "name">>, mark = ""): string | undefined => {
  const nearest = known
    .map((flag) => ({ flag, distance: distance(flag.name, name.slice(0, 100)) }))
    .sort((a, b) => a.distance - b.distance)[0]
  return nearest !== undefined && nearest.distance <= Math.min(3, name.length / 2)
    ? `did you mean ${mark}${nearest.flag.name}?`
    : undefined
}

/** Single-letter changes between two names. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + change))
    }
    row = next
  }
  return row[b.length] ?? 0
}
