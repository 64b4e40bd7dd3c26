/** One session: the model answers, its tools are called, it reads the results, until it is done or must stop. */
import { Effect, Either } from "effect"
import { type Answer, type Message, Model, type ModelError } from "../model/Model.ts"
import * as Invoke from "../tools/Invoke.ts"
import type { Needs, Tool, ToolDefinition } from "../tools/Tool.ts"
import { Allowance, type Limits } from "./Allowance.ts"
import { EmptyAnswer, Ending } from "./Ending.ts"
import * as Loop from "./Loop.ts"
import * as Preview from "./Preview.ts"
import { lastTurn } from "./SystemPrompt.ts"
import * as Told from "./Told.ts"
import type { Transcript } from "./Transcript.ts"

/** Times an empty answer is asked for again. */
const emptyRetries = 3
/** Answers in a row without one valid call that cut a session. */
const badAnswers = 3

export interface Session extends Limits {
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
  /** Characters of a call or an answer shown in the log. */
  readonly logChars: number
}

/** A session on its way. */
interface Course {
  readonly session: Session
  readonly transcript: Transcript
  readonly loop: Loop.Loop
  readonly allowance: Allowance
}

/**
 * Runs the session, writing down in `transcript` what happens as it happens. Only what no call of the run can get past is an
 * error; what fails this prompt is an ending.
 */
export const run = (session: Session, transcript: Transcript): Effect.Effect<Ending, ModelError, Model | Needs> =>
  converse({ session, transcript, loop: new Loop.Loop(), allowance: new Allowance(session) }).pipe(
    Effect.catchTags({
      Cut: (cut) => Effect.succeed(cut),
      ModelError: (error) => (error.fatal ? Effect.fail(error) : Effect.succeed(Ending.Broke({ error }))),
      SandboxError: (error) => Effect.succeed(Ending.Broke({ error })),
      EmptyAnswer: (error) => Effect.succeed(Ending.Broke({ error }))
    })
  )

const converse = Effect.fnUntraced(function* (course: Course) {
  const { session, transcript } = course
  let bad = 0
  for (let turn = 1; turn <= session.maxTurns; turn++) {
    const answer = yield* ask(course, turn === session.maxTurns)
    transcript.answered(answer)
    if (answer.finishReason === "length" || answer.finishReason === "content_filter") {
      return Ending.Cut({ why: "Truncated" })
    }
    if (answer.toolCalls.length === 0) return Ending.Finished()
    const { anyValid, looped } = yield* callTools(course, answer)
    bad = anyValid ? 0 : bad + 1
    if (bad === badAnswers) return Ending.Cut({ why: "InvalidCalls" })
    if (looped) return Ending.Cut({ why: "Loop" })
  }
  return Ending.OutOfTurns()
})

/** The next answer that says anything. */
const ask = Effect.fnUntraced(function* (course: Course, last: boolean) {
  const { session, transcript, allowance } = course
  for (let tries = 0; tries <= emptyRetries; ) {
    const left = allowance.left(transcript.usage)
    if (left === "none") {
      // Empty answers alone are nothing to keep.
      return yield* transcript.events.length === 0
        ? new EmptyAnswer({ tries })
        : Effect.fail(Ending.Cut({ why: "PromptBudget" }))
    }
    const answer = yield* complete(course, last || left === "one")
    if (answer === "too long") continue
    tries++
    transcript.received(answer)
    yield* Effect.logDebug(`answer ${transcript.apiCalls}: ${Preview.ofAnswer(answer, session.logChars)}`)
    const kept = !isEmpty(answer)
    allowance.received(answer, kept)
    if (kept) return answer
  }
  return yield* new EmptyAnswer({ tries: emptyRetries + 1 })
})

/** One call of the model; `too long` when the conversation was, and is shorter now. */
const complete = Effect.fnUntraced(function* ({ session, transcript }: Course, last: boolean) {
  const model = yield* Model
  const turn = transcript.apiCalls
  const answer = yield* Effect.either(
    Told.asking(
      session,
      turn,
      model.complete({
        messages: messages(session, transcript, last),
        tools: session.definitions,
        prompt: session.prompt,
        turn,
        sample: session.sample,
        place: session.place,
        occurrence: session.occurrence
      })
    )
  )
  if (Either.isRight(answer)) return answer.right
  const error = answer.left
  transcript.spent(error.usage)
  if (error.reason !== "ContextTooLong") return yield* error
  // Once: what is left after that is what the session needs.
  const shortened = transcript.shortened === 0 ? transcript.shorten() : 0
  if (shortened > 0) {
    yield* Effect.logInfo(
      `longer than the model takes, so ${Preview.counted(shortened, "earlier tool result")} shortened: ${error.message}`
    )
    return "too long" as const
  }
  return yield* transcript.events.length === 0 ? error : Effect.fail(Ending.Cut({ why: "ContextFull" }))
})

/** Nothing to keep: no call, and no text beside reasoning that came to its own end. */
const isEmpty = (answer: Answer): boolean =>
  answer.toolCalls.length === 0 &&
  answer.content.trim() === "" &&
  (answer.finishReason !== "length" || answer.reasoning.trim() === "")

/** Calls each tool in the order of the answer: whether at least one call was valid, and whether the session goes in circles. */
const callTools = Effect.fnUntraced(function* (course: Course, answer: Answer) {
  const { session, transcript, loop, allowance } = course
  let anyValid = false
  let looped = false
  for (const call of answer.toolCalls) {
    yield* Effect.logDebug(
      `call ${Preview.ofText(call.name, session.logChars)} ${Preview.ofText(call.arguments, session.logChars)}`
    )
    const given = yield* Told.calling(session, call, Invoke.call(session.tools, call))
    const times = loop.count(call, given.text)
    const result = times < Loop.hintFrom ? given : { ...given, text: Loop.hinted(given.text, times) }
    transcript.called(call, result)
    allowance.called(result.text)
    yield* Effect.logDebug(
      `${Preview.ofText(call.name, session.logChars)} ${result.ok ? "gave" : "failed"}: ${Preview.ofText(result.text, session.logChars)}`
    )
    anyValid ||= result.valid
    looped ||= times >= Loop.endAt
  }
  return { anyValid, looped }
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
