/** What `setup` is told, checked, and put over what the config file holds. Pure but for looking whether a path is there. */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Either, Option, Redacted } from "effect"
import * as ConfigFile from "../ConfigFile.ts"
import * as Parse from "../Parse.ts"
import { UsageError } from "../UsageError.ts"
import type { Read, Typed } from "../Values.ts"
import * as Known from "./Known.ts"

/** New values by name; an empty one takes away what is there. */
export interface Change {
  readonly options: ReadonlyMap<string, ConfigFile.Value>
  readonly variables: ReadonlyMap<string, string>
}

export const none: Change = { options: new Map(), variables: new Map() }

/** Both; what the second says counts. */
export const and = (first: Change, second: Change): Change => ({
  options: new Map([...first.options, ...second.options]),
  variables: new Map([...first.variables, ...second.variables])
})

export const options = (given: Readonly<Record<string, ConfigFile.Value | undefined>>): Change => ({
  ...none,
  options: new Map(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  )
})

export const variables = (given: Readonly<Record<string, string | undefined>>): Change => ({
  ...none,
  variables: new Map(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value.trim()] as const]))
  )
})

/** Why a value cannot be that of a variable; the value itself is not told. */
export const misfit = (name: string, value: string): string | undefined => {
  const known = Known.find(name)
  switch (known?.kind) {
    case "key":
      return /[^\x21-\x7e]/.test(value) ? "a key is printable ASCII without blanks" : undefined
    case "address":
      return protocolOf(value, /^https?:$/)
        ? undefined
        : "an http or https address is allowed, such as http://127.0.0.1:8080"
    case "browser address":
      return protocolOf(value, /^(wss?|https?):$/)
        ? undefined
        : "a CDP address is allowed, such as ws://127.0.0.1:9222 or wss://…"
    case "path":
      return existsSync(value) ? undefined : "there is no such file"
    case "text":
    case undefined:
      return /[\r\n]/.test(value) ? "a value is one line" : undefined
  }
}

const protocolOf = (value: string, allowed: RegExp): boolean =>
  URL.canParse(value) && allowed.test(new URL(value).protocol)

/** What was given as options of the command. */
export const ofFlags = (typed: Typed, named: ReadonlySet<string>): Change => {
  const text = (name: string): string => {
    const value = typed[name]
    return typeof value === "object" ? Option.getOrElse(value, () => "") : ""
  }
  const given = ConfigFile.settable.filter(({ name }) => named.has(name))
  return and(
    options(
      Object.fromEntries(given.map(({ name, kind }) => [name, kind === "switch" ? typed[name] === true : text(name)]))
    ),
    variables(
      Object.fromEntries(
        Known.variables.flatMap(({ name }) =>
          named.has(name.toLowerCase()) ? [[name, text(name.toLowerCase())] as const] : []
        )
      )
    )
  )
}

/** The known variables that this environment holds. */
export const ofEnvironment = (environment: Parse.Environment): Change =>
  variables(
    Object.fromEntries(
      Known.variables.flatMap(({ name }) => {
        const value = environment[name]?.trim() ?? ""
        return value === "" ? [] : [[name, value] as const]
      })
    )
  )

/** Options that a run must have, for the check of all others. */
const placeholders: Typed = {
  dataset_file: Option.some("prompts.jsonl"),
  batch_size: Option.some("1"),
  run_name: Option.some("setup")
}

/** What these options of a config file, with those that were typed over them, make of a run. */
export const settings = (file: ConfigFile.ConfigFile, typed: Typed = {}, named: ReadonlySet<string> = new Set()) =>
  Either.mapLeft(Parse.settings(ConfigFile.over({ ...typed, ...placeholders }, named, file)), (error) =>
    ConfigFile.blamed(error, named, file)
  )

/** The file with the change, every value checked; a path is kept whole, as the next run may begin elsewhere. */
export const apply = (file: ConfigFile.ConfigFile, change: Change): Read<ConfigFile.ConfigFile> =>
  Either.gen(function* () {
    for (const [name, value] of change.variables) {
      const why = value === "" ? undefined : misfit(name, value)
      if (why !== undefined) {
        return yield* Either.left(
          new UsageError({ detail: `--${name.toLowerCase()}: what was given does not fit: ${why}` })
        )
      }
    }
    const whole = (name: string, value: string) =>
      Redacted.make(Known.find(name)?.kind === "path" && value !== "" ? resolve(value) : value)
    const all = {
      options: new Map([...file.options, ...change.options]),
      variables: new Map([
        ...file.variables,
        ...[...change.variables].map(([name, value]) => [name, whole(name, value)] as const)
      ])
    }
    const changed: ConfigFile.ConfigFile = {
      ...file,
      options: new Map([...all.options].filter(([, value]) => String(value).trim() !== "")),
      variables: new Map([...all.variables].filter(([, value]) => Redacted.value(value) !== ""))
    }
    // Told as what was typed, where it was.
    const typed = new Set(change.options.keys())
    const asTyped = ConfigFile.over({}, new Set(), { options: changed.options })
    yield* settings(changed, asTyped, typed)
    return changed
  })

/** Whether both would be the same file. */
export const same = (a: ConfigFile.ConfigFile, b: ConfigFile.ConfigFile): boolean =>
  JSON.stringify([...a.options]) === JSON.stringify([...b.options]) &&
  JSON.stringify(ConfigFile.environmentOf(a)) === JSON.stringify(ConfigFile.environmentOf(b))

/** What makes the second file of the first. */
export const between = (before: ConfigFile.ConfigFile, after: ConfigFile.ConfigFile): Change => {
  const plain = (file: ConfigFile.ConfigFile) =>
    new Map([...file.variables].map(([name, value]) => [name, Redacted.value(value)]))
  const changed = <A>(was: ReadonlyMap<string, A>, is: ReadonlyMap<string, A>, gone: A) =>
    new Map(
      [...new Set([...was.keys(), ...is.keys()])]
        .filter((name) => was.get(name) !== is.get(name))
        .map((name) => [name, is.get(name) ?? gone] as const)
    )
  return {
    options: changed<ConfigFile.Value>(before.options, after.options, ""),
    variables: changed(plain(before), plain(after), "")
  }
}
