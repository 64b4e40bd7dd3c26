/** Calls of services that the user has a key of: bounded in size and time, tried again where that helps, the key in no word of an error. */
import { Clock, Duration, Effect, Option, Redacted, Schema, type Scope } from "effect"
import * as Failure from "../../model/openai/Failure.ts"
import { ToolFailure } from "../Tool.ts"
import { upTo } from "./Fetch.ts"
import * as Route from "./Route.ts"

/** A service gave no answer that can be used. `message` is for the model. */
export class ApiError extends Schema.TaggedError<ApiError>()("ApiError", {
  detail: Schema.String,
  /** HTTP status; 0 where there was none. */
  status: Schema.optionalWith(Schema.Number, { default: () => 0 })
}) {
  override get message(): string {
    return this.detail
  }
}

/** What the user is known by. */
export interface Key {
  /** Name of the header that carries it. */
  readonly header: string
  /** What stands before it there, such as `Bearer `. */
  readonly before?: string
  readonly secret: Redacted.Redacted
  /** The variables that hold it, for people. */
  readonly name: string
}

export interface Call {
  /** Name of the service, for people. */
  readonly service: string
  readonly url: string
  /** POST where there is a body, GET else. */
  readonly method?: "GET" | "POST"
  readonly headers?: Readonly<Record<string, string>>
  readonly key?: Key | undefined
  /** A body that is sent as JSON. */
  readonly json?: object
  /** Any other body. */
  readonly body?: { readonly bytes: Uint8Array; readonly type: string }
  /** Seconds of one try at most; 30 by default. */
  readonly timeout?: number
  /** Bytes of the answer at most; 8 MB by default. */
  readonly maxBytes?: number
  /** Tries at most, for a call that costs when it fails; 4 by default. */
  readonly tries?: number
}

export interface Answer {
  readonly bytes: Uint8Array
  /** In lower case, without parameters; empty for none. */
  readonly contentType: string
}

export interface Api {
  /** The answer's bytes; fails for every status but those of 200 to 299. */
  readonly bytes: (call: Call) => Effect.Effect<Answer, ApiError>
  /** The answer as the schema reads it, the key left out wherever it stands. */
  readonly json: <A, I>(call: Call, schema: Schema.Schema<A, I>) => Effect.Effect<A, ApiError>
}

/** Seconds to wait between tries at most, all together. */
const patience = 30

const defaults = { timeout: 30, maxBytes: 8_000_000, tries: 4 } as const

/** A failed call as a tool's failure. */
export const toFailure = ({ message }: ApiError): ToolFailure => new ToolFailure({ error: message })

/** A text field of an answer; empty where it is missing or something else. */
export const text = Schema.optionalWith(
  Schema.transform(Schema.Unknown, Schema.String, {
    decode: (value) => (typeof value === "string" ? value : ""),
    encode: (value) => value
  }),
  { default: () => "" }
)

/** `path` below a service's address, whatever path that has itself. */
export const at = (base: string, path: string): string => `${base.replace(/\/+$/, "")}${path}`

/** Addresses of services are the user's own, private ones too. Redirects are not followed: a key goes nowhere else. */
export const make = (options: Pick<Route.Options, "environment"> = {}): Effect.Effect<Api, never, Scope.Scope> =>
  Effect.map(Route.make(options), (route) => {
    const bytes = Effect.fn("Api.bytes")(function* (call: Call) {
      if (!URL.canParse(call.url) || !/^https?:/i.test(call.url)) {
        return yield* new ApiError({ detail: `the address of ${call.service} is no http or https URL` })
      }
      const url = new URL(call.url)
      const way = yield* Effect.mapError(route(url), (detail) => new ApiError({ detail }))
      const { tries = defaults.tries, timeout = defaults.timeout } = call
      for (let count = 1, waited = 0; ; count++) {
        const end = yield* Effect.timeoutTo(once(way, url, call), {
          duration: Duration.seconds(timeout),
          onSuccess: (ended) => ended,
          onTimeout: (): End => ({
            error: new ApiError({ detail: `${call.service} gave no answer within ${timeout} seconds` }),
            wait: undefined
          })
        })
        if ("answer" in end) return end.answer
        const wait = end.wait === "some" ? 2 ** (count - 1) : end.wait
        if (wait === undefined || count >= tries || waited + wait > patience) return yield* end.error
        waited += wait
        yield* Effect.sleep(Duration.seconds(wait))
      }
    })
    return {
      bytes,
      json: (call, schema) =>
        Effect.flatMap(bytes(call), (answer) =>
          Schema.decode(Schema.parseJson(schema))(
            without(
              Buffer.from(answer.bytes)
                .toString("utf8")
                .replace(/^\uFEFF/, ""),
              call
            )
          ).pipe(
            Effect.mapError(
              () => new ApiError({ detail: `${call.service} answered, but not with the JSON that it documents` })
            )
          )
        )
    }
  })

