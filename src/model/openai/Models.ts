/** What an endpoint says of itself while nothing is completed: whether it takes the key, and whether it has the model. */
import { Duration, Effect, Either, Predicate, Redacted } from "effect"
import type { ModelError, Request } from "../Model.ts"
import { credentials } from "../OpenAi.ts"
import * as EndpointErrors from "./EndpointErrors.ts"
import * as Failure from "./Failure.ts"
import * as Transport from "./Transport.ts"

export type Found =
  /** The endpoint lists the model, and so many. */
  | { readonly _tag: "Listed"; readonly models: number }
  /** It lists others only; `near` are some with a similar name. */
  | { readonly _tag: "NotListed"; readonly models: number; readonly near: ReadonlyArray<string> }
  /** It lists nothing that could be compared; `why` is a sentence. */
  | { readonly _tag: "NotTold"; readonly why: string }
  /** No call would succeed; `why` is a sentence. */
  | { readonly _tag: "Trouble"; readonly why: string }

export interface Checked {
  readonly found: Found
  /** All models that the endpoint lists; none where it tells none. */
  readonly ids: ReadonlySet<string>
  /** US dollars that the key may still spend, where the endpoint tells. */
  readonly credit: number | undefined
}

/** The longest wait for an answer. */
const limit = Duration.seconds(20)

/** Bytes of a list of models at most. */
const most = 16 * 2 ** 20

/** Ways to use a model of OpenRouter, which stand behind the id of the model itself. */
const manner = /:(free|nitro|floor|online|extended|thinking|exacto|beta)$/

/** Whether a list holds a model, also in one of those ways. */
export const listed = (ids: ReadonlySet<string>, model: string): boolean => {
  if (ids.has(model)) return true
  const base = model.replace(manner, "")
  return base !== model && listed(ids, base)
}

/** What a list says of a model. */
const foundIn = (ids: ReadonlySet<string>, model: string): Found => {
  if (ids.size === 0) {
    return { _tag: "NotTold", why: "the endpoint has no list of models: key and model not checked" }
  }
  return listed(ids, model)
    ? { _tag: "Listed", models: ids.size }
    : { _tag: "NotListed", models: ids.size, near: similar(ids, model) }
}

/** Ids that share their last part with the model's, or hold it. */
const similar = (ids: ReadonlySet<string>, model: string): ReadonlyArray<string> => {
  const name = (model.replace(manner, "").split("/").at(-1) ?? "").toLowerCase()
  return name === "" ? [] : [...ids].filter((id) => id.toLowerCase().includes(name)).slice(0, 3)
}

/** A list of models, in whichever of the usual shapes; undefined for anything else. */
const entriesOf = (body: unknown): ReadonlyArray<unknown> | undefined => {
  const list = Predicate.isRecord(body) ? (body.data ?? body.models) : body
  return Array.isArray(list) ? list : undefined
}

const idOf = (one: unknown): unknown => (Predicate.isRecord(one) ? (one.id ?? one.name) : one)

const idsOf = (body: unknown): ReadonlySet<string> | undefined => {
  const entries = entriesOf(body)
  return entries && new Set(entries.map(idOf).filter(Predicate.isString))
}

/** What is left of the key's own limit, as OpenRouter tells it. */
const creditOf = (body: unknown): number | undefined => {
  const data = Predicate.isRecord(body) ? body.data : undefined
  const left = Predicate.isRecord(data) ? data.limit_remaining : undefined
  return Predicate.isNumber(left) ? left : undefined
}

/** A failed question: what it means for the calls of a run. */
const meaning = (error: ModelError, key: boolean): Found => {
  const { status, message } = error
  if (status === 401 || status === 403) {
    return { _tag: "Trouble", why: `the ${key ? "key" : "endpoint"} ${key ? "is refused" : "wants a key"}: ${message}` }
  }
  if (status === 429) return { _tag: "NotTold", why: `the endpoint is busy: key and model not checked (${message})` }
  if (status === 402 || status < 400 || (status >= 500 && status !== 501) || status === 408) {
    return { _tag: "Trouble", why: message }
  }
  return { _tag: "NotTold", why: "the endpoint has no list of models: key and model not checked" }
}

