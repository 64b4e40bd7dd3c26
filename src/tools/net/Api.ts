/** Calls of services that the user has a key of: bounded in size and time, tried again where that helps, the key in no word of an error. */
import { Clock, Duration, Effect, Fiber, Option, Random, Redacted, Schema, type Scope } from "effect"
import * as OpenAi from "../../model/OpenAi.ts"
import * as Failure from "../../model/openai/Failure.ts"
import * as Retry from "../../model/Retry.ts"
import { ToolFailure } from "../Tool.ts"
import { upTo } from "./Fetch.ts"
import * as Reply from "./Reply.ts"
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
  /** The variables that hold it, for people; none for the key of the run's endpoint. */
  readonly name?: string
}

export interface Call {
  /** Name of the service, for people. */
  readonly service: string
  readonly url: string
  /** POST where there is a body, GET else. */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH"
  readonly headers?: Readonly<Record<string, string>>
  readonly key?: Key | undefined
  /** What no message may show beside the key, such as the password in it. */
  readonly hidden?: ReadonlyArray<Redacted.Redacted>
  /** A body that is sent as JSON. */
  readonly json?: object
  /** Seconds of one try at most; 30 by default. */
  readonly timeout?: number
  /** Bytes of the answer at most; 8 MB by default. */
  readonly maxBytes?: number
  /** Tries at most; 4 by default. */
  readonly tries?: number
  /** Seconds to wait between tries at most, all together; 30 by default. */
  readonly patience?: number
  /**
   * Set for what must not be had twice: there is another try only when the service surely did nothing, or when it is told by this
   * header that it is for the same.
   */
  readonly purchase?: { readonly header?: string }
}

export interface Api {
  /** The last answer, whatever its status; fails when none came whole. */
  readonly reply: (call: Call) => Effect.Effect<Reply.Reply, ApiError>
  /** The answer; fails for every status but those of 200 to 299. */
  readonly bytes: (call: Call) => Effect.Effect<Uint8Array, ApiError>
  /** The answer as the schema reads it, the key left out wherever it stands. */
  readonly json: <A, I>(call: Call, schema: Schema.Schema<A, I>) => Effect.Effect<A, ApiError>
}

const defaults = { timeout: 30, maxBytes: 8_000_000, tries: 4, patience: 30 } as const

const pace = { base: Duration.seconds(1), growth: 2, cap: Duration.seconds(15) }

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

/** `path` below a service's address, whatever path and query that has itself. */
export const at = (base: string, path: string): string => {
  const [place = "", query = ""] = base.split(/\?(.*)/s)
  const more = query === "" ? "" : `${path.includes("?") ? "&" : "?"}${query}`
  return `${place.replace(/\/+$/, "")}${path}${more}`
}

/** What went wrong with a service, in one line without its key. */
export const failed = (words: string, { key, hidden = [] }: Pick<Call, "key" | "hidden">, status = 0): ApiError => {
  const others = hidden.reduce((shown, each) => Failure.withoutKey(shown, Redacted.value(each)), words)
  return new ApiError({ detail: Failure.oneLine(others, secretOf(key)), status })
}

/**
 * The call with an address that holds nothing of the user: a name and password go the way a key goes where there is none, and no
 * message shows them, nor what its query may hold of keys.
 */
export const discreet = <A extends Pick<Call, "url" | "key" | "hidden">>(call: A): A => {
  if (!URL.canParse(call.url)) return call
  const url = new URL(call.url)
  const { authorization = "", secrets } = OpenAi.credentials(url, "")
  url.username = ""
  url.password = ""
  const [before = "", pair = ""] = authorization.split(/(?<= )/)
  const inAddress = pair === "" ? undefined : { header: "authorization", before, secret: Redacted.make(pair) }
  const hidden = [...(call.hidden ?? []), ...secrets.map((each) => Redacted.make(each))]
  return { ...call, url: url.href, key: call.key ?? inAddress, hidden }
}

/** An answer that is no success as an error. */
export const refused = (reply: Reply.Reply, call: Pick<Call, "service" | "key" | "hidden">): ApiError =>
  failed(Reply.meaningOf(reply, call), call, reply.status)

/**
 * Addresses of services are the user's own, private ones too. Redirects are not followed: a key goes nowhere else. Where a caller
 * may not be interrupted, neither is a try that has begun, but a pause between tries is.
 */
