/** A model around a model that tells a prompt that is forbidden from a key that is forbidden everything. */
import { Deferred, Effect, Layer } from "effect"
import { type Answer, type Ask, Model, type ModelError, type ModelService } from "./Model.ts"

/**
 * What an endpoint says to a question of a tool that would stop a run if it said it to a session: another model may be missing, be
 * dearer than the credit or be closed to the key. Whether the run can go on, its own calls find out.
 */
const onlyOfItself: ReadonlySet<string> = new Set(["Unauthorized", "NoCredit", "ModelMissing"])

/** Prompts that are forbidden, with none that ever was answered, before all are taken to be. */
const enough = 3

/** Puts the judgement around the model below, which has its own tries behind it. */
export const layer: Layer.Layer<Model, never, Model> = Layer.effect(
  Model,
  Effect.map(Model, (inner) => judging(inner))
)

/**
 * `inner`, whose first answers HTTP 403 wait for what becomes of the other calls: one answer, and they are the fault of their
 * prompts; so many and no answer, with nothing else in flight, and no call can succeed.
 */
export const judging = (inner: ModelService): ModelService => {
  let answered = false
  let forbidden = 0
  let open = 0
  const waiting = new Set<Deferred.Deferred<boolean>>()

  /** Tells those that wait whether all is forbidden. */
  const judge = (all: boolean) =>
    Effect.suspend(() => {
      const told = [...waiting]
      waiting.clear()
      return Effect.forEach(told, (each) => Deferred.succeed(each, all), { discard: true })
    })

  /** With nothing under way that could tell more, what is known must do. */
  const settled = Effect.suspend(() => (open > waiting.size ? Effect.void : judge(forbidden >= enough)))

  const suspected = Effect.fnUntraced(function* (error: ModelError) {
    forbidden++
    const verdict = yield* Deferred.make<boolean>()
    waiting.add(verdict)
    yield* settled
    const all = yield* Effect.onInterrupt(Deferred.await(verdict), () => Effect.sync(() => waiting.delete(verdict)))
    return yield* all ? error.amended({ reason: "AllForbidden" }) : error
  })

  const ask = (question: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.matchEffect(inner.complete(question), {
      onSuccess: (answer) => {
        if (answered) return Effect.succeed(answer)
        answered = true
        return Effect.as(judge(false), answer)
      },
      onFailure: (error) => {
        if (error.reason === "Forbidden" && !answered) return suspected(error)
        // A model that has answered is there: what it does not take is this prompt.
        return Effect.fail(
          error.reason === "ModelMissing" && answered ? error.amended({ reason: "BadRequest" }) : error
        )
      }
    })

  /** A question that a tool asks: it tells nothing of the sessions' own, nor they of it. */
  const beside = (question: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.mapError(inner.complete(question), (error) =>
      onlyOfItself.has(error.reason) ? error.amended({ reason: "BadRequest" }) : error
    )

  return {
    complete: (question) =>
      Effect.suspend(() => {
        if (question.aside !== undefined) return beside(question)
        if (answered) return ask(question)
        open++
        return Effect.ensuring(
          ask(question),
          Effect.suspend(() => {
            open--
            return settled
          })
        )
      })
  }
}
