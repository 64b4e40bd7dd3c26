/** The user's own login at a registry, as Docker's configuration or a credential helper keeps it; it never leaves for anywhere else. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { Effect, Either, Option, Redacted, Schema } from "effect"
import { folder, readJson } from "./Endpoint.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** What an engine takes as the login of a pull. */
export interface Login {
  readonly serveraddress: string
  readonly username: string
  readonly password: Redacted.Redacted
  /** Instead of a password. */
  readonly identitytoken: Redacted.Redacted | undefined
}

const Auth = Schema.Struct({
  auth: Schema.optional(Schema.String),
  username: Schema.optional(Schema.String),
  password: Schema.optional(Schema.String),
  identitytoken: Schema.optional(Schema.String)
})

const Config = Schema.Struct({
  auths: Schema.optional(Schema.Record({ key: Schema.String, value: Auth })),
  credsStore: Schema.optional(Schema.String),
  credHelpers: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String }))
})

const Helped = Schema.parseJson(Schema.Struct({ Username: Schema.String, Secret: Schema.String }))

const hub = "https://index.docker.io/v1/"

/** The registry that an image's name names, as logins are filed: Docker's own where it names none. */
export const registryOf = (image: string): string => {
  const first = image.split("/")[0] ?? ""
  const named = image.includes("/") && (/[.:]/.test(first) || first === "localhost")
  return !named || first === "docker.io" || first === "index.docker.io" ? hub : first
}

/** Names under which the login of a registry may be filed. */
const names = (registry: string): ReadonlyArray<string> =>
  registry === hub
    ? [hub, "index.docker.io", "docker.io", "https://index.docker.io"]
    : [registry, `https://${registry}`, `http://${registry}`, `https://${registry}/v1/`, `https://${registry}/v2/`]

const login = (registry: string, username: string, password: string, token: string | undefined): Login => ({
  serveraddress: registry,
  username,
  password: Redacted.make(password),
  identitytoken: token === undefined || token === "" ? undefined : Redacted.make(token)
})

const ofEntry = (registry: string, entry: typeof Auth.Type): Login | undefined => {
  const pair = Buffer.from(entry.auth ?? "", "base64").toString("utf8")
  const colon = pair.indexOf(":")
  const username = colon > 0 ? pair.slice(0, colon) : (entry.username ?? "")
  const password = colon > 0 ? pair.slice(colon + 1) : (entry.password ?? "")
  if (username === "" && entry.identitytoken === undefined) return undefined
  return login(registry, username, password.replace(/\0+$/, ""), entry.identitytoken)
}

/** Milliseconds for a credential helper: it may ask the user's key ring. */
const helperLimit = 30_000

/** Asks a helper program; nothing when it knows nothing, is missing or takes too long. */
const fromHelper = (helper: string, registry: string): Effect.Effect<Login | undefined> =>
  Effect.async((resume) => {
    const done = (text: string) => {
      const found = Option.getOrUndefined(Schema.decodeUnknownOption(Helped)(text))
      if (found === undefined) return resume(Effect.succeed(undefined))
      const token = found.Username === "<token>" ? found.Secret : undefined
      resume(
        Effect.succeed(login(registry, token === undefined ? found.Username : "", token ? "" : found.Secret, token))
      )
    }
    const child = Either.try(() =>
      execFile(`docker-credential-${helper}`, ["get"], { timeout: helperLimit }, (error, stdout) => {
        done(error === null ? stdout : "")
      })
    )
    if (Either.isLeft(child)) return done("")
    child.right.stdin?.on("error", () => {})
    child.right.stdin?.end(registry)
  })

/** The login for an image's registry; undefined when the user has none. */
export const find = (image: string, environment: Environment): Effect.Effect<Login | undefined> =>
  Effect.gen(function* () {
    const registry = registryOf(image)
    const config = readJson(join(folder(environment), "config.json"), Config)
    if (config === undefined) return undefined
    const named = names(registry)
    const helper = named.map((name) => config.credHelpers?.[name]).find((one) => one !== undefined) ?? config.credsStore
    if (helper !== undefined && /^[\w.-]+$/.test(helper)) {
      const found = yield* fromHelper(helper, registry)
      if (found !== undefined) return found
    }
    const entry = named.map((name) => config.auths?.[name]).find((one) => one !== undefined)
    return entry === undefined ? undefined : ofEntry(registry, entry)
  })

/** The login as the engine's header wants it. */
export const header = ({ serveraddress, username, password, identitytoken }: Login) => ({
  serveraddress,
  username,
  password: Redacted.value(password),
  ...(identitytoken !== undefined && { identitytoken: Redacted.value(identitytoken) })
})
