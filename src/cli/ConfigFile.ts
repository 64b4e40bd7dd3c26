/** The user's config file: defaults of options, and variables, both below what is typed and what the environment says. */
import { readFileSync, type Stats, statSync } from "node:fs"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"
import { Either, Option, Predicate, Redacted } from "effect"
import { near } from "./Argv.ts"
import { type Flag, flags } from "./Flags.ts"
import { type Environment, parse, type Request } from "./Parse.ts"
import { UsageError } from "./UsageError.ts"
import type { Read, Typed } from "./Values.ts"

/** What an option may be in the file. */
export type Value = string | number | boolean

export interface ConfigFile {
  /** Where it lies, or would lie. */
  readonly path: string
  readonly exists: boolean
  /** Defaults by option name, in the file's order; empty values left out. */
  readonly options: ReadonlyMap<string, Value>
  /** Keys and addresses, by the names of environment variables; empty ones left out. */
  readonly variables: ReadonlyMap<string, Redacted.Redacted>
  /** Whether others on this machine can read it. */
  readonly exposed: boolean
}

/** Options that are no defaults: they are of one run, or hold a key. */
const excluded = new Set([
  "dataset_file",
  "batch_size",
  "run_name",
  "resume",
  "dry_run",
  "list_distributions",
  "api_key",
  "browser_cdp_url"
])

/** Options that may have a default in the file. */
export const settable: ReadonlyArray<Flag> = flags.filter(({ name }) => !excluded.has(name))

/** A user without a home, as containers have them, is at the root; what is no full path must not lead into the working directory. */
const home = (): string => {
  const found = Either.getOrElse(Either.try(homedir), () => "")
  return isAbsolute(found) ? found : "/"
}

/** `$XDG_CONFIG_HOME`, where it is a full path, else `~/.config`. */
export const pathOf = (environment: Environment): string => {
  const base = environment.XDG_CONFIG_HOME ?? ""
  return join(isAbsolute(base) ? base : join(home(), ".config"), "batch-runner", "config.json")
}

/** Bytes at most: what is longer is another file. */
const most = 2 ** 20

const codeOf = (error: unknown): string => (Predicate.hasProperty(error, "code") ? String(error.code) : String(error))

/** There is none where a path leads nowhere. */
const isMissing = (code: string): boolean => code === "ENOENT" || code === "ENOTDIR"

/** The file of this environment, and nothing where there is none. An error names it and holds none of its values. */
export const read = (environment: Environment): Read<ConfigFile> => {
  const path = pathOf(environment)
  const nothing: ConfigFile = { path, exists: false, options: new Map(), variables: new Map(), exposed: false }
  const bad = (what: string) => Either.left(new UsageError({ detail: `${path}: ${what}` }))
  const found = Either.try({ try: () => statSync(path), catch: codeOf })
  if (Either.isLeft(found)) {
    return isMissing(found.left) ? Either.right(nothing) : bad(`the config file cannot be read (${found.left})`)
  }
  if (!found.right.isFile()) return bad("the config file must be a file, and this is none; remove it")
  if (found.right.size > most) return bad("the config file is larger than 1 MB; correct it")
  const text = Either.try({ try: () => readFileSync(path, "utf8"), catch: codeOf })
  if (Either.isLeft(text)) return bad(`the config file cannot be read (${text.left}); its owner must be you`)
  // The parser's own words would repeat a piece of the file, and with it perhaps of a key.
  const json = Either.try((): unknown => JSON.parse(text.right.replace(/^\uFEFF/, "")))
  if (Either.isLeft(json))
    return bad("the config file is no JSON; correct it, or remove it and run `batch-runner setup`")
  return Either.mapBoth(contentOf(json.right), {
    onLeft: (what) => new UsageError({ detail: `${path}: ${what}` }),
    onRight: (content) => ({ ...nothing, ...content, exists: true, exposed: isExposed(found.right) })
  })
}

const isExposed = ({ mode }: Stats): boolean => process.platform !== "win32" && (mode & 0o077) !== 0

type Content = Pick<ConfigFile, "options" | "variables">

const shape = 'allowed: {"options": {"model": "…"}, "variables": {"OPENROUTER_API_KEY": "…"}}'

