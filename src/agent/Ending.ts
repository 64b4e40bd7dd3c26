/** How a session ended. */
import { Data, Schema } from "effect"
import * as Model from "../model/Model.ts"
import * as Sandbox from "../sandbox/Sandbox.ts"

/** The model answered with nothing, again and again. */
export class EmptyAnswer extends Schema.TaggedError<EmptyAnswer>()("EmptyAnswer", { tries: Schema.Number }) {
  override get message(): string {
    return `the model's answer was empty${this.tries === 1 ? "" : ` ${this.tries} times in a row`}`
  }
  get transient(): boolean {
    return true
  }
}

/** The session took longer than a prompt may. */
export class SessionTimedOut extends Schema.TaggedError<SessionTimedOut>()("SessionTimedOut", {
  seconds: Schema.Number
}) {
  override get message(): string {
    return `not finished after ${this.seconds} s (--timeout)`
  }
  get transient(): boolean {
    return true
  }
}

export type AttemptError = Model.ModelError | Sandbox.SandboxError | EmptyAnswer | SessionTimedOut

/** The kind of a failure, in the word that people select it by: `rate_limited`, `image_missing`, … */
export const kindOf = (error: AttemptError): string => Model.kindOf("reason" in error ? error.reason : error._tag)

/** Every kind of failure of a prompt; the run's budget fails none. */
export const failureKinds: ReadonlyArray<string> = [
  ...Model.failing,
  ...Sandbox.reasons,
  "EmptyAnswer",
  "SessionTimedOut"
].map(Model.kindOf)

export type Ending = Data.TaggedEnum<{
  /** The model gave its final answer. */
  Finished: object
  /** The last allowed call asked for tools. */
  OutOfTurns: object
  /** Cut short by the model's own doing; what there is, is worth keeping. */
  Cut: { readonly why: "InvalidCalls" | "Truncated" | "Loop" | "ContextFull" | "PromptBudget" }
  /** No result: the prompt is still to do. */
  Broke: { readonly error: AttemptError }
}>

export const Ending = Data.taggedEnum<Ending>()
