/** A model around a model that waits while the endpoint is down, all calls together, and goes on by itself when it is back. */
import { Clock, Context, Deferred, Duration, Effect, Either, FiberId, Layer, LogLevel } from "effect"
import * as Events from "../events/Events.ts"
import { isElsewhere } from "./Aside.ts"
import { Endpoint, type EndpointService, tell, timeOfDay } from "./Endpoint.ts"
import { type Answer, type Ask, kindOf, Model, ModelError, type ModelService } from "./Model.ts"

export interface Options {
  /** The longest wait for an endpoint that is down. */
  readonly maxWait: Duration.Duration
  /** Prompts in flight at most. */
  readonly most: number
}

/** Puts the waiting around the model below, and says how the endpoint is doing. */
export const layer = (options: Options): Layer.Layer<Model | Endpoint, never, Model> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { model, endpoint } = waiting(yield* Model, yield* Endpoint, options)
      return Context.make(Model, model).pipe(Context.add(Endpoint, endpoint))
    })
  )

/** Failures of any calls one after the other, with no answer in between, that mean that the endpoint is down. */
const failuresInARow = 10

/** Tries to connect to an endpoint that was never reached, and milliseconds before the second; twice as many before each further one. */
const firstTries = { tries: 3, pause: 500 }

/** Milliseconds between looks at an endpoint that is down: at first, and at most. */
const looks = { first: 1000, most: 10_000 }

/** Prompts that must have failed in a row, at least, before the endpoint is taken to be down. */
const somePrompts = 3

/** Calls that look at once: those that fail by themselves must come to an end, and let others look. */
const lookers = 4

/** HTTP statuses that tell of an endpoint, rather than of what it was asked. */
const absent = [502, 503, 504, 521, 522, 523, 529]

interface Outage {
  /** Milliseconds since the epoch. */
  readonly since: number
  nextLook: number
  pause: number
  /** Lets some calls wait for the next look, while all others wait for what they find. */
  readonly lookers: Effect.Semaphore
  readonly over: Deferred.Deferred<void>
}

const inSeconds = (millis: number): string => Duration.format(Duration.seconds(Math.round(millis / 1000)))

/** Errors of which the endpoint itself may be the cause, and not the call. */
const suspects: ReadonlySet<string> = new Set(["Overloaded", "Unreachable", "NotConnected", "BadAnswer", "TimedOut"])
const isSuspect = ({ reason }: ModelError): boolean => suspects.has(reason)

/** Whether it rather tells of an endpoint that is not there than of one that fails at what it was asked. */
const isAbsence = ({ reason, status }: ModelError): boolean =>
  reason === "Unreachable" || (reason === "Overloaded" && absent.includes(status))

/** Whether the endpoint was not even asked. */
const isOurs = ({ reason, status }: ModelError): boolean =>
  reason === "BudgetReached" || (reason === "BadRequest" && status === 0)

