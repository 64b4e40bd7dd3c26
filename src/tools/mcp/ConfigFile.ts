/** The file of `--mcp_config`: MCP servers by name, as programs that know MCP spell them. */
import { readFile } from "node:fs/promises"
import { Effect, ParseResult, Predicate, Schema } from "effect"
import type { Variables } from "../Variables.ts"

/** A file that cannot be used. `message` is one line naming the option. */
export class McpConfigError extends Schema.TaggedError<McpConfigError>()("McpConfigError", {
  detail: Schema.String
}) {
  override get message(): string {
    return `--mcp_config: ${this.detail}`
  }
}

/** A program that speaks over its standard input and output. */
export interface Program {
  readonly _tag: "Program"
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  /** Empty for the sandbox's own, or a folder for it alone. */
  readonly cwd: string
  /** True for inside the prompt's sandbox only, false for outside only; undefined for inside where it can. */
  readonly inside: boolean | undefined
}

/** A server that is there already. */
export interface Remote {
  readonly _tag: "Remote"
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** `either` is streamable HTTP, and server-sent events where that is refused. */
  readonly speaks: "http" | "sse" | "either"
}

export interface Server {
  /** Also that of its toolset. */
  readonly name: string
  readonly at: Program | Remote
  /** Variables that it names and that are not set. */
  readonly unset: ReadonlyArray<string>
  /** Seconds that a call may take at most, beside the run's own bound. */
  readonly timeout: number | undefined
  /** The tools to offer, by the server's own names; undefined for all. */
  readonly tools: ReadonlyArray<string> | undefined
  /** Texts that no result, log or file may hold. */
  readonly secrets: ReadonlyArray<string>
}

const texts = Schema.Array(Schema.String)
const Entry = Schema.Struct({
  command: Schema.optional(Schema.NonEmptyString),
  args: Schema.optionalWith(texts, { default: () => [] }),
  env: Schema.optionalWith(
    Schema.Record({
      key: Schema.String,
      value: Schema.Union(Schema.String, Schema.Number, Schema.Boolean)
    }),
    { default: () => ({}) }
  ),
  cwd: Schema.optionalWith(Schema.String, { default: () => "" }),
  sandbox: Schema.optional(Schema.Boolean),
  url: Schema.optional(Schema.String),
  headers: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), { default: () => ({}) }),
  type: Schema.optional(Schema.Literal("stdio", "http", "streamable-http", "streamableHttp", "sse")),
  disabled: Schema.optional(Schema.Boolean),
  timeout: Schema.optional(Schema.Positive),
  tools: Schema.optional(texts),
  allowedTools: Schema.optional(texts)
})
type Entry = typeof Entry.Type

const decode = Schema.decodeUnknown(
  Schema.Struct({ mcpServers: Schema.Record({ key: Schema.String, value: Schema.Unknown }) })
)
const decodeEntry = Schema.decodeUnknown(Entry)
const decodeJson = Schema.decodeUnknown(Schema.parseJson())

const shape = `{"mcpServers": {"name": {"command": "npx", "args": ["…"], "env": {"KEY": "\${KEY}"}, "cwd": "…"}, "other": {"url": "https://…", "headers": {…}}}}`

const nothing = /[\0\r\n]/

/** Servers of the file at `path` that are not switched off, in its order. `taken` are the names of other toolsets. */
export const read = Effect.fn("McpConfig.read")(function* (
  path: string,
  variables: Variables,
  taken: ReadonlyArray<string>
) {
  if (path === "") return []
  const refuse = (what: string) => new McpConfigError({ detail: `${path}${what}` })
  const text = yield* Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: () => new McpConfigError({ detail: `the file ${path} cannot be read; allowed: a JSON file ${shape}` })
  })
  const json = yield* Effect.mapError(decodeJson(text.replace(/^\uFEFF/, "")), () =>
    refuse(` is not JSON; allowed: ${shape}`)
  )
  const { mcpServers } = yield* Effect.mapError(decode(json), () =>
    refuse(`: it has no object mcpServers; allowed: ${shape}`)
  )
  const servers: Array<Server> = []
  for (const [name, given] of Object.entries(mcpServers)) {
    const wrong = (what: string) => refuse(`: mcpServers.${name.slice(0, 100).replace(/\p{C}/gu, "?")}${what}`)
    // What stands there may be a secret: the place is told, not the value.
    const entry = yield* Effect.mapError(decodeEntry(given), (error) => {
      const where = ParseResult.ArrayFormatter.formatErrorSync(error)[0]?.path.join(".") ?? ""
      return wrong(`${where === "" ? "" : `.${where}`} does not fit; allowed: ${shape}`)
    })
    if (entry.disabled === true) continue
    if (!/^[A-Za-z0-9_-]{1,40}$/.test(name)) {
      return yield* wrong(": the name of a server is that of a toolset; allowed: at most 40 letters, digits, _ and -")
    }
    if (taken.includes(name)) {
      return yield* wrong(`: there is a toolset of that name already; allowed: any name but ${taken.join(", ")}`)
    }
    if ((entry.command === undefined) === (entry.url === undefined)) {
      return yield* wrong(": a server has either a command or a url; allowed: one of them")
    }
    const server = serverOf(name, entry, variables)
    if (server === undefined) return yield* wrong(".url is no address; allowed: http://… or https://…")
    if (Predicate.isString(server)) return yield* wrong(server)
    servers.push(server)
  }
  return servers
})

