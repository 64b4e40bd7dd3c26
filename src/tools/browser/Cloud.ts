/** Services that rent browsers by the minute: a session is asked for, used by its DevTools address, and given back. */
import { Effect, Redacted, Schema, type Scope } from "effect"
import type { Access } from "../net/Access.ts"
import * as Api from "../net/Api.ts"
import * as ToolGateway from "../net/ToolGateway.ts"
import type { Setting } from "../Setting.ts"
import { BrowserError } from "./Source.ts"

/** A service, and a browser of it until the scope closes. */
export interface Rent {
  readonly name: string
  /** The DevTools address, which is a secret. */
  readonly rent: Effect.Effect<Redacted.Redacted, BrowserError, Scope.Scope>
}

const minutes = (seconds: number, most: number): number => Math.max(1, Math.min(most, Math.ceil(seconds / 60)))

const Bought = Schema.Struct({ id: Schema.NonEmptyString, connectUrl: Schema.NonEmptyString })
const Used = Schema.Struct({ id: Schema.NonEmptyString, cdpUrl: Schema.NonEmptyString })

type Given = Pick<Setting, "variables" | "timeout">

/** Browserbase, when there is a key of it. Its sessions end by themselves after the time of a prompt. */
export const browserbase = ({ variables, timeout }: Given, api: Api.Api): Rent | undefined => {
  const secret = variables.secret("BROWSERBASE_API_KEY")
  if (secret === undefined) return undefined
  const projectId = variables.plain("BROWSERBASE_PROJECT_ID")
  const project = projectId === undefined ? {} : { projectId }
  const service = "Browserbase"
  const base = variables.plain("BROWSERBASE_API_URL") ?? "https://api.browserbase.com"
  const key = { header: "x-bb-api-key", secret, name: "BROWSERBASE_API_KEY" }
  const call = (path: string, json: object) => ({ service, key, url: Api.at(base, `/v1/sessions${path}`), json })
  const seconds = Math.max(60, Math.min(21_600, timeout))
  return {
    name: service,
    rent: Effect.map(
      hire(api, { ...call("", { ...project, timeout: seconds }), purchase: {} }, Bought, ({ id }) =>
        call(`/${encodeURIComponent(id)}`, { ...project, status: "REQUEST_RELEASE" })
      ),
      ({ connectUrl }) => Redacted.make(connectUrl)
    )
  }
}

/** Browser Use, when there is a key of it, or a token for the gateway of Nous Research in front of it. */
export const browserUse = ({ variables, timeout }: Given, api: Api.Api): Rent | undefined => {
  const service = "Browser Use"
  const header = "x-browser-use-api-key"
  const secret = variables.secret("BROWSER_USE_API_KEY")
  const own: Access | undefined = secret && {
    service,
    base: variables.plain("BROWSER_USE_API_URL") ?? "https://api.browser-use.com/api/v3",
    key: { header, secret, name: "BROWSER_USE_API_KEY" }
  }
  const access = own ?? ToolGateway.accessOf(variables, "browser-use", service)
  if (access?.key === undefined) return undefined
  const { base, key } = access
  // The gateway takes its token by either header.
  const headers = own === undefined ? { [header]: Redacted.value(key.secret) } : {}
  const call = (path: string, json: object) => ({ service, key, headers, url: Api.at(base, `/browsers${path}`), json })
  const purchase = own === undefined ? { header: ToolGateway.onceHeader } : {}
  return {
    name: service,
    rent: Effect.map(
      hire(api, { ...call("", { timeout: minutes(timeout, 240) }), purchase }, Used, ({ id }) => ({
        ...call(`/${encodeURIComponent(id)}`, { action: "stop" }),
        method: "PATCH"
      })),
      ({ cdpUrl }) => Redacted.make(cdpUrl)
    )
  }
}

/** Bytes of an answer. */
const maxBytes = 1_000_000

const failed = ({ message }: Api.ApiError) => new BrowserError({ detail: message })

/** Only the pauses between tries may be interrupted: what was asked for must be given back. */
const hire = <A, I>(
  api: Api.Api,
  call: Api.Call,
  shape: Schema.Schema<A, I>,
  end: (hired: A) => Api.Call
): Effect.Effect<A, BrowserError, Scope.Scope> =>
  Effect.acquireRelease(
    // The address may hold the key, and stays as it is.
    Effect.flatMap(Effect.mapError(api.bytes({ ...call, maxBytes, tries: 5 }), failed), (bytes) =>
      Effect.mapError(
        Schema.decode(Schema.parseJson(shape))(Buffer.from(bytes).toString("utf8")),
        () => new BrowserError({ detail: `${call.service} answers without the address of a browser` })
      )
    ),
    // One that cannot be given back ends by itself in time.
    (one) => api.bytes(end(one)).pipe(Effect.interruptible, Effect.timeout("15 seconds"), Effect.ignore)
  )
