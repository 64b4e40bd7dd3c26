/** One tool of an agent: a schema of its arguments in, one JSON text out. */
import { Effect, Either, Predicate, Schema } from "effect"
import type { Model, ModelError } from "../model/Model.ts"
import type { Sandbox, SandboxError } from "../sandbox/Sandbox.ts"
import * as Arguments from "./Arguments.ts"
import type { ToolSession } from "./ToolSession.ts"

/** The services that a tool may ask for: its prompt's sandbox, what its session shares, and the model of the run. */
export type Needs = Sandbox | ToolSession | Model

/** The tool reports an error: the model reads it, the row's statistics count a failure. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  /** What went wrong and what to do about it, for the model. */
  error: Schema.String,
  /** Further fields of the result, such as the output up to a time-out. */
  result: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.Unknown }), { default: () => ({}) })
}) {
  override get message(): string {
    return this.error
  }
}

/** What a model reads back from a call. */
export interface ToolResult {
  readonly ok: boolean
  /** A JSON object. */
  readonly text: string
}

/** A tool as the chat-completions API offers it to a model. */
export interface ToolDefinition {
  readonly type: "function"
  readonly function: { readonly name: string; readonly description: string; readonly parameters: object }
}

/** A tool after registration: its argument types are sealed inside `run`. */
export interface Tool {
  readonly name: string
  readonly definition: ToolDefinition
  /** Decodes the arguments (the error tells each field that does not fit) and gives the run, not yet begun. */
  readonly decode: (args: unknown) => Effect.Effect<Run, Arguments.BadArguments>
}

/** A call whose arguments fit. */
export type Run = Effect.Effect<ToolResult, RunError, Needs>

/** What is no result of a tool, but ends its session: a lost sandbox, and a model that this prompt or the run cannot get past. */
export type RunError = SandboxError | ModelError

/** The result of a tool; one that is no JSON object, as a tool of one's own may give it, is its failure. */
const resultOf = (
  result: object,
  otherwise = "the tool gave a result that is no JSON object; go on without it"
): ToolResult => {
  const text = Either.getOrUndefined(Either.try((): unknown => render(result)))
  return Predicate.isString(text) && text.startsWith("{")
    ? { ok: true, text }
    : { ok: false, text: render({ error: otherwise }) }
}

/** The result of a tool's own effect, as a model reads it. */
const told = (run: Effect.Effect<object, ToolFailure | RunError, Needs>): Run =>
  run.pipe(
    Effect.map(resultOf),
    Effect.catchTag("ToolFailure", (failure) =>
      Effect.succeed({ ...resultOf({ ...failure.result, error: failure.error }, failure.error), ok: false })
    )
  )

/**
 * Registers a tool: `run` gives the result's fields, or fails with a `ToolFailure` for the model. The schema of the parameters
 * is a struct of plain fields, each with a description: what does not fit it is answered before `run` begins.
 */
export const make = <A, I>(tool: {
  readonly name: string
  readonly description: string
  readonly parameters: Schema.Schema<A, I>
  readonly run: (args: A) => Effect.Effect<object, ToolFailure | RunError, Needs>
}): Tool => {
  const { parameters, decode } = Arguments.door(tool.parameters)
  return {
    name: tool.name,
    definition: {
      type: "function",
      function: { name: tool.name, description: tool.description, parameters }
    },
    decode: (args) => Effect.map(decode(args), (fit) => told(tool.run(fit)))
  }
}

/** Registers a tool whose parameters are a JSON Schema that others wrote: `run` gets the object as the model wrote it, and judges it. */
export const raw = (tool: {
  readonly name: string
  readonly description: string
  readonly parameters: object
  readonly run: (args: object) => Effect.Effect<object, ToolFailure | RunError, Needs>
}): Tool => ({
  name: tool.name,
  definition: {
    type: "function",
    function: { name: tool.name, description: tool.description, parameters: tool.parameters }
  },
  decode: (args) =>
    Predicate.isRecord(args)
      ? Effect.succeed(told(tool.run(args)))
      : new Arguments.BadArguments({ faults: ["the arguments must be one JSON object"] })
})

/** JSON of a result. Names and texts that come from a model may hold lone surrogates, which break readers of a row. */
export const render = (result: object): string =>
  JSON.stringify(result, (_, value: unknown) => {
    if (typeof value === "string") return value.toWellFormed()
    return Predicate.isRecord(value) &&
      !Array.isArray(value) &&
      !Object.keys(value).every((name) => name.isWellFormed())
      ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name.toWellFormed(), part]))
      : value
  })
