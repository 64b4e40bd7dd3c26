/** The model behind an OpenAI-compatible chat-completions endpoint. */
import { Clock, Duration, Effect, Either, Layer, Option, Predicate, Redacted } from "effect"
import type { OpenAI } from "openai"
import * as Failure from "./Failure.ts"
import { type Answer, type Ask, Model, ModelError, type Request } from "./Model.ts"
import * as RequestBody from "./RequestBody.ts"
import * as Transport from "./Transport.ts"
import * as Wire from "./Wire.ts"

/** Looks up a response's header by its name. */
type Header = (name: string) => string | null | undefined

/** How a call can end without a successful response. */
type Rejection =
  | { readonly _tag: "Status"; readonly status: number; readonly body: unknown; readonly header: Header }
  | { readonly _tag: "Broken"; readonly cause: unknown }
  | { readonly _tag: "TooLate" }

/**
 * A model that asks `request.baseUrl`, once a call: trying again is `Retry`'s. Interrupting a call aborts its HTTP request.
 * Without a key no authorization is sent. Nothing of the `OPENAI_*` environment counts.
 */
export const layer = (request: Request, apiKey: Redacted.Redacted | undefined): Layer.Layer<Model> =>
  Layer.scoped(Model, make(request, apiKey))

const make = Effect.fn("OpenAi.make")(function* (request: Request, apiKey: Redacted.Redacted | undefined) {
  const key = apiKey === undefined ? "" : Redacted.value(apiKey)
  const failures = failuresOf(request, key)
  const transport = yield* Effect.either(
    Effect.flatMap(address(request.baseUrl), (url) =>
      Transport.make(url, {
        accept: "application/json",
        "content-type": "application/json",
        "user-agent": "batch-runner",
        ...(key === "" ? basic(url) : { authorization: `Bearer ${key}` })
      })
    )
  )
  if (Either.isLeft(transport)) {
    return { complete: () => Effect.fail(failures.address) }
  }
  // Loaded here, so that a run that never asks an endpoint does not pay for it.
  const openai = yield* Effect.promise(() => import("openai"))
  // The package reads one variable whatever it is told, OPENAI_CUSTOM_HEADERS, and throws when that is malformed.
  const post = yield* Effect.either(Effect.try(() => poster(openai, request, transport.right)))
  if (Either.isLeft(post)) {
    return { complete: () => Effect.fail(failures.address) }
  }
  const encode = RequestBody.textEncoder(request)
  const complete = (ask: Ask): Effect.Effect<Answer, ModelError> =>
    Either.match(
      bounded(() => encode(ask)),
      {
        onLeft: () => Effect.fail(failures.tooDeep),
        onRight: (body) =>
          post.right(body).pipe(
            Effect.matchEffect({
              onFailure: (rejection) => Effect.flatMap(failures.rejected(rejection), Effect.fail),
              onSuccess: ({ text, header }) =>
                Either.match(
                  bounded(() => Wire.decodeText(ask, text)),
                  {
                    onLeft: () => Effect.fail(failures.tooDeep),
                    onRight: Either.match({
                      onLeft: (problem) => Effect.flatMap(failures.noAnswer(problem, header), Effect.fail),
                      onRight: Effect.succeed
                    })
                  }
                )
            })
          )
      }
    )
  return { complete }
})

/** Answers that are nested thousands of levels deep overflow whatever walks through them. */
const bounded = <A>(walk: () => A): Either.Either<A, unknown> => Either.try(walk)

