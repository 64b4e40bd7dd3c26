/** The HTTP API of a service that a tool uses with the user's key: whole answers, asked again while what is wrong passes. */
import { Clock, Duration, Effect, Option, Random, Schema, Scope } from "effect"
import * as OpenAi from "../../model/OpenAi.ts"
import * as Diagnosis from "../../model/openai/Diagnosis.ts"
import * as Failure from "../../model/openai/Failure.ts"
import { isLoopback } from "../../model/openai/Transport.ts"
import * as Retry from "../../model/Retry.ts"
import { ToolFailure } from "../Tool.ts"

/** Where a service is, and who asks. */
export interface Options {
  /** Up to where the paths of its calls begin. */
  readonly base: URL
  /** The whole header; undefined for none. */
  readonly authorization: string | undefined
  /** What no message may show. */
  readonly secrets: ReadonlyArray<string>
  /** The longest wait, in seconds, that is kept when the service asks for one. */
  readonly patience: number
}

export interface Call {
  readonly method: "GET" | "POST" | "PUT"
  /** Appended to the base. */
  readonly path: string
  readonly json?: object
  /** Bytes of an answer at most. */
  readonly maxBytes: number
  /** Seconds for one try. */
  readonly seconds: number
}

export interface Reply {
  readonly status: number
  readonly header: (name: string) => string | null
  readonly bytes: Uint8Array
}

export interface Service {
  readonly base: URL
  /** The last answer, whatever its status; fails when none came whole. */
  readonly call: (call: Call) => Effect.Effect<Reply, ToolFailure>
  /** What an answer that is no success means, for a model. */
  readonly refusal: (reply: Reply) => ToolFailure
  /** A failure in which no secret is shown. */
  readonly failure: (text: string) => ToolFailure
}

/** Tries in all. */
const tries = 5
const pace = { base: Duration.millis(500), growth: 2, cap: Duration.seconds(15) }
const refusedPace = { ...pace, base: Duration.seconds(1) }

/** No answer came whole. */
class Broken extends Schema.TaggedError<Broken>()("Broken", { why: Schema.Unknown, large: Schema.Boolean }) {}

/** Connections stay open for other calls of the run, and close with the scope. */
export const make = (options: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { patience } = options
    // No request is made to an address with a password in it, and an error on it would repeat it.
    const inAddress = OpenAi.credentials(options.base, "")
    const base = new URL(options.base)
    base.username = ""
    base.password = ""
    const authorization = options.authorization ?? inAddress.authorization
    const secrets = [...options.secrets, ...inAddress.secrets]
    const scope = yield* Effect.scope
    // Loaded with the first call: a run that makes none does not pay for it.
    const client = yield* Effect.cached(Scope.extend(open(base), scope))
    const headers = { "user-agent": "batch-runner", ...(authorization === undefined ? {} : { authorization }) }
    const failure = (text: string) => {
      const [first = "", ...others] = secrets
      return new ToolFailure({
        error: Failure.oneLine(
          others.reduce((shown, secret) => Failure.withoutKey(shown, secret), text),
          first
        )
      })
    }

    const once = (call: Call): Effect.Effect<Reply, Broken | ToolFailure> =>
      Effect.flatMap(client, (exchange) => exchange(call, headers)).pipe(
        Effect.timeoutFail({
          duration: Duration.seconds(call.seconds),
          onTimeout: () => failure(`no whole answer from ${base.host} within ${call.seconds} seconds`)
        })
      )

    const ask = (call: Call, number: number): Effect.Effect<Reply, ToolFailure> =>
      Effect.matchEffect(once(call), {
        onFailure: (error) => {
          if (error._tag === "ToolFailure") return error
          if (error.large) return failure(`the answer of ${base.host} is larger than ${call.maxBytes} bytes`)
          return number < tries
            ? later(call, number, false, Duration.zero)
            : failure(`no answer from ${base.host}: ${Failure.connectionWords(error.why)} (${tries} tries)`)
        },
        onSuccess: Effect.fnUntraced(function* (reply: Reply) {
          const reason = reply.status < 400 || reply.status === 501 ? "" : reasonOf(reply)
          if ((reason !== "RateLimited" && reason !== "Overloaded") || number >= tries) return reply
          const now = yield* Clock.currentTimeMillis
          const asked = Option.getOrElse(Failure.retryAfter(reply.header, now), () => Duration.zero)
          if (Duration.toSeconds(asked) > patience) return reply
          return yield* later(call, number, reason === "RateLimited", asked)
        })
      })

    const later = Effect.fnUntraced(function* (call: Call, done: number, refused: boolean, asked: Duration.Duration) {
      const own = Retry.delay(refused ? refusedPace : pace, done, yield* Random.next)
      yield* Effect.sleep(Duration.max(own, asked))
      return yield* ask(call, done + 1)
    })

    const refusal = (reply: Reply): ToolFailure => {
      const said = wordsOf(reply)
      return failure(`HTTP ${reply.status} from ${base.host}${meaning(reply.status)}${said === "" ? "" : `: ${said}`}`)
    }
    const service: Service = { base, call: (call) => ask(call, 1), refusal, failure }
    return service
  })

