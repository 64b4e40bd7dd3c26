/** Answers, errors and listeners that the tests of the layers around a model share. */
import { Effect, Either } from "effect"
import * as Events from "../../src/events/Events.ts"
import { type Answer, ModelError, noUsage, type Usage } from "../../src/model/Model.ts"

export const answer = (more: Partial<Answer> = {}): Answer => ({
  content: "Hi",
  reasoning: "",
  toolCalls: [],
  finishReason: "stop",
  usage: noUsage,
  echo: {},
  ...more
})

export const failure = (
  reason: ModelError["reason"],
  more: Partial<ConstructorParameters<typeof ModelError>[0]> = {}
): ModelError => new ModelError({ reason, detail: `It failed as ${reason}`, ...more })

export const usage = (total: number, cost_usd = 0): Usage => ({ ...noUsage, prompt: total, total, cost_usd })

/** The effect with every event that is told in it, in the given list. */
export const heard =
  (events: Array<Events.Event>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, Events.Events, {
      on: true,
      emit: (event) => Effect.sync(() => void events.push(event))
    })

/** How a call ended, in a word: `answered` or the reason of its error. */
export const word = (end: Either.Either<Answer, ModelError>): string =>
  Either.match(end, { onLeft: ({ reason }) => reason, onRight: () => "answered" })
