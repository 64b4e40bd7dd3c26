/** One session: the model answers, its tools are called, it reads the results, until it is done or must stop. */
import { Effect } from "effect"
import { type Answer, type Message, Model } from "../model/Model.ts"
import * as Invoke from "../tools/Invoke.ts"
import type { Needs, Tool, ToolDefinition } from "../tools/Tool.ts"
import { EmptyAnswer, Ending } from "./Ending.ts"
import * as Preview from "./Preview.ts"
import { lastTurn } from "./SystemPrompt.ts"
import * as Told from "./Told.ts"
import type { Transcript } from "./Transcript.ts"

/** Times an empty answer is asked for again. */
const emptyRetries = 3
/** Answers in a row without one valid call that cut a session. */
const badAnswers = 3

export interface Session {
  readonly prompt: string
  readonly sample: number
  /** Place of the prompt in the data set, and which of several equal prompts it is. */
  readonly place: number
  readonly occurrence: number
  /** What the conversation opens with: system prompt, prefill and prompt. */
  readonly opening: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<Tool>
  readonly definitions: ReadonlyArray<ToolDefinition>
  /** Model calls at most. */
  readonly maxTurns: number
  /** US dollars, and tokens, that the session may use; null for no limit. */
  readonly maxCost: number | null
  readonly maxTokens: number | null
  /** Characters of a call or an answer shown in the log. */
  readonly logChars: number
}

/** Runs the session, writing down in `transcript` what happens as it happens. */
export const run = (session: Session, transcript: Transcript): Effect.Effect<Ending, never, Model | Needs> =>
  converse(session, transcript).pipe(
    Effect.catchTags({
      ModelError: (error) => Effect.succeed(Ending.Broke({ error })),
      SandboxError: (error) => Effect.succeed(Ending.Broke({ error })),
      EmptyAnswer: (error) => Effect.succeed(Ending.Broke({ error }))
    })
  )

const converse = Effect.fnUntraced(function* (session: Session, transcript: Transcript) {
  let bad = 0
  for (let turn = 1; turn <= session.maxTurns; turn++) {
    const answer = yield* ask(session, transcript, turn === session.maxTurns)
    transcript.answered(answer)
    if (answer.finishReason === "length" || answer.finishReason === "content_filter") {
      return Ending.Cut({ why: "Truncated" })
    }
    if (answer.toolCalls.length === 0) return Ending.Finished()
    const anyValid = yield* callTools(session, transcript, answer)
    bad = anyValid ? 0 : bad + 1
    if (bad === badAnswers) return Ending.Cut({ why: "InvalidCalls" })
  }
  return Ending.OutOfTurns()
})

/** The next answer that says anything. */
const ask = Effect.fnUntraced(function* (session: Session, transcript: Transcript, last: boolean) {
  const model = yield* Model
  for (let tries = 0; tries <= emptyRetries; tries++) {
    const turn = transcript.apiCalls
    const call = model.complete({
      messages: messages(session, transcript, last),
      tools: session.definitions,
      prompt: session.prompt,
      turn,
      sample: session.sample,
      place: session.place,
      occurrence: session.occurrence
    })
    const answer = yield* Told.asking(session, turn, call)
    transcript.received(answer)
    yield* Effect.logDebug(`answer ${transcript.apiCalls}: ${Preview.ofAnswer(answer, session.logChars)}`)
    if (!isEmpty(answer)) return answer
  }
  return yield* new EmptyAnswer({ tries: emptyRetries + 1 })
})

/** Nothing to keep: no call, and no text beside reasoning that came to its own end. */
const isEmpty = (answer: Answer): boolean =>
  answer.toolCalls.length === 0 &&
  answer.content.trim() === "" &&
  (answer.finishReason !== "length" || answer.reasoning.trim() === "")

/** Calls each tool in the order of the answer; true when at least one call was valid. */
const callTools = Effect.fnUntraced(function* (session: Session, transcript: Transcript, answer: Answer) {
  let anyValid = false
  for (const call of answer.toolCalls) {
    yield* Effect.logDebug(
      `call ${Preview.ofText(call.name, session.logChars)} ${Preview.ofText(call.arguments, session.logChars)}`
    )
    const result = yield* Told.calling(session, call, Invoke.call(session.tools, call))
    transcript.called(call, result)
    yield* Effect.logDebug(
      `${Preview.ofText(call.name, session.logChars)} ${result.ok ? "gave" : "failed"}: ${Preview.ofText(result.text, session.logChars)}`
    )
    anyValid ||= result.valid
  }
  return anyValid
})

const messages = (session: Session, transcript: Transcript, last: boolean): ReadonlyArray<Message> => {
  const all = [...session.opening]
  for (const event of transcript.events) {
    all.push(
      event._tag === "Answered"
        ? { role: "answer", answer: event.answer }
        : { role: "tool", callId: event.call.id, name: event.call.name, content: event.result.text }
    )
  }
  const end = all.at(-1)
  if (last && session.tools.length > 0 && end !== undefined && end.role !== "answer") {
    all[all.length - 1] = { ...end, content: `${end.content}\n\n${lastTurn}` }
  }
  return all
}
