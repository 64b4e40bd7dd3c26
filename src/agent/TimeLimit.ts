/** How long a session may take: one fiber watches all of them, where a timer for each would cost more than the rest of an idle session. */
import { Clock, Context, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import { Endpoint } from "../model/Endpoint.ts"

export interface TimeLimitService {
  /** Seconds a session may take. */
  readonly seconds: number
  /** Runs `session` in a fiber of its own; one that takes too long is interrupted, and once it has let go of everything `late` stands in its place. */
  readonly within: <A, E, R>(session: Effect.Effect<A, E, R>, late: () => A) => Effect.Effect<A, E, R>
}

/** The limit of a run. */
export class TimeLimit extends Context.Tag("batch-runner/TimeLimit")<TimeLimit, TimeLimitService>() {}

interface Running {
  readonly interrupt: Effect.Effect<void>
  /** Milliseconds since the epoch, without those in which the endpoint was down. */
  readonly deadline: number
  late: boolean
}

/**
 * A limit of so many seconds, watched over as long as the scope is open. Time in which the endpoint is down does not count: no
 * prompt can help that.
 */
export const make = (seconds: number): Effect.Effect<TimeLimitService, never, Scope.Scope> =>
  Effect.gen(function* () {
    const length = seconds * 1000
    const { downFor } = yield* Endpoint
    const time = Effect.zipWith(Clock.currentTimeMillis, downFor, (now, down) => now - down)
    // All have the same length, so the first that began is the first that is late.
    const running = new Set<Running>()
    const watch = Effect.gen(function* () {
      const [first] = running
      // Whatever begins while this sleeps has as long to go, so nothing has to wake it.
      const left = first === undefined ? length : first.deadline - (yield* time)
      if (first === undefined || left > 0) return yield* Effect.sleep(Math.max(1, left))
      running.delete(first)
      first.late = true
      yield* first.interrupt
    })
    yield* Effect.forkScoped(Effect.forever(watch))

    const within: TimeLimitService["within"] = (session, late) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const deadline = (yield* time) + length
          // A daemon, since it ends with this effect in any case: a child would be entered into its parent's books as well.
          const fiber = yield* Effect.forkDaemon(restore(session))
          const one: Running = { interrupt: Fiber.interruptFork(fiber), deadline, late: false }
          running.add(one)
          const ended = yield* Effect.exit(restore(Fiber.await(fiber)))
          running.delete(one)
          if (Exit.isFailure(ended))
            return yield* Effect.zipRight(Fiber.interrupt(fiber), Effect.failCause(ended.cause))
          return one.late && Exit.isInterrupted(ended.value) ? late() : yield* ended.value
        })
      )
    return { seconds, within }
  })

/** The limit as a layer. */
export const layer = (seconds: number): Layer.Layer<TimeLimit> => Layer.scoped(TimeLimit, make(seconds))