/** Asks the endpoint beside its calls, authorized as they are: gives the JSON at a path of its API, undefined for none. */
const asker = (request: Request, apiKey: Redacted.Redacted | undefined, limit: Duration.Duration) => {
  const key = apiKey === undefined ? "" : Redacted.value(apiKey)
  const url = Either.getOrUndefined(Either.try(() => new URL(request.baseUrl)))
  const { authorization, secrets } = credentials(url, key)
  const failures = EndpointErrors.make({ ...request, callLimit: limit }, url, secrets)
  const ask = (path: string) =>
    Effect.gen(function* () {
      if (url === undefined) return yield* failures.address
      const to = new URL(url)
      to.pathname = to.pathname.replace(/\/*$/, path)
      const post = yield* Transport.make(
        to,
        {
          accept: "application/json",
          "user-agent": "batch-runner",
          ...(authorization === undefined ? {} : { authorization })
        },
        { method: "GET", most }
      ).pipe(Effect.mapError(() => failures.address))
      const answer = yield* Effect.tryPromise({
        try: (signal) =>
          post("", signal, Duration.toMillis(limit)).then((response) =>
            response.text().then((text) => ({ response, text }))
          ),
        catch: (error): EndpointErrors.Rejection => {
          const cause = error instanceof Transport.Lost ? error.reason : error
          return cause === Transport.tooLate ? { _tag: "TooLate" } : { _tag: "Broken", cause }
        }
      }).pipe(
        Effect.catchIf(tooLong, () => Effect.succeed(undefined)),
        Effect.catchAll((rejection) => Effect.flatMap(failures.rejected(rejection), Effect.fail))
      )
      if (answer === undefined) return undefined
      const { response, text } = answer
      const json = Either.try((): unknown => JSON.parse(text))
      if (response.status >= 200 && response.status < 300) return Either.getOrUndefined(json)
      const body = Either.getOrElse(json, (): unknown => text)
      const header = (name: string) => response.headers.get(name)
      return yield* Effect.flatMap(
        failures.rejected({ _tag: "Status", status: response.status, body, header }),
        Effect.fail
      )
    })
  return { ask, url, keyed: authorization !== undefined }
}

/** Asks for the list of models as calls are authorized, and OpenRouter for the key besides: its list needs none. */
export const check = (request: Request, apiKey: Redacted.Redacted | undefined): Effect.Effect<Checked> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ask, url, keyed } = asker(request, apiKey, limit)
      const models = Effect.map(ask("/models"), (body) => {
        const ids = idsOf(body) ?? new Set<string>()
        return { ids, found: foundIn(ids, request.model) }
      }).pipe(Effect.catchAll((error) => Effect.succeed({ ids: new Set<string>(), found: meaning(error, keyed) })))
      const asksKey = keyed && url !== undefined && /(^|\.)openrouter\.ai$/.test(url.hostname)
      const purse = asksKey ? Effect.either(ask("/key")) : Effect.succeed(undefined)
      const [{ found, ids }, told] = yield* Effect.all([models, purse], { concurrency: 2 })
      const refusal = told?._tag === "Left" ? meaning(told.left, keyed) : undefined
      const checked: Checked = {
        found: refusal?._tag === "Trouble" && found._tag !== "Trouble" ? refusal : found,
        ids,
        credit: told?._tag === "Right" ? creditOf(told.right) : undefined
      }
      return checked
    })
  )

/** Whether the endpoint lists the model as one that takes images; it has `limit` to say so, and false stands for all that is not told. */
export const takesImages = (
  request: Request,
  apiKey: Redacted.Redacted | undefined,
  limit: Duration.Duration
): Effect.Effect<boolean> =>
  Effect.scoped(asker(request, apiKey, limit).ask("/models")).pipe(
    Effect.map((body) => seeing(body, request.model)),
    Effect.orElseSucceed(() => false)
  )

const seeing = (body: unknown, model: string): boolean => {
  const found = entriesOf(body)?.find((one) => idOf(one) === model)
  if (found !== undefined) return isSeeing(found)
  const base = model.replace(manner, "")
  return base !== model && seeing(body, base)
}

/** As OpenRouter and those like it say it; llama.cpp and Ollama; Mistral; LM Studio. */
const isSeeing = (entry: unknown): boolean => {
  if (!Predicate.isRecord(entry)) return false
  const { architecture, capabilities } = entry
  const inputs = Predicate.isRecord(architecture) ? architecture.input_modalities : entry.input_modalities
  return (
    (Array.isArray(inputs) && inputs.includes("image")) ||
    (Array.isArray(capabilities) && capabilities.some((one) => one === "vision" || one === "multimodal")) ||
    (Predicate.isRecord(capabilities) && capabilities.vision === true) ||
    entry.type === "vlm"
  )
}

/** An answer beyond `most` is no list that we know of. */
const tooLong = (rejection: EndpointErrors.Rejection): boolean =>
  rejection._tag === "Broken" && Failure.codeOf(rejection.cause) === "UND_ERR_RES_EXCEEDED_MAX_SIZE"
