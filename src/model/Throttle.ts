/** A model around a model that makes no more calls at once than the endpoint takes, and none while it asks for a pause. */
import { Clock, Context, Deferred, Duration, Effect, Exit, FiberId, Layer, LogLevel } from "effect"
import * as Events from "../events/Events.ts"
import { Endpoint, type EndpointService, tell, timeOfDay } from "./Endpoint.ts"
import { type Answer, type Ask, Model, type ModelError, type ModelService } from "./Model.ts"
import { Quota } from "./throttle/Quota.ts"
import { type Call, Window } from "./throttle/Window.ts"

export interface Options {
  /** Calls at once at most. */
  readonly most: number
  /** Whether fewer are made when the endpoint takes fewer. */
  readonly adaptive: boolean
  /** The longest pause that all calls make: whoever asks for more is asked again sooner, and tells the call itself. */
  readonly longestPause: Duration.Duration
}

/** Puts the throttle around the model below, and says how many calls it lets through. */
export const layer = (options: Options): Layer.Layer<Model | Endpoint, never, Model> =>
  Layer.effectContext(
    Effect.map(Model, (inner) => {
      const { model, endpoint } = throttled(inner, options)
      return Context.make(Model, model).pipe(Context.add(Endpoint, endpoint))
    })
  )

/** Refusals after another one, and no answer in between, that mean that all calls are refused. */
const refusedInARow = 3

/** Pauses from so many milliseconds on are worth a line of the log. */
const noteworthy = 5000

const tellPause = (why: string, wait: number): Effect.Effect<void> =>
  tell(
    wait < noteworthy ? LogLevel.Debug : LogLevel.Info,
    `no calls to the endpoint for ${Duration.format(Duration.seconds(Math.ceil(wait / 1000)))}: ${why}`
  )

/** Whether an error says that the endpoint has too much to do, rather than that something in it broke. */
const isRefusal = (error: ModelError): boolean =>
  error.reason === "RateLimited" || (error.reason === "Overloaded" && [503, 529].includes(error.status))

/** Refusals that come one after the other: then the endpoint's word to one call is meant for all. */
class Row {
  /** The last call begun before the refusal that began the row; 0 for none. */
  private since = 0
  private refused = 0

  /** True when so many were refused that all are. `begun`: calls begun so far. */
  add(call: number, begun: number): boolean {
    if (this.since === 0) {
      this.since = begun
      this.refused = 0
      return false
    }
    if (call <= this.since) return false
    this.refused++
    return this.refused >= refusedInARow && this.refused * 2 >= begun - this.since
  }

  end(call: number): void {
    if (call > this.since) this.since = 0
  }
}

/** `inner`, throttled. */
export const throttled = (
  inner: ModelService,
  options: Options
): { readonly model: ModelService; readonly endpoint: EndpointService } => {
  const window = new Window(options.most, options.adaptive)
  const quota = new Quota()
  const row = new Row()
  const waiting = new Set<Deferred.Deferred<void>>()
  const longest = Duration.toMillis(options.longestPause)
  let pausedUntil = 0
  /** Milliseconds of pauses so far, what is planned of the present one included. */
  let paused = 0
  /** Calls whose turn has come and that have not begun yet: their places are nobody else's. */
  let called = 0

  const isRoom = () => window.inFlight + called < window.limit

  /** Calls as many as there is room for. */
  const wake = () => {
    for (const each of waiting) {
      if (!isRoom()) return
      waiting.delete(each)
      called++
      Deferred.unsafeDone(each, Effect.void)
    }
  }
  const leave = Effect.sync(() => {
    called--
    wake()
  })

  type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

  /** Waits in the queue. A turn that comes to a call which is given up is the next one's. */
  const turn = (restore: Restore): Effect.Effect<void> => {
    const mine = Deferred.unsafeMake<void>(FiberId.none)
    waiting.add(mine)
    return Effect.onInterrupt(restore(Deferred.await(mine)), () => (waiting.delete(mine) ? Effect.void : leave))
  }

  /** `first`: the call's turn has come. */
  const enter = (restore: Restore, first: boolean): Effect.Effect<Call> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const opens = Math.max(pausedUntil, quota.opens(window.begun + 1, now))
      if (opens > now && opens - now <= longest) {
        const pause = restore(Effect.sleep(Duration.millis(opens - now)))
        return pausing(opens, now).pipe(
          Effect.zipRight(first ? Effect.onInterrupt(pause, () => leave) : pause),
          Effect.zipRight(enter(restore, first))
        )
      }
      if (first) called--
      if (isRoom()) return Effect.succeed(window.begin())
      return Effect.zipRight(turn(restore), enter(restore, true))
    })

  const pausing = (until: number, now: number) =>
    Effect.suspend(() => {
      if (until <= pausedUntil) return Effect.void
      pauseUntil(until, now)
      return Effect.zipRight(
        tellPause("its rate limit is used up", until - now),
        Events.emit({ event: "pause", wait: until - now, why: "quota" })
      )
    })

  const settle = (call: Call, exit: Exit.Exit<Answer, ModelError>): Effect.Effect<void> => {
    const before = window.limit
    const told = Effect.suspend(() => {
      const limit = window.limit
      wake()
      if (limit === before) return Effect.void
      return Events.emit({ event: "throttle", before, limit, why: limit < before ? "refused" : "answered" })
    })
    if (Exit.isSuccess(exit)) {
      const { limits = [], usage } = exit.value
      row.end(call.number)
      if (limits.length > 0) quota.read(call.number, limits, usage.total)
      window.answered(call, waiting.size > 0)
      return told
    }
    const error = exit.cause._tag === "Fail" ? exit.cause.error : undefined
    if (error === undefined) {
      window.ended(call)
      return told
    }
    if (error.limits.length > 0) quota.read(call.number, error.limits, 0)
    if (!isRefusal(error)) {
      window.ended(call)
      return told
    }
    window.refused(call)
    const all = row.add(call.number, window.begun)
    const wait = error.retryAfter === undefined ? 0 : Duration.toMillis(error.retryAfter)
    return all && wait > 0 ? Effect.zipRight(pause(wait, error), told) : told
  }

  const pauseUntil = (until: number, now: number) => {
    paused += until - Math.max(now, pausedUntil)
    pausedUntil = until
  }

  const pause = (asked: number, error: ModelError) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const wait = Math.min(asked, longest)
      if (now + wait <= pausedUntil) return Effect.void
      pauseUntil(now + wait, now)
      return Effect.zipRight(
        tellPause(`it refuses all (${error.message})`, wait),
        Events.emit({ event: "pause", wait, why: "refused" })
      )
    })

  const complete = (ask: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(enter(restore, false), (call) =>
        Effect.onExit(restore(inner.complete(ask)), (exit) => settle(call, exit))
      )
    )
  return {
    model: { complete },
    endpoint: {
      downFor: Effect.map(Clock.currentTimeMillis, (now) => paused - Math.max(0, pausedUntil - now)),
      told: Effect.map(Clock.currentTimeMillis, (now) => {
        if (pausedUntil > now) return `no calls until ${timeOfDay(pausedUntil)}`
        const limit = window.limit
        return limit < options.most ? `${limit} calls at once` : ""
      })
    }
  }
}
