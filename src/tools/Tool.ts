/** One tool of an agent: a schema of its arguments in, one JSON text out. */
import { Effect, JSONSchema, Schema } from "effect"
import type { Sandbox, SandboxError } from "../sandbox/Sandbox.ts"
import type { Todos } from "./Todo.ts"

/** The services that a tool may ask for; an attempt provides them, new for each prompt. */
export type Needs = Sandbox | Todos

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
  /** Decodes the arguments (a `ParseError` tells which field does not fit) and runs the tool. */
  readonly decode: (args: unknown) => Effect.Effect<Run, import("effect/ParseResult").ParseError>
}

/** A call whose arguments fit. */
export type Run = Effect.Effect<ToolResult, SandboxError, Needs>

/** Registers a tool: `run` gives the result's fields, or fails with a `ToolFailure` for the model. */
export const make = <A, I>(tool: {
  readonly name: string
  readonly description: string
  readonly parameters: Schema.Schema<A, I>
  readonly run: (args: A) => Effect.Effect<object, ToolFailure | SandboxError, Needs>
}): Tool => {
  const decode = Schema.decodeUnknown(tool.parameters, { errors: "all" })
  const { $schema: _, ...parameters } = JSONSchema.make(tool.parameters)
  return {
    name: tool.name,
    definition: {
      type: "function",
      function: { name: tool.name, description: tool.description, parameters }
    },
    decode: (args) =>
      Effect.map(decode(args), (fit) =>
        tool.run(fit).pipe(
          Effect.map((result) => ({ ok: true, text: JSON.stringify(result) })),
          Effect.catchTag("ToolFailure", (failure) =>
            Effect.succeed({ ok: false, text: JSON.stringify({ ...failure.result, error: failure.error }) })
          )
        )
      )
  }
}
