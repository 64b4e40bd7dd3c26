/** The model behind an OpenAI-compatible chat-completions endpoint. */
import { Clock, Duration, Effect, Either, Layer, Predicate, Redacted } from "effect"
import type { OpenAI } from "openai"
import * as Aside from "./Aside.ts"
import { type Answer, type Ask, Model, type ModelError, type Request } from "./Model.ts"
import * as EndpointErrors from "./openai/EndpointErrors.ts"
import * as RateLimits from "./openai/RateLimits.ts"
import * as RequestBody from "./openai/RequestBody.ts"
import * as Transport from "./openai/Transport.ts"
import * as Wire from "./openai/Wire.ts"
import * as Prices from "./Prices.ts"

/**
 * A model that asks `request.baseUrl`, once a call: trying again is `Retry`'s. Interrupting a call aborts its HTTP request.
 * Without a key no authorization is sent. Nothing of the `OPENAI_*` environment counts.
 */
export const layer = (request: Request, apiKey: Redacted.Redacted | undefined): Layer.Layer<Model> =>
  Layer.scoped(Model, make(request, apiKey))

const make = Effect.fn("OpenAi.make")(function* (request: Request, apiKey: Redacted.Redacted | undefined) {
  const key = apiKey === undefined ? "" : Redacted.value(apiKey)
  const url = address(request.baseUrl)
  const { authorization, secrets } = credentials(Either.getOrUndefined(url), key)
  const partsOf = (of: Request) => ({
    failures: EndpointErrors.make(of, Either.getOrUndefined(url), secrets),
    price: Prices.priceOf(of)
  })
  const own = partsOf(request)
  const transport = yield* Effect.either(
    Effect.flatMap(url, (to) =>
      Transport.make(to, {
        accept: "application/json",
        "content-type": "application/json",
        "user-agent": "batch-runner",
        ...(authorization === undefined ? {} : { authorization })
      })
    )
  )
  if (Either.isLeft(transport)) {
    return { complete: () => Effect.fail(own.failures.address) }
  }
  // Loaded here, so that a run that never asks an endpoint does not pay for it.
  const openai = yield* Effect.promise(() => import("openai"))
  // The package reads one variable whatever it is told, OPENAI_CUSTOM_HEADERS, and throws when that is malformed.
  const post = yield* Effect.either(Effect.try(() => poster(openai, request, transport.right)))
  if (Either.isLeft(post)) {
    return { complete: () => Effect.fail(own.failures.address) }
  }
  const encode = RequestBody.textEncoder(request)
  const complete = (ask: Ask): Effect.Effect<Answer, ModelError> => {
    const { failures, price } = Aside.isElsewhere(ask) ? partsOf(Aside.requestOf(request, ask)) : own
    return Either.match(
      bounded(() => encode(ask)),
      {
        onLeft: () => Effect.fail(failures.tooDeep),
        onRight: (body) =>
          post.right(body).pipe(
            Effect.matchEffect({
              onFailure: (rejection) => Effect.flatMap(failures.rejected(rejection), Effect.fail),
              onSuccess: ({ text, header }) =>
                Either.match(
                  bounded(() => Wire.decodeText(ask, text, price)),
                  {
                    onLeft: () => Effect.fail(failures.tooDeep),
                    onRight: Either.match({
                      onLeft: (problem) => Effect.flatMap(failures.noAnswer(problem, header), Effect.fail),
                      onRight: (answer) => limited(answer, header)
                    })
                  }
                )
            })
          )
      }
    )
  }
  return { complete }
})

/** The answer with what its headers say is left of the endpoint's limits. */
const limited = (answer: Answer, header: EndpointErrors.Header): Effect.Effect<Answer> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const limits = RateLimits.read(header, now)
    return limits.length === 0 ? answer : { ...answer, limits }
  })

/** Answers that are nested thousands of levels deep overflow whatever walks through them. */
const bounded = <A>(walk: () => A): Either.Either<A, unknown> => Either.try(walk)

export interface Credentials {
  readonly authorization: string | undefined
  /** What of it no message may show. */
  readonly secrets: ReadonlyArray<string>
}