const meaning = (status: number): string => {
  if (status >= 300 && status < 400) return ", which has moved"
  switch (status) {
    case 401:
    case 403:
      return ", which does not accept the key; go on without this tool"
    case 402:
      return ", which has no credit left; go on without this tool"
    case 404:
      return ", where there is no such model or address; go on without this tool"
    case 429:
      return ", whose rate limit is reached; try again later or go on without this tool"
    default:
      return ""
  }
}

const decodeJson = Schema.decodeUnknownOption(Schema.parseJson())

/** Characters of a refusal that are looked at. */
const lookedAt = 100_000

/** A body as JSON, or as the text that it is. */
export const bodyOf = ({ bytes }: Reply): unknown => {
  const text = Buffer.from(bytes.subarray(0, lookedAt)).toString("utf8")
  return Option.getOrElse(decodeJson(text), (): unknown => text)
}

/** What an answer that is no success says, in its own words. */
export const wordsOf = (reply: Reply): string => Failure.words(bodyOf(reply))

/** What such an answer means, in the words of the model's errors. */
const reasonOf = (reply: Reply): string => Diagnosis.reasonOf({ status: reply.status, body: bodyOf(reply), model: "" })

type Exchange = (call: Call, headers: Readonly<Record<string, string>>) => Effect.Effect<Reply, Broken>

/** How long an answer may take is decided around the call. Redirects are not followed: the key goes nowhere else. */
const open = (base: URL): Effect.Effect<Exchange, never, Scope.Scope> =>
  Effect.gen(function* () {
    const [{ fetch }, { Agent, EnvHttpProxyAgent }] = yield* Effect.promise(() =>
      Promise.all([import("./Undici.ts"), import("../../model/openai/Undici.ts")])
    )
    const limits = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 30_000 } }
    const dispatcher = yield* Effect.acquireRelease(
      // A malformed proxy variable is what the model's own calls complain of.
      Effect.try(() => (isLoopback(base.hostname) ? new Agent(limits) : new EnvHttpProxyAgent(limits))).pipe(
        Effect.orElse(() => Effect.sync(() => new Agent(limits)))
      ),
      (agent) => Effect.promise(() => agent.destroy())
    )
    return ({ method, path, json, maxBytes }, headers) =>
      Effect.tryPromise({
        try: async (signal) => {
          const url = new URL(base)
          url.pathname = `${url.pathname.replace(/\/+$/, "")}${path}`
          const response = await fetch(url, {
            dispatcher,
            method,
            signal,
            redirect: "manual",
            headers: json === undefined ? headers : { ...headers, "content-type": "application/json" },
            ...(json === undefined ? {} : { body: JSON.stringify(json) })
          })
          const chunks: Array<Uint8Array> = []
          let size = 0
          for await (const chunk of response.body ?? []) {
            size += chunk.length
            if (size > maxBytes) throw new Broken({ why: "", large: true })
            chunks.push(chunk)
          }
          const reply: Reply = {
            status: response.status,
            header: (name) => response.headers.get(name),
            bytes: Buffer.concat(chunks)
          }
          return reply
        },
        catch: (error) =>
          error instanceof Broken
            ? error
            : new Broken({ why: error instanceof Error ? (error.cause ?? error) : error, large: false })
      })
  })
