/** The errors of one endpoint: however a call ends without an answer, a sentence for people, without a secret in it. */
import { Clock, Duration, Effect, Option, Predicate } from "effect"
import { ModelError, type RateLimit, type Request } from "../Model.ts"
import * as Prices from "../Prices.ts"
import * as Diagnosis from "./Diagnosis.ts"
import * as Failure from "./Failure.ts"
import * as RateLimits from "./RateLimits.ts"
import type * as Wire from "./Wire.ts"

/** Looks up a response's header by its name. */
export type Header = (name: string) => string | null | undefined

/** How a call can end without a successful response. */
export type Rejection =
  | { readonly _tag: "Status"; readonly status: number; readonly body: unknown; readonly header: Header }
  | { readonly _tag: "Broken"; readonly cause: unknown }
  | { readonly _tag: "TooLate" }

/** Words that a hidden text shares with others are no secret; a piece of it this long is. */
const hiddenPiece = 24

/** The errors of the endpoint that `request` goes to at `url`, undefined when its address is none; `secrets` are what it may know and nobody else. */
export const make = (request: Request, url: URL | undefined, secrets: ReadonlyArray<string>) => {
  const host = url?.host ?? request.baseUrl
  const path = url?.pathname ?? ""
  const price = Prices.priceOf(request)
  const [first = "", ...others] = secrets
  const bare = (text: string) =>
    (request.hidden ?? []).reduce((shown, hidden) => Failure.withoutKey(shown, hidden, hiddenPiece), text)
  const line = (text: string) =>
    Failure.oneLine(
      others.reduce((shown, secret) => Failure.withoutKey(shown, secret), bare(text)),
      first
    )
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
      reason: Failure.neverConnected(cause) ? "NotConnected" : "Unreachable",
      detail: said(`No answer from ${host}`, Failure.connectionWords(cause))
    })
  }

  const refused = (rejection: Extract<Rejection, { _tag: "Status" }>, now: number): ModelError => {
    const { status } = rejection
    const location = rejection.header("location") ?? ""
    const hint =
      status >= 300 && status < 400
        ? `the endpoint has moved${location === "" ? "" : ` to ${location}`}: give its new address as base_url`
        : status === 401 && first === ""
          ? "no API key was sent, set BATCH_RUNNER_API_KEY. "
          : ""
    return new ModelError({
      reason: Diagnosis.reasonOf({ status, body: rejection.body, model: request.model }),
      detail: said(
        `HTTP ${status} from ${host}${status === 404 ? ` for ${path}` : ""}`,
        hint + (status < 400 ? "" : Failure.words(rejection.body))
      ),
      status,
      usage: Prices.read(Predicate.isRecord(rejection.body) ? rejection.body.usage : undefined, price).usage,
      ...told(rejection.header, now)
    })
  }

  const noAnswer = (problem: Wire.Problem, header: Header, now: number): ModelError =>
    problem._tag === "Malformed"
      ? new ModelError({
          reason: "BadAnswer",
          detail: line(`HTTP 200 from ${host} with ${Failure.words(problem.detail)}`),
          status: 200,
          usage: problem.usage,
          ...told(header, now)
        })
      : new ModelError({
          reason: Diagnosis.reasonOf({ status: problem.code, body: problem.error, model: request.model }),
          detail: said(
            `HTTP 200 from ${host} with an error${problem.code === 0 ? "" : ` ${problem.code}`}`,
            Failure.words(problem.error)
          ),
          status: 200,
          usage: problem.usage,
          ...told(header, now)
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

interface Told {
  readonly limits: ReadonlyArray<RateLimit>
  readonly retryAfter?: Duration.Duration
}

/** What the headers say of when to come back, as fields of the error. */
const told = (header: Header, now: number): Told => ({
  limits: RateLimits.read(header, now),
  ...Option.match(Failure.retryAfter(header, now), { onNone: () => ({}), onSome: (retryAfter) => ({ retryAfter }) })
})