/** `inner`, asked by a few calls at a time while nothing answers. */
export const waiting = (
  inner: ModelService,
  below: EndpointService,
  { maxWait, most }: Options
): { readonly model: ModelService; readonly endpoint: EndpointService } => {
  const longest = Duration.toMillis(maxWait)
  let reached = false
  let inARow = 0
  /** Places of the prompts that failed in a row. */
  const prompts = new Set<number>()
  let outage: Outage | undefined
  /** Milliseconds, of outages that are over. */
  let downBefore = 0

  /** Something came back: it is there. */
  const alive = Effect.suspend(() => {
    reached = true
    inARow = 0
    prompts.clear()
    if (outage === undefined) return Effect.void
    const { since, over } = outage
    outage = undefined
    Deferred.unsafeDone(over, Effect.void)
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const down = now - since
      downBefore += down
      return Effect.zipRight(
        tell(LogLevel.Warning, `the endpoint answers again after ${inSeconds(down)}: going on`),
        Events.emit({ event: "endpoint_up", down })
      )
    })
  })

  const down = Effect.fnUntraced(function* (error: ModelError) {
    if (outage !== undefined) return
    const now = yield* Clock.currentTimeMillis
    outage = {
      since: now,
      nextLook: now + looks.first,
      pause: looks.first,
      lookers: Effect.unsafeMakeSemaphore(lookers),
      over: Deferred.unsafeMake<void>(FiberId.none)
    }
    yield* tell(
      LogLevel.Warning,
      `the endpoint is down since ${timeOfDay(now)} (${error.message}): waiting for it, at most ${inSeconds(longest)} (--max_wait)`
    )
    yield* Events.emit({ event: "endpoint_down", why: kindOf(error.reason) })
  })

  /** A call failed, perhaps for want of the endpoint. */
  const suspected = (ask: Ask, error: ModelError): Effect.Effect<void> => {
    if (error.reason === "NotConnected") return reached ? down(error) : Effect.void
    reached ||= error.reason !== "TimedOut"
    // Another model that a tool asks may be away by itself; the sessions' own calls find out.
    if (!isAbsence(error) || isElsewhere(ask)) return Effect.void
    prompts.add(ask.place)
    inARow++
    return inARow >= failuresInARow && prompts.size >= somePrompts ? down(error) : Effect.void
  }

  /**
   * Whether the call is not to blame: it waits for as long as the run does, and that is no try of it. More prompts than there can
   * be in flight must have failed: a few that nobody can answer may hold all places.
   */
  const isBlameless = (error: ModelError): boolean =>
    error.reason === "NotConnected" || (prompts.size > Math.max(most, somePrompts) && isAbsence(error))

  const attempt = (ask: Ask, connections: number): Effect.Effect<Answer, ModelError> =>
    Effect.matchEffect(inner.complete(ask), {
      onSuccess: (answer) => {
        if (reached && inARow === 0 && outage === undefined) return Effect.succeed(answer)
        return Effect.as(alive, answer)
      },
      onFailure: (error) => {
        if (isOurs(error)) return error
        if (!isSuspect(error)) return Effect.zipRight(alive, error)
        return Effect.zipRight(
          suspected(ask, error),
          Effect.suspend(() => {
            if (outage !== undefined && isBlameless(error)) return complete(ask)
            if (error.reason !== "NotConnected") return error
            if (connections >= firstTries.tries) return neverReached(error)
            const pause = Duration.millis(firstTries.pause * 2 ** (connections - 1))
            return Effect.zipRight(Effect.sleep(pause), attempt(ask, connections + 1))
          })
        )
      }
    })

  /** Waits for the next look at an endpoint that is down. Those that wait for the same one put the next off once. */
  const nextLook = Effect.fnUntraced(function* (current: Outage) {
    const planned = current.nextLook
    const now = yield* Clock.currentTimeMillis
    const pause = Math.min(planned, current.since + longest) - now
    yield* Effect.raceFirst(Effect.sleep(Duration.millis(Math.max(0, pause))), Deferred.await(current.over))
    if (current.nextLook !== planned) return
    current.pause = Math.min(looks.most, current.pause * 2)
    current.nextLook = (yield* Clock.currentTimeMillis) + current.pause
  })

  /** Fails once the run has waited for as long as it does; not when the outage is over before. */
  const patience = Effect.fnUntraced(function* (current: Outage) {
    const now = yield* Clock.currentTimeMillis
    yield* Effect.sleep(Duration.millis(Math.max(0, current.since + longest - now)))
    return outage === current ? yield* tooLong("no answer", current) : yield* Effect.never
  })

  /** One look: the call itself, which nobody waits for. It is given up when the run's patience is. */
  const look = Effect.fnUntraced(function* (ask: Ask, current: Outage) {
    const outcome = yield* Effect.either(Effect.raceFirst(inner.complete(ask), patience(current)))
    if (Either.isLeft(outcome) && isOurs(outcome.left)) return yield* outcome.left
    if (Either.isRight(outcome) || !isSuspect(outcome.left)) {
      yield* alive
      return yield* outcome
    }
    const error = outcome.left
    if (isAbsence(error) && !isElsewhere(ask)) prompts.add(ask.place)
    if (outage === current && (yield* Clock.currentTimeMillis) >= current.since + longest) {
      return yield* tooLong(error.message, current)
    }
    return isBlameless(error) ? yield* complete(ask) : yield* error
  })

  const tooLong = (why: string, { since }: Outage) =>
    new ModelError({
      reason: "DownTooLong",
      detail: `the endpoint is down since ${timeOfDay(since)}, longer than --max_wait=${Math.round(longest / 1000)}: ${why}`
    })

  const complete = (ask: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.suspend(() => {
      const current = outage
      if (current === undefined) return attempt(ask, 1)
      const turn = Effect.suspend(() => (outage === current ? nextLook(current) : Effect.void))
      return Effect.zipRight(
        current.lookers.withPermits(1)(turn),
        Effect.suspend(() => (outage === current ? look(ask, current) : complete(ask)))
      )
    })

  return {
    model: { complete },
    endpoint: {
      downFor: Effect.zipWith(
        Clock.currentTimeMillis,
        below.downFor,
        (now, paused) => downBefore + (outage === undefined ? 0 : now - outage.since) + paused
      ),
      told: Effect.flatMap(below.told, (otherwise) =>
        Effect.sync(() => (outage === undefined ? otherwise : `endpoint down since ${timeOfDay(outage.since)}`))
      )
    }
  }
}

const neverReached = (error: ModelError): ModelError =>
  error.amended({
    reason: "NeverReached",
    detail: `${error.message}: is --base_url right, and is anything there?`
  })
