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

/** The ids of a list of models, in whichever of the usual shapes; undefined for anything else. */
const idsOf = (body: unknown): ReadonlySet<string> | undefined => {
  const list = Predicate.isRecord(body) ? (body.data ?? body.models) : body
  if (!Array.isArray(list)) return undefined
  const ids = list.flatMap((one: unknown) => {
    const id = Predicate.isRecord(one) ? (one.id ?? one.name) : one
    return Predicate.isString(id) ? [id] : []
  })
  return new Set(ids)
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

/** Asks for the list of models as calls are authorized, and OpenRouter for the key besides: its list needs none. */
export const check = (request: Request, apiKey: Redacted.Redacted | undefined): Effect.Effect<Checked> =>
  Effect.scoped(
    Effect.gen(function* () {
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

      const keyed = authorization !== undefined
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

/** An answer beyond `most` is no list that we know of. */
const tooLong = (rejection: EndpointErrors.Rejection): boolean =>
  rejection._tag === "Broken" && Failure.codeOf(rejection.cause) === "UND_ERR_RES_EXCEEDED_MAX_SIZE"
