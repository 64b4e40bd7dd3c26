/** Services that rent browsers by the minute: a session is asked for, used by its DevTools address, and given back. */
import { Duration, Effect, Random, Redacted, Schedule, Schema, type Scope } from "effect"
import type { Setting } from "../Setting.ts"
import { BrowserError } from "./Source.ts"

/** A service, and a browser of it until the scope closes. */
export interface Rent {
  readonly name: string
  /** The DevTools address, which is a secret. */
  readonly rent: Effect.Effect<Redacted.Redacted, BrowserError, Scope.Scope>
}

const minutes = (seconds: number, most: number): number => Math.max(1, Math.min(most, Math.ceil(seconds / 60)))

const base = (url: string): string => url.replace(/\/+$/, "")

const Bought = Schema.Struct({ id: Schema.NonEmptyString, connectUrl: Schema.NonEmptyString })
const Used = Schema.Struct({ id: Schema.NonEmptyString, cdpUrl: Schema.NonEmptyString })

/** Browserbase, when there is a key of it. Its sessions end by themselves after the time of a prompt. */
export const browserbase = ({ variables, timeout }: Setting): Rent | undefined => {
  const key = variables.secret("BROWSERBASE_API_KEY")
  if (key === undefined) return undefined
  const projectId = variables.plain("BROWSERBASE_PROJECT_ID")
  const project = projectId === undefined ? {} : { projectId }
  const url = `${base(variables.plain("BROWSERBASE_API_URL") ?? "https://api.browserbase.com")}/v1/sessions`
  const service: Service = { name: "Browserbase", headers: () => ({ "x-bb-api-key": Redacted.value(key) }), key }
  const seconds = Math.max(60, Math.min(21_600, timeout))
  return {
    name: service.name,
    rent: Effect.map(
      hire(service, url, { ...project, timeout: seconds }, Bought, ({ id }) =>
        ask(service, "", "POST", `${url}/${encodeURIComponent(id)}`, { ...project, status: "REQUEST_RELEASE" })
      ),
      ({ connectUrl }) => Redacted.make(connectUrl)
    )
  }
}

/** Browser Use, when there is a key of it, or a token for the gateway of Nous Research in front of it. */
export const browserUse = ({ variables, timeout }: Setting): Rent | undefined => {
  const own = variables.secret("BROWSER_USE_API_KEY")
  const key = own ?? variables.secret("TOOL_GATEWAY_USER_TOKEN")
  if (key === undefined) return undefined
  const domain = variables.plain("TOOL_GATEWAY_DOMAIN") ?? "nousresearch.com"
  const address =
    own === undefined
      ? (variables.plain("BROWSER_USE_GATEWAY_URL") ?? `https://browser-use-gateway.${domain}`)
      : (variables.plain("BROWSER_USE_API_URL") ?? "https://api.browser-use.com/api/v3")
  const url = `${base(address)}/browsers`
  const service: Service = {
    name: "Browser Use",
    key,
    headers: (once) => ({
      "x-browser-use-api-key": Redacted.value(key),
      ...(own === undefined && { authorization: `Bearer ${Redacted.value(key)}`, "x-idempotency-key": once })
    })
  }
  return {
    name: service.name,
    rent: Effect.map(
      hire(service, url, { timeout: minutes(timeout, 240) }, Used, ({ id }) =>
        ask(service, "", "PATCH", `${url}/${encodeURIComponent(id)}`, { action: "stop" })
      ),
      ({ cdpUrl }) => Redacted.make(cdpUrl)
    )
  }
}

interface Service {
  readonly name: string
  readonly key: Redacted.Redacted
  /** `once` names the call, so that a second try buys no second browser. */
  readonly headers: (once: string) => Readonly<Record<string, string>>
}

/** Bytes of an answer. */
const answerBytes = 1_000_000

class Busy extends Schema.TaggedError<Busy>()("Busy", { detail: Schema.String }) {}

const ask = Effect.fnUntraced(function* (
  { name, headers, key }: Service,
  once: string,
  method: "POST" | "PATCH",
  url: string,
  body: object
) {
  const { fetch } = yield* Effect.promise(() => import("../net/Undici.ts"))
  const broken = () => new BrowserError({ detail: `${name} cannot be reached` })
  const answer = yield* Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, {
        method,
        headers: { ...headers(once), "content-type": "application/json" },
        body: JSON.stringify(body),
        redirect: "error",
        signal
      })
      const chunks: Array<Uint8Array> = []
      let size = 0
      for await (const chunk of response.body ?? []) {
        chunks.push(chunk)
        size += chunk.length
        if (size > answerBytes) break
      }
      return { status: response.status, text: Buffer.concat(chunks).toString("utf8") }
    },
    catch: broken
  }).pipe(Effect.timeoutFail({ duration: Duration.seconds(30), onTimeout: broken }))
  if (answer.status < 400) return answer.text
  const said = answer.text.replaceAll(Redacted.value(key), "…").replace(/\s+/g, " ").slice(0, 200)
  const detail = `${name} answers HTTP ${answer.status}: ${said}`
  return yield* answer.status === 429 || answer.status === 503 ? new Busy({ detail }) : new BrowserError({ detail })
})

const pauses = Schedule.intersect(Schedule.exponential(Duration.seconds(1), 2), Schedule.recurs(4))

/** Only the pauses between tries may be interrupted: what was asked for must be given back. */
const hire = Effect.fnUntraced(function* <A, I, E>(
  service: Service,
  url: string,
  body: object,
  shape: Schema.Schema<A, I>,
  end: (hired: A) => Effect.Effect<unknown, E>
) {
  const once = `batch-runner-${yield* Random.nextInt}-${yield* Random.nextInt}`
  const hired = Effect.flatMap(ask(service, once, "POST", url, body), (text) =>
    Effect.mapError(
      Schema.decodeUnknown(Schema.parseJson(shape))(text),
      () => new BrowserError({ detail: `${service.name} answers without the address of a browser` })
    )
  )
  // One that cannot be given back ends by itself in time.
  const given = (one: A) => Effect.ignore(Effect.timeout(end(one), Duration.seconds(15)))
  return yield* Effect.acquireRelease(hired, given).pipe(
    Effect.retry({ schedule: pauses, while: ({ _tag }) => _tag === "Busy" }),
    Effect.catchTag("Busy", ({ detail }) => new BrowserError({ detail }))
  )
})