const secret = ({ key }: Call): string => (key === undefined ? "" : Redacted.value(key.secret))

/** A text without the whole key in it: one of a few letters would hit words that have nothing to do with it. */
const without = (said: string, call: Call): string =>
  secret(call).length < 8 ? said : said.replaceAll(secret(call), "***")

type End =
  | { readonly answer: Answer }
  /** Seconds to wait before it is tried again, or as many as for any failure; undefined when that would not help. */
  | { readonly error: ApiError; readonly wait: number | "some" | undefined }

const once = Effect.fnUntraced(function* (way: Route.Way, url: URL, call: Call) {
  const now = yield* Clock.currentTimeMillis
  const { service, key, maxBytes = defaults.maxBytes } = call
  const failed = (words: string, status = 0) => new ApiError({ detail: Failure.oneLine(words, secret(call)), status })
  const exchange = async (signal: AbortSignal): Promise<End> => {
    const type = call.json === undefined ? call.body?.type : "application/json"
    const response = await way.fetch(url, {
      method: call.method ?? (type === undefined ? "GET" : "POST"),
      dispatcher: way.dispatcher,
      redirect: "manual",
      signal,
      headers: {
        ...(type === undefined ? {} : { "content-type": type }),
        ...call.headers,
        ...(key === undefined ? {} : { [key.header]: `${key.before ?? ""}${Redacted.value(key.secret)}` })
      },
      body: call.json === undefined ? (call.body?.bytes ?? null) : JSON.stringify(call.json)
    })
    const { status, headers } = response
    const { bytes, cut } = await upTo(response.body, status < 300 ? maxBytes : 100_000)
    if (status >= 300) {
      const words = Failure.words(parsed(Buffer.from(bytes).toString("utf8")))
      const said = words.trim() === "" ? "" : `: ${words}`
      if (status < 400) {
        const to = headers.get("location") ?? "another address"
        return { error: failed(`${service} has moved to ${to}: its address must be set anew`, status), wait: undefined }
      }
      if (status === 401 || status === 403) {
        const whose = key === undefined ? "wants a key, or refuses this call" : `refuses the key in ${key.name}`
        return { error: failed(`${service} ${whose} (HTTP ${status})${said}`, status), wait: undefined }
      }
      const asked = Failure.retryAfter((name) => headers.get(name), now)
      const wait = Option.isSome(asked) ? Duration.toSeconds(asked.value) : "some"
      if (status === 429) {
        return { error: failed(`${service} takes no more calls now (HTTP 429): try again later${said}`, status), wait }
      }
      return {
        error: failed(`${service} answers HTTP ${status}${said}`, status),
        wait: status >= 500 ? wait : undefined
      }
    }
    if (cut) return { error: failed(`${service} answered with more than ${maxBytes} bytes`, status), wait: undefined }
    const contentType = (headers.get("content-type")?.split(";")[0] ?? "").trim().toLowerCase()
    return { answer: { bytes, contentType } }
  }
  return yield* Effect.catchAll(
    Effect.tryPromise({ try: exchange, catch: (error) => error }),
    (error): Effect.Effect<End> => {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
      // Its words may hold a header's value, with more of the key than can be found again.
      const unsendable = Failure.codeOf(cause) === "" && cause instanceof TypeError
      return Effect.succeed(
        unsendable
          ? {
              error: failed(`${service} cannot be asked: its address or key has characters that HTTP does not allow`),
              wait: undefined
            }
          : { error: failed(`${service} cannot be reached: ${Failure.connectionWords(cause)}`), wait: "some" }
      )
    }
  )
})

/** A body as JSON where it is some. */
const parsed = (body: string): unknown => Option.getOrElse(Schema.decodeOption(Schema.parseJson())(body), () => body)
