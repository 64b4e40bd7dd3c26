/** What a run that begins here and now would be made of, as far as it can be told: what is wrong is kept, not thrown. */
import { Effect, Either, type Redacted } from "effect"
import * as OpenAi from "../../model/OpenAi.ts"
import * as Failure from "../../model/openai/Failure.ts"
import type { Settings } from "../../RunConfig.ts"
import type { Variables } from "../../tools/Variables.ts"
import * as ConfigFile from "../ConfigFile.ts"
import * as Key from "../Key.ts"
import * as Parse from "../Parse.ts"
import type { UsageError } from "../UsageError.ts"
import { filled, type Read, type Typed } from "../Values.ts"
import * as Change from "./Change.ts"
import * as Known from "./Known.ts"

export interface Here {
  readonly config: Settings
  readonly variables: Variables
  /** The key of the endpoint, or why there is none. */
  readonly key: Either.Either<Redacted.Redacted | undefined, UsageError>
  /** The variable that holds the key, and where that stands; undefined when it was typed, or there is none. */
  readonly keyFrom: string | undefined
  /** A text without any key that is known here. */
  readonly hush: (text: string) => string
}

/** What was typed, over the environment and the file. */
export const make = (
  typed: Typed,
  named: ReadonlySet<string>,
  environment: Parse.Environment,
  file: ConfigFile.ConfigFile
): Read<Here> =>
  Either.gen(function* () {
    const config = yield* Change.settings(file, typed, named)
    const stored = ConfigFile.environmentOf(file)
    const variables = yield* Parse.variablesOf(typed, environment, stored)
    const names = Key.names(config.base_url, variables)
    const set = (source: Parse.Environment) => names.find((name) => (source[name]?.trim() ?? "") !== "")
    const [outside, inside] = [set(environment), set(stored)]
    const inFile = inside === undefined ? undefined : `${inside} (config file)`
    return {
      config,
      variables,
      key: Key.find(typed, config, variables),
      keyFrom: named.has("api_key") ? undefined : outside === undefined ? inFile : `${outside} (environment)`,
      hush: hushing([
        ...Known.variables.flatMap(({ name, kind }) =>
          [variables.plain(name), environment[name], stored[name]].flatMap((value = "") =>
            secretsOf(kind, value.trim())
          )
        ),
        ...secretsOf("key", filled(typed, "api_key") ?? ""),
        ...secretsOf("address", config.base_url)
      ])
    }
  })

/** Characters of what is taken for a secret at least: hiding less would spoil every word. */
const secretFrom = 6

/** Whatever another program says becomes one line without any key. */
const hushing = (all: ReadonlyArray<string>) => {
  const secrets = [...new Set(all)].filter((secret) => secret.length >= secretFrom)
  return (text: string) =>
    Failure.oneLine(
      secrets.reduce((shown, one) => Failure.withoutKey(shown, one), text),
      ""
    )
}

/** Of an address, what may be a key in it. */
const secretsOf = (kind: Known.Kind, value: string): ReadonlyArray<string> => {
  if (kind === "key") return [value]
  if (!kind.endsWith("address") || !URL.canParse(value)) return []
  const url = new URL(value)
  return [url.search, url.password, ...OpenAi.credentials(url, "").secrets]
}

/** The request that tools are made from; an endpoint without its key is one that they are refused by. */
export const request = ({ config, variables, key }: Here): Parse.Request => ({
  config,
  variables,
  apiKey: Either.getOrElse(key, () => undefined)
})

/** Within so many seconds; what takes longer is given up. */
export const within =
  <B>(seconds: number, otherwise: B) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A | B, E, R> =>
    Effect.timeoutTo(Effect.disconnect(effect), {
      duration: `${seconds} seconds`,
      onSuccess: (value): A | B => value,
      onTimeout: () => otherwise
    })
