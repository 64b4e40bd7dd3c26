/** A world for the tests of outages: an endpoint that does what the test says at the time, by the clock of the tests. */
import { Duration, Effect, Fiber, Logger, TestContext } from "effect"
import type * as Events from "../../src/events/Events.ts"
import { steady } from "../../src/model/Endpoint.ts"
import type { Answer, ModelError } from "../../src/model/Model.ts"
import * as Outage from "../../src/model/Outage.ts"
import { answer, failure, heard, word } from "./answers.ts"
import { ask } from "./asks.ts"

export const silent = Logger.replace(Logger.defaultLogger, Logger.none)
export const test = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(effect.pipe(Effect.provide(silent), Effect.provide(TestContext.TestContext)))

export const now = Effect.clockWith((clock) => clock.currentTimeMillis)
export const refused = failure("NotConnected")
export const busy = failure("Overloaded", { status: 503 })

/** An endpoint that does with a call what the test says at the time, and keeps when each was made. */
export const made = (maxWait: Duration.DurationInput = "1 hour") => {
  const calls: Array<{ readonly at: number; readonly place: number }> = []
  const events: Array<Events.Event> = []
  const state = { end: (_place: number): Effect.Effect<Answer, ModelError> => Effect.succeed(answer()) }
  const { model, endpoint } = Outage.waiting(
    {
      complete: ({ place }) =>
        Effect.flatMap(now, (at) => {
          calls.push({ at: at / 1000, place })
          return state.end(place)
        })
    },
    { ...steady, told: Effect.succeed("below") },
    { maxWait: Duration.decode(maxWait), most: 4 }
  )
  const call = (place: number) => Effect.map(Effect.either(model.complete(ask({ place }))), word).pipe(heard(events))
  const begin = (count: number, from = 0) =>
    Effect.forEach(
      Array.from({ length: count }, (_, n) => from + n),
      (place) => Effect.fork(call(place))
    )
  const be = (end: Answer | ModelError | ((place: number) => Effect.Effect<Answer, ModelError>)) => {
    state.end = typeof end === "function" ? end : () => ("reason" in end ? end : Effect.succeed(end))
  }
  /** When calls were made since the last question, in seconds. */
  const times = () => calls.splice(0).map(({ at }) => at)
  return { be, call, begin, times, calls, endpoint, events }
}

export const all = <A>(fibers: ReadonlyArray<Fiber.Fiber<A>>) => Fiber.join(Fiber.all(fibers))

/** One that has answered once, and then refuses connections. */
export const gone = (maxWait?: Duration.DurationInput) =>
  Effect.gen(function* () {
    const world = made(maxWait)
    yield* world.call(0)
    world.times()
    world.be(refused)
    return world
  })