/** Options that are mine to set, variables by name; the left is what does not fit. */
const contentOf = (json: unknown): Either.Either<Content, string> =>
  Either.gen(function* () {
    if (!Predicate.isRecord(json) || Array.isArray(json)) return yield* Either.left(`it is no JSON object, ${shape}`)
    const { options = {}, variables = {}, ...others } = json
    const other = Object.keys(others)[0]
    if (other !== undefined) return yield* Either.left(`it has no place for ${JSON.stringify(other)}, ${shape}`)
    const content: Content = {
      options: new Map(yield* entries("options", options, option)),
      variables: new Map(yield* entries("variables", variables, variable))
    }
    return {
      options: new Map([...content.options].filter(([, value]) => String(value).trim() !== "")),
      variables: new Map([...content.variables].filter(([, value]) => Redacted.value(value).trim() !== ""))
    }
  })

const entries = <A>(
  part: string,
  given: unknown,
  entry: (name: string, value: unknown) => Either.Either<readonly [string, A], string>
): Either.Either<ReadonlyArray<readonly [string, A]>, string> =>
  Predicate.isRecord(given) && !Array.isArray(given)
    ? Either.all(Object.entries(given).map(([name, value]) => entry(name, value)))
    : Either.left(`${part} is no JSON object, ${shape}`)

const option = (name: string, value: unknown): Either.Either<readonly [string, Value], string> => {
  const flag = settable.find((each) => each.name === name)
  if (flag === undefined) return Either.left(`options.${name}: ${misplaced(name)}`)
  if (flag.kind === "switch" && !Predicate.isBoolean(value)) {
    return Either.left(`options.${name} is a switch, allowed: true or false`)
  }
  return Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBoolean(value)
    ? Either.right([name, value])
    : Either.left(`options.${name}: allowed: a text, a number, true or false, as --${name} takes it`)
}

const misplaced = (name: string): string => {
  if (name === "api_key") return 'a key stands under "variables", as OPENROUTER_API_KEY or BATCH_RUNNER_API_KEY'
  if (name === "browser_cdp_url") return 'it stands under "variables", as BROWSER_CDP_URL'
  if (excluded.has(name)) return "it belongs to one run; give it on the command line"
  return `there is no such option; ${near(name, settable) ?? "`batch-runner --help` lists all of them"}`
}

const variable = (name: string, value: unknown): Either.Either<readonly [string, Redacted.Redacted], string> => {
  if (!/^[A-Za-z_]\w*$/.test(name)) return Either.left("variables: a name there is none of an environment variable")
  return Predicate.isString(value)
    ? Either.right([name, Redacted.make(value)])
    : Either.left(`variables.${name}: allowed: a text`)
}

/** Its variables as they are looked up. */
export const environmentOf = ({ variables }: Pick<ConfigFile, "variables">): Environment =>
  Object.fromEntries([...variables].map(([name, value]) => [name, Redacted.value(value)]))

/** What was typed, over the defaults of the file; `named` are the options that were. */
export const over = (typed: Typed, named: ReadonlySet<string>, { options }: Pick<ConfigFile, "options">): Typed => ({
  ...typed,
  ...Object.fromEntries(
    [...options].flatMap(([name, value]) => {
      if (named.has(name)) return []
      const isSwitch = settable.some((flag) => flag.name === name && flag.kind === "switch")
      return [[name, isSwitch ? value === true : Option.some(String(value))] as const]
    })
  )
})

/** An error on an option that the file gave says so. */
export const blamed = (error: UsageError, named: ReadonlySet<string>, { path, options }: ConfigFile): UsageError => {
  const [, name = "", rest = ""] = /^--(\w+)(.*)$/s.exec(error.detail) ?? []
  return named.has(name) || !options.has(name)
    ? error
    : new UsageError({ detail: `${path}: options.${name}${rest}; correct it there, or give another --${name}` })
}

/** The request of a command line over the environment and the file. */
export const request = (
  typed: Typed,
  named: ReadonlySet<string>,
  environment: Environment,
  file: ConfigFile
): Read<Request> =>
  Either.mapLeft(parse(over(typed, named, file), environment, environmentOf(file)), (error) =>
    blamed(error, named, file)
  )

/** What to do about a file that others can read. */
export const exposure = ({ path }: ConfigFile): string => `${path} can be read by others: chmod 600 '${path}'`