/** The server of an entry; undefined for an address that is none, a text for what else does not fit. */
const serverOf = (name: string, entry: Entry, variables: Variables): Server | string | undefined => {
  const used = new Set<string>()
  const unset = new Set<string>()
  const filled = (text: string): string =>
    text.replaceAll(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, variable: string, other: string | undefined) => {
      const value = variables.plain(variable)
      if (value !== undefined) used.add(value)
      else if (other === undefined) unset.add(variable)
      return value ?? other ?? ""
    })
  const all = (texts: Readonly<Record<string, string | number | boolean>>) =>
    Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, filled(String(value))]))
  const env = all(entry.env)
  const headers = all(entry.headers)
  const args = entry.args.map(filled)
  const command = filled(entry.command ?? "")
  const url = filled(entry.url ?? "")
  if ([command, ...args, ...Object.values(env)].some((text) => text.includes("\0")))
    return ": a text holds a NUL character; allowed: any other"
  if (Object.keys(env).some((key) => !/^[A-Za-z_]\w*$/.test(key))) {
    return ".env: a name is none of a variable; allowed: letters, digits and _"
  }
  if (Object.entries(headers).some(([key, value]) => !/^[\w!#$%&'*+.^`|~-]+$/.test(key) || nothing.test(value))) {
    return '.headers: a name or a value is none of an HTTP header; allowed: {"Name": "value"}'
  }
  const allowed = entry.allowedTools ?? entry.tools
  const common = {
    name,
    timeout: entry.timeout,
    tools: allowed?.includes("*") === true ? undefined : allowed
  }
  if (entry.command !== undefined) {
    const at: Program = { _tag: "Program", command, args, env, cwd: filled(entry.cwd), inside: entry.sandbox }
    return { ...common, at, unset: [...unset], secrets: secretsOf(used, env) }
  }
  // Without its variables it cannot be connected to, and need be no address.
  const address = unset.size > 0 ? "http://unset.invalid" : url
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) return undefined
  const at: Remote = { _tag: "Remote", url: new URL(address), headers, speaks: spoken(entry.type) }
  const inAddress = [at.url.search.slice(1), at.url.password, ...at.url.searchParams.values()]
  return { ...common, at, unset: [...unset], secrets: secretsOf(new Set([...used, ...inAddress]), headers) }
}

const spoken = (type: Entry["type"]): Remote["speaks"] =>
  type === "sse" ? "sse" : type === undefined || type === "stdio" ? "either" : "http"

const secretive = /key|token|secret|passw|auth|credential|cookie/i

/** What came from the environment, and what has the name of a secret; shorter texts would be found everywhere. */
const secretsOf = (used: ReadonlySet<string>, named: Readonly<Record<string, string>>): ReadonlyArray<string> => {
  const values = Object.entries(named).flatMap(([key, value]) =>
    secretive.test(key) ? [value, value.replace(/^\S+\s+/, "")] : []
  )
  // In a result that is JSON they stand as JSON spells them.
  const all = [...used, ...values].flatMap((text) => [text, JSON.stringify(text).slice(1, -1)])
  return [...new Set(all)].filter((text) => text.length >= 6).toSorted((a, b) => b.length - a.length)
}

/** A text without secrets. */
export const masked = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text)

/** What a server says, as a part of one line of ours. */
export const brief = (text: string, { secrets }: Pick<Server, "secrets">): string => {
  const line = masked(text, secrets)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim()
    .toWellFormed()
  return line.length > 300 ? `${line.slice(0, 300)}…`.toWellFormed() : line
}