/** A name and password in the address, where there is no key. */
const basic = ({ username, password }: URL): { readonly authorization?: string } => {
  const plain = (part: string): string =>
    Either.getOrElse(
      Either.try(() => decodeURIComponent(part)),
      () => part
    )
  const pair = `${plain(username)}:${plain(password)}`
  return pair === ":" ? {} : { authorization: `Basic ${Buffer.from(pair).toString("base64")}` }
}

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
  return (body: string): Effect.Effect<{ readonly text: string; readonly header: Header }, Rejection> =>
    Effect.tryPromise({
      try: (signal) =>
        client
          .post("/chat/completions", { body, signal })
          .asResponse()
          .then((response) =>
            response.text().then((text) => ({ text, header: (name: string) => response.headers.get(name) }))
          ),
      catch: (error): Rejection => {
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

/** The errors of one endpoint, each a sentence for people without the key in it. */
const failuresOf = (request: Request, key: string) => {
  const url = Either.getOrUndefined(address(request.baseUrl))
  const host = url?.host ?? request.baseUrl
  const path = url?.pathname ?? ""
  const line = (text: string) => Failure.oneLine(text, key)
  const said = (start: string, words: string) => line(words === "" ? start : `${start}: ${words}`)

  const broken = (cause: unknown): ModelError => {
    const code = Failure.codeOf(cause)
    if (code === "UND_ERR_RES_EXCEEDED_MAX_SIZE" || code.startsWith("Z_") || code === "ERR_BUFFER_TOO_LARGE") {
      const detail = code.startsWith("Z_") ? "is wrongly compressed" : "is larger than 64 MB"
      return new ModelError({ reason: "BadAnswer", detail: line(`The answer of ${host} ${detail}`) })
    }
    if (code === "UND_ERR_INVALID_ARG" || code === "ERR_INVALID_ARG_VALUE" || code === "ERR_INVALID_URL") {
      return new ModelError({
        reason: "BadRequest",
        detail: line(
          `No request to ${host} can be made: its address or the API key has characters that HTTP does not allow`
        )
      })
    }
    return new ModelError({
      reason: "Unreachable",
      detail: said(`No answer from ${host}`, Failure.connectionWords(cause))
    })
  }

  const refused = (rejection: Extract<Rejection, { _tag: "Status" }>, now: number): ModelError => {
    const { status } = rejection
    const location = rejection.header("location") ?? ""
    const hint =
      status >= 300 && status < 400
        ? `the endpoint has moved${location === "" ? "" : ` to ${location}`}: give its new address as base_url`
        : status === 401 && key === ""
          ? "no API key was sent. "
          : ""
    return new ModelError({
      reason: Failure.reasonOf(status),
      detail: said(
        `HTTP ${status} from ${host}${status === 404 ? ` for ${path}` : ""}`,
        hint + (status < 400 ? "" : Failure.words(rejection.body))
      ),
      status,
      ...waiting(rejection.header, now)
    })
  }

  const noAnswer = (problem: Wire.Problem, header: Header, now: number): ModelError =>
    problem._tag === "Malformed"
      ? new ModelError({
          reason: "BadAnswer",
          detail: line(`HTTP 200 from ${host} with ${Failure.words(problem.detail)}`),
          status: 200,
          ...waiting(header, now)
        })
      : new ModelError({
          reason: problem.code === 429 ? "RateLimited" : "Overloaded",
          detail: said(
            `HTTP 200 from ${host} with an error${problem.code === 0 ? "" : ` ${problem.code}`}`,
            Failure.words(problem.error)
          ),
          status: 200,
          ...waiting(header, now)
        })

  const tooLate = () =>
    new ModelError({
      reason: "TimedOut",
      detail: line(`No answer from ${host} within ${Duration.format(request.callLimit)}`)
    })

  return {
    tooDeep: new ModelError({
      reason: "BadRequest",
      detail: line(`An answer of ${host} is nested too deeply to be used`)
    }),
    /** The address or a proxy variable cannot be used. */
    address: new ModelError({
      reason: "BadRequest",
      detail: line(
        `${host} cannot be asked: base_url, a proxy variable or OPENAI_CUSTOM_HEADERS in the environment is malformed`
      )
    }),
    rejected: (rejection: Rejection): Effect.Effect<ModelError> => {
      switch (rejection._tag) {
        case "Status":
          return Effect.map(Clock.currentTimeMillis, (now) => refused(rejection, now))
        case "Broken":
          return Effect.sync(() => broken(rejection.cause))
        case "TooLate":
          return Effect.sync(tooLate)
      }
    },
    noAnswer: (problem: Wire.Problem, header: Header): Effect.Effect<ModelError> =>
      Effect.map(Clock.currentTimeMillis, (now) => noAnswer(problem, header, now))
  }
}

/** The wait that the endpoint asks for, as a field of the error. */
const waiting = (header: Header, now: number): { readonly retryAfter?: Duration.Duration } =>
  Option.match(Failure.retryAfter(header, now), { onNone: () => ({}), onSome: (retryAfter) => ({ retryAfter }) })