export const make = (options: Pick<Route.Options, "environment"> = {}): Effect.Effect<Api, never, Scope.Scope> =>
  Effect.map(Route.make(options), (route) => {
    const reply = Effect.fn("Api.reply")(function* (given: Call) {
      if (!URL.canParse(given.url) || !/^https?:/i.test(given.url)) {
        return yield* new ApiError({ detail: `the address of ${given.service} is no http or https URL` })
      }
      const call = yield* named(discreet(given))
      const url = new URL(call.url)
      const way = yield* Effect.mapError(route(url), (detail) => new ApiError({ detail }))
      const { tries = defaults.tries, patience = defaults.patience } = call
      for (let count = 1, waited = 0; ; count++) {
        const { result, again, asked } = yield* attempt(way, url, call)
        const own = Retry.delay(pace, count, yield* Random.next)
        const wait = Duration.toSeconds(Option.getOrElse(asked, () => own))
        if (!again || count >= tries || waited + wait > patience) return yield* result
        waited += wait
        yield* Effect.interruptible(Effect.sleep(Duration.seconds(wait)))
      }
    })
    const success = (call: Call) =>
      Effect.filterOrFail(
        reply(call),
        ({ status }) => status < 300,
        (answer) => refused(answer, discreet(call))
      )
    return {
      reply,
      bytes: (call) => Effect.map(success(call), ({ bytes }) => bytes),
      json: (call, schema) =>
        Effect.flatMap(success(call), (answer) =>
          Effect.mapError(
            Schema.decode(Schema.parseJson(schema))(without(Reply.textOf(answer), call.key)),
            () => new ApiError({ detail: `${call.service} answered, but not with the JSON that it documents` })
          )
        )
    }
  })

const secretOf = (key: Key | undefined): string => (key === undefined ? "" : Redacted.value(key.secret))

/** A text without the whole key in it: one of a few letters would hit words that have nothing to do with it. */
const without = (said: string, key: Key | undefined): string =>
  secretOf(key).length < 8 ? said : said.replaceAll(secretOf(key), "***")

/** A purchase with the header that names it, the same for every try. */
const named = (call: Call): Effect.Effect<Call> => {
  const header = call.purchase?.header
  if (header === undefined) return Effect.succeed(call)
  return Effect.map(Effect.all([Random.nextInt, Random.nextInt]), ([one, two]) => ({
    ...call,
    headers: { ...call.headers, [header]: `batch-runner-${one}-${two}` }
  }))
}

/** How a try ended. */
interface End {
  readonly result: Effect.Effect<Reply.Reply, ApiError>
  /** Whether another may be made. */
  readonly again: boolean
  /** The wait that the service asks for. */
  readonly asked: Option.Option<Duration.Duration>
}

const over = (result: ApiError, again = false): End => ({ result, again, asked: Option.none() })

const attempt = (way: Route.Way, url: URL, call: Call): Effect.Effect<End> => {
  const { service, timeout = defaults.timeout } = call
  const bounded = Effect.timeoutTo(once(way, url, call), {
    duration: Duration.seconds(timeout),
    onSuccess: (end) => end,
    onTimeout: () => over(new ApiError({ detail: `${service} gave no answer within ${timeout} seconds` }))
  })
  // Where nothing may be interrupted, no limit of time holds but that of another fiber, which only this one ends early.
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDaemon(Effect.interruptible(bounded)), (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => Fiber.interrupt(fiber))
    )
  )
}

const once = Effect.fnUntraced(function* (way: Route.Way, url: URL, call: Call) {
  const now = yield* Clock.currentTimeMillis
  const { service, key, json, purchase, maxBytes = defaults.maxBytes } = call
  /** Whether the tries for the same are one for the service. */
  const free = purchase === undefined || purchase.header !== undefined
  const exchange = async (signal: AbortSignal): Promise<End> => {
    const response = await way.fetch(url, {
      method: call.method ?? (json === undefined ? "GET" : "POST"),
      dispatcher: way.dispatcher,
      redirect: "manual",
      signal,
      headers: {
        "user-agent": "batch-runner",
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...call.headers,
        ...(key === undefined ? {} : { [key.header]: `${key.before ?? ""}${Redacted.value(key.secret)}` })
      },
      body: json === undefined ? null : JSON.stringify(json)
    })
    const { status, headers } = response
    const { bytes, cut } = await upTo(response.body, status < 300 ? maxBytes : Reply.lookedAt)
    const header = (name: string) => headers.get(name)
    if (cut && status < 300) return over(failed(`${service} answered with more than ${maxBytes} bytes`, call, status))
    const reply: Reply.Reply = { status, header, bytes }
    return {
      result: Effect.succeed(reply),
      again: status >= 400 && (free ? Reply.passes(reply) : Reply.isBusy(reply)),
      asked: Failure.retryAfter(header, now)
    }
  }
  return yield* Effect.catchAll(
    Effect.tryPromise({ try: exchange, catch: (error) => error }),
    (error): Effect.Effect<End> => {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
      // Its words may hold a header's value, with more of the key than can be found again.
      const unsendable = Failure.codeOf(cause) === "" && cause instanceof TypeError
      return Effect.succeed(
        unsendable
          ? over(failed(`${service} cannot be asked: its address or key has characters that HTTP does not allow`, call))
          : over(
              failed(`${service} cannot be reached: ${Failure.connectionWords(cause)}`, call),
              free || Failure.neverConnected(cause)
            )
      )
    }
  )
})
