/** A question that a tool asks a model, beside the session's own conversation: paid for, counted and held back like every other call. */
import { Effect } from "effect"
import { type Answer, type Aside, type Message, Model, type ModelError } from "../model/Model.ts"
import { ToolFailure } from "./Tool.ts"
import { ToolSession } from "./ToolSession.ts"

export interface Question extends Aside {
  readonly messages: ReadonlyArray<Message>
}

/**
 * Asks once; tries, waits and budgets are the model's own. What this question alone met is a failure for the calling model to read;
 * what no call can get past, and the run's budget, end the session as they would for its own calls.
 */
export const ask = ({
  messages,
  ...aside
}: Question): Effect.Effect<Answer, ToolFailure | ModelError, Model | ToolSession> =>
  Effect.gen(function* () {
    const model = yield* Model
    const { whose, spent } = yield* ToolSession
    const answer = yield* model.complete({ messages, tools: [], ...whose, turn: 0, aside }).pipe(
      Effect.catchTag("ModelError", (error) => {
        spent(error.usage)
        return refused(aside, error)
      })
    )
    spent(answer.usage)
    return answer
  })

const refused = ({ model }: Aside, error: ModelError): Effect.Effect<never, ToolFailure | ModelError> =>
  error.fatal || error.reason === "BudgetReached"
    ? Effect.fail(error)
    : new ToolFailure({ error: `${model ?? "the model"} gave no answer: ${error.message}` })
