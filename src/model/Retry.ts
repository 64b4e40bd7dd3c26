/** A model around a model that asks again when a call failed for a reason that passes. */
import { Duration, Effect, Layer, Option, Random } from "effect"
import * as Events from "../events/Events.ts"
import {
  type Answer,
  type Ask,
  addUsage,
  kindOf,
  Model,
  type ModelError,
  type ModelService,
  noUsage,
  type Usage
} from "./Model.ts"

export interface Options {
  /** Calls in all, the first included. */
  readonly tries: number
  /** The first wait, before jitter. */
  readonly base: Duration.Duration
  /** How much longer each wait is than the one before; after a refusal (HTTP 429) it is twice as long. */
  readonly growth: number
  /** The longest wait of our own, before jitter. */
  readonly cap: Duration.Duration
  /** The same after a refusal (HTTP 429): its time may be a minute's limit. */
  readonly refusedCap: Duration.Duration
  /** An endpoint that asks for a longer wait than this is not waited for. */
  readonly patience: Duration.Duration
}

export const defaults: Options = {
  // Of three thousand calls to an endpoint that fails three in ten, one in a thousand runs loses a prompt.
  tries: 14,
  // Short: when many calls fail, `Throttle` and `Outage` hold them back together.
  base: Duration.millis(200),
  growth: 1.5,
  cap: Duration.seconds(5),
  refusedCap: Duration.seconds(30),
  // No longer than a prompt has by default: its own time limit ends the wait.
  patience: Duration.hours(1)
}

/** Puts retries around the model below. */
export const layer = (options?: Partial<Options>): Layer.Layer<Model, never, Model> =>
  Layer.effect(
    Model,
    Effect.map(Model, (inner) => retrying(inner, options))
  )

/**
 * `inner`, asked again while its error is transient: exponential waits with jitter (half to whole), never sooner than the endpoint
 * asks. The last error says how many tries were made.
 */
export const retrying = (inner: ModelService, options?: Partial<Options>): ModelService => {
  const rules = { ...defaults, ...options }
  /** `spent` by the tries before. */
  const ask = (question: Ask, tries: number, spent: Usage): Effect.Effect<Answer, ModelError> =>
    Effect.matchEffect(inner.complete(question), {
      onSuccess: (answer) =>
        Effect.succeed(spent === noUsage ? answer : { ...answer, usage: addUsage(answer.usage, spent) }),
      onFailure: (error) => again(question, tries, spending(error, spent))
    })
  const again = Effect.fnUntraced(function* (question: Ask, tries: number, error: ModelError) {
    if (!error.transient || tries >= rules.tries) {
      return yield* ended(error, tries)
    }
    const asked = error.retryAfter ?? Duration.zero
    if (Duration.greaterThan(asked, rules.patience)) {
      return yield* ended(error, tries, `the endpoint asks to wait ${Duration.format(asked)}`)
    }
    const { base } = rules
    const pace = error.reason === "RateLimited" ? { base, growth: 2, cap: rules.refusedCap } : rules
    const wait = Duration.max(delay(pace, tries, yield* Random.next), asked)
    // The first tries are everyday life; a prompt that goes on failing is worth a word.
    const everyday = tries < noteworthy && Duration.lessThan(wait, longWait)
    yield* (everyday ? Effect.logDebug : Effect.logInfo)(
      `${error.message}; try ${tries + 1} of ${rules.tries} in ${Duration.format(wait)}`
    )
    yield* Events.emit({
      ...{ event: "retry", prompt_index: question.place, sample: question.sample },
      ...{ kind: kindOf(error.reason), next_try: tries + 1, wait: Duration.toMillis(wait) }
    })
    yield* Effect.sleep(wait)
    return yield* ask(question, tries + 1, error.usage)
  })
  return { complete: (question) => ask(question, 1, noUsage) }
}

/** Tries after which a call that goes on failing is told in the log. */
const noteworthy = 4

/** And so is a wait as long as this. */
const longWait = Duration.seconds(30)

const spending = (error: ModelError, spent: Usage): ModelError =>
  spent === noUsage ? error : error.amended({ usage: addUsage(error.usage, spent) })

/** The wait after the given number of tries; `chance` is from 0 to 1. */
export const delay = (
  rules: Pick<Options, "base" | "growth" | "cap">,
  tries: number,
  chance: number
): Duration.Duration =>
  Duration.millis(
    Math.ceil(
      Math.min(Duration.toMillis(rules.cap), Duration.toMillis(rules.base) * rules.growth ** (tries - 1)) *
        (0.5 + chance / 2)
    )
  )

const ended = (error: ModelError, tries: number, why?: string): ModelError => {
  const notes = [...Option.toArray(Option.fromNullable(why)), ...(tries > 1 ? [`${tries} tries`] : [])]
  if (notes.length === 0) {
    return error
  }
  return error.amended({ detail: `${error.detail} (${notes.join(", ")})` })
}
