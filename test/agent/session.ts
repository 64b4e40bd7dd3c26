/** A session runs on a script, and tells how it ended, what happened in it and what the model was asked. */
import { Effect, Layer, Ref, Schema } from "effect"
import * as Agent from "../../src/agent/Agent.ts"
import { Transcript } from "../../src/agent/Transcript.ts"
import { type Ask, Model } from "../../src/model/Model.ts"
import * as Scripted from "../../src/model/Scripted.ts"
import { SandboxError } from "../../src/sandbox/Sandbox.ts"
import * as Arguments from "../../src/tools/Arguments.ts"
import * as Tool from "../../src/tools/Tool.ts"
import * as ToolSession from "../../src/tools/ToolSession.ts"
import * as Boxes from "../support/Boxes.ts"

const say = Tool.make({
  name: "say",
  description: "Says a word.",
  parameters: Schema.Struct({ word: Arguments.text("The word") }),
  run: ({ word }) =>
    word === "lost"
      ? Effect.fail(new SandboxError({ reason: "Lost", detail: "the sandbox is gone" }))
      : word === "bad"
        ? Effect.fail(new Tool.ToolFailure({ error: "a bad word" }))
        : Effect.succeed({ said: word })
})

/** A text of so many characters. */
const recite = Tool.make({
  name: "recite",
  description: "Recites numbers.",
  parameters: Schema.Struct({ length: Arguments.whole("Characters", 0) }),
  run: ({ length }) => Effect.succeed({ text: "0123456789".repeat(Math.ceil(length / 10)).slice(0, length) })
})

export type Line = Scripted.Script["default"][number]
export type Call = NonNullable<Line["tool_calls"]>[number]

export const word = (text: string): Call => ({ name: "say", arguments: { word: text } })
export const recital = (length: number): Call => ({ name: "recite", arguments: { length } })
export const calls = (...tool_calls: ReadonlyArray<Call>): Line => ({ reasoning: "Hm.", tool_calls })
export const bad = calls({ name: "say", arguments: { wrod: "x" } })
export const text = (content: string): Line => ({ content })
export const empty: Line = { reasoning: "I say nothing.", content: " \n" }

export interface Options {
  readonly maxTurns?: number
  readonly maxCost?: number
  readonly maxTokens?: number
  readonly tools?: ReadonlyArray<Tool.Tool>
  /** Stands between the session and its script. */
  readonly between?: Layer.Layer<Model, never, Model>
}

/** Nothing between. */
const straight: Layer.Layer<Model, never, Model> = Layer.effect(Model, Model)

/** Runs a session on a script; gives how it ended, what happened in it and what the model was asked. */
export const converse = (script: ReadonlyArray<Line>, options: Options = {}) =>
  Effect.gen(function* () {
    const { maxTurns = 10, maxCost = null, maxTokens = null, tools = [say, recite], between = straight } = options
    const asked = yield* Ref.make<ReadonlyArray<Ask>>([])
    const transcript = new Transcript()
    const overheard = Layer.effect(
      Model,
      Effect.map(Model, ({ complete }) => ({
        complete: (ask: Ask) =>
          Effect.zipRight(
            Ref.update(asked, (all) => [...all, ask]),
            complete(ask)
          )
      }))
    ).pipe(Layer.provide(between), Layer.provide(Scripted.fromScript({ prompts: {}, default: script })))
    const ending = yield* Agent.run(
      {
        prompt: "Talk.",
        sample: 0,
        place: 0,
        occurrence: 0,
        opening: [
          { role: "system", content: "System." },
          { role: "user", content: "Talk." }
        ],
        tools,
        definitions: tools.map(({ definition }) => definition),
        maxTurns,
        maxCost,
        maxTokens,
        logChars: 100
      },
      transcript
    ).pipe(Effect.provide(Layer.mergeAll(overheard, Boxes.sandbox, ToolSession.layer)))
    return { ending, transcript, asks: yield* Ref.get(asked) }
  })

/** What each answer and each tool result says. */
export const told = (transcript: Transcript) =>
  transcript.events.map((event) => (event._tag === "Answered" ? event.answer.content : event.result.text))

/** What each message of an ask says. */
export const contents = (ask: Ask | undefined) =>
  (ask?.messages ?? []).map((message) => (message.role === "answer" ? message.answer.content : message.content))