/** The key, else a name and password in the address, else nothing. */
export const credentials = (url: URL | undefined, key: string): Credentials => {
  const inQuery = url === undefined ? [] : secretsInQuery(url)
  if (key !== "") return { authorization: `Bearer ${key}`, secrets: [key, ...inQuery] }
  const [name = "", password = ""] = [url?.username, url?.password].map((part = "") =>
    Either.getOrElse(
      Either.try(() => decodeURIComponent(part)),
      () => part
    )
  )
  if (name === "" && password === "") return { authorization: undefined, secrets: inQuery }
  const pair = Buffer.from(`${name}:${password}`).toString("base64")
  return { authorization: `Basic ${pair}`, secrets: [pair, password || name, ...inQuery] }
}

/** Values of a query that may be keys: by their names, or as they are too long for anything else, such as a version. */
const secretsInQuery = ({ searchParams }: URL): ReadonlyArray<string> =>
  [...searchParams].flatMap(([name, value]) =>
    value.length >= 16 || (value.length >= 6 && /key|token|secret|sig|auth|pass|code/i.test(name))
      ? [...new Set([value, encodeURIComponent(value)])]
      : []
  )

const address = (baseUrl: string) =>
  Either.try(() => {
    const url = new URL(baseUrl)
    url.pathname = url.pathname.replace(/\/*$/, "/chat/completions")
    return url
  })

/** Posts a body through the package's client and gives the text and the headers of a successful response. */
const poster = (openai: typeof import("openai"), request: Request, post: Transport.Post) => {
  const { baseUrl: url, callLimit } = request
  const timeout = Math.max(1, Math.min(2 ** 31 - 1, Math.ceil(Duration.toMillis(callLimit))))
  const headers = new Headers()
  class Client extends openai.OpenAI {
    // Our bodies are texts and our headers are the transport's: what the package works out anew for each call is known.
    override buildRequest({ body, signal }: Parameters<OpenAI["buildRequest"]>[0]): ReturnType<OpenAI["buildRequest"]> {
      const text = typeof body === "string" ? body : JSON.stringify(body)
      return Promise.resolve({ req: { method: "POST", headers, body: text, signal: signal ?? null }, url, timeout })
    }
    override fetchWithTimeout(
      ...[, init, limit]: Parameters<OpenAI["fetchWithTimeout"]>
    ): ReturnType<OpenAI["fetchWithTimeout"]> {
      return post(typeof init?.body === "string" ? init.body : "", init?.signal ?? null, limit)
    }
    // The package's own keeps only what stands under `error`; other servers put their words elsewhere.
    protected override makeStatusError(
      ...[status, body, text, headers]: Parameters<OpenAI["makeStatusError"]>
    ): ReturnType<OpenAI["makeStatusError"]> {
      return new openai.APIError(status, body ?? { message: text ?? "" }, undefined, headers)
    }
  }
  const client = new Client({
    baseURL: request.baseUrl,
    // The transport sets the key: the client never knows it.
    apiKey: "unused",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    maxRetries: 0,
    logLevel: "off"
  })
  return (
    body: string
  ): Effect.Effect<{ readonly text: string; readonly header: EndpointErrors.Header }, EndpointErrors.Rejection> =>
    Effect.tryPromise({
      try: (signal) =>
        client
          .post("/chat/completions", { body, signal })
          .asResponse()
          .then((response) =>
            response.text().then((text) => ({ text, header: (name: string) => response.headers.get(name) }))
          ),
      catch: (error): EndpointErrors.Rejection => {
        if (error instanceof openai.APIError && error.status !== undefined) {
          return { _tag: "Status", status: error.status, body: error.error, header: (name) => error.headers?.get(name) }
        }
        const cause = reasonOf(error)
        return cause === Transport.tooLate ? { _tag: "TooLate" } : { _tag: "Broken", cause }
      }
    })
}

const reasonOf = (error: unknown): unknown => {
  const cause = Predicate.isError(error) ? error.cause : undefined
  return cause instanceof Transport.Lost ? cause.reason : error
}
