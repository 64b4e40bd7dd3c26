/** One call of a model, whatever it wrote, becomes one result that it can act on. */
import { Effect, Either } from "effect"
import type { ToolCall } from "../model/Model.ts"
import type { BadArguments } from "./Arguments.ts"
import * as Arguments from "./Arguments.ts"
import { type Needs, type RunError, render, type Tool } from "./Tool.ts"

/** What a call came to. */
export interface Invoked {
  /** The tool's name as the model wrote it. */
  readonly name: string
  /** A JSON object; `error` says what went wrong. */
  readonly text: string
  /** The tool did its part. */
  readonly ok: boolean
  /** False when no tool ran: its name is unknown or not on offer, or its arguments do not fit. */
  readonly valid: boolean
}

/** Runs the call with the tools on offer. Only the sandbox itself, or a model that a tool asks, can fail it; a defect in a tool comes through. */
export const call = (
  tools: ReadonlyArray<Tool>,
  { name, arguments: source }: Pick<ToolCall, "name" | "arguments">
): Effect.Effect<Invoked, RunError, Needs> => {
  const tool = tools.find((one) => one.name === name)
  if (tool === undefined) return Effect.succeed(invalid(name, unknown(tools, name)))
  return Either.match(Arguments.read(source), {
    onLeft: (bad) => Effect.succeed(invalid(name, misfit(tool, bad))),
    onRight: (args) =>
      Effect.matchEffect(tool.decode(args), {
        onFailure: (bad) => Effect.succeed(invalid(name, misfit(tool, bad))),
        onSuccess: (run) => Effect.map(run, ({ ok, text }): Invoked => ({ name, text, ok, valid: true }))
      })
  })
}

const invalid = (name: string, error: string): Invoked => ({ name, text: render({ error }), ok: false, valid: false })

const unknown = (tools: ReadonlyArray<Tool>, name: string): string =>
  `there is no tool ${JSON.stringify(name.slice(0, 100))}; ${
    tools.length === 0
      ? "no tools are on offer, answer in text"
      : `the tools on offer are ${tools.map((tool) => tool.name).join(", ")}`
  }`

const misfit = (tool: Tool, bad: BadArguments): string => `bad arguments for ${tool.name}: ${bad.message}`
