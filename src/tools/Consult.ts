/** A question that a tool asks a model, beside the session's own conversation: paid for, counted and held back like every other call. */
import { Effect } from "effect"
import * as Events from "../events/Events.ts"
import * as CallSpan from "../model/CallSpan.ts"
import { type Answer, type Aside, type Message, Model, type ModelError } from "../model/Model.ts"
import { ToolFailure } from "./Tool.ts"
import { perSession, ToolSession } from "./ToolSession.ts"

export interface Question extends Aside {
  readonly messages: ReadonlyArray<Message>
}

/** Questions that each tool of a session has asked: an offline model answers by their number, and a kept answer is one question's. */
const asked = perSession(Effect.sync(() => new Map<string, number>()))

/** The number of a tool's next question in its session, from 0. */
const next = (tool: string) =>
  Effect.map(asked.get, (numbers) => {
    const number = numbers.get(tool) ?? 0
    numbers.set(tool, number + 1)
    return number
  })

/** Fails unless the budget of the prompt allows so many more questions. */
export const afford = (questions: number): Effect.Effect<void, ToolFailure, ToolSession> =>
  Effect.flatMap(ToolSession, ({ affords }) =>
    affords(questions)
      ? Effect.void
      : new ToolFailure({
          error: `what is left of this prompt's budget does not allow ${questions === 1 ? "a question" : `${questions} questions`} to a model; go on without`
        })
  )

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
    yield* afford(1)
    const turn = yield* next(aside.tool)
    const answer = yield* told(aside, whose, model.complete({ messages, tools: [], ...whose, turn, aside })).pipe(
      Effect.catchTag("ModelError", (error) => {
        spent(error.usage)
        return refused(aside, error)
      })
    )
    spent(answer.usage)
    return answer
  })

/** The call with its span and its event. */
const told = (
  { tool, model = "" }: Aside,
  { place, sample }: ToolSession["Type"]["whose"],
  call: Effect.Effect<Answer, ModelError>
): Effect.Effect<Answer, ModelError> =>
  CallSpan.around(
    { "batch_runner.tool": tool },
    Events.timed(call, ({ usage }, took) => ({
      event: "aside",
      prompt_index: place,
      sample,
      tool,
      model,
      prompt_tokens: usage.prompt,
      completion_tokens: usage.completion,
      cost_usd: usage.cost_usd,
      took
    }))
  )

const refused = ({ model }: Aside, error: ModelError): Effect.Effect<never, ToolFailure | ModelError> =>
  error.fatal || error.reason === "BudgetReached"
    ? Effect.fail(error)
    : new ToolFailure({ error: `${model ?? "the model"} gave no answer: ${error.message}` })
