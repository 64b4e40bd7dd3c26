/** The toolsets of a run: which there are, and what a session that has some of them offers to its model. */
import { Context, Effect, Layer, Schema } from "effect"
import { catalogue } from "./Catalogue.ts"
import { type Setting, make as setting } from "./Setting.ts"
import type { Tool, ToolDefinition } from "./Tool.ts"
import type { Toolset } from "./Toolset.ts"

/** The tools of one session. */
export interface Offer {
  readonly tools: ReadonlyArray<Tool>
  readonly definitions: ReadonlyArray<ToolDefinition>
  /** The definitions as JSON text. */
  readonly json: string
}

export interface ToolboxService {
  readonly toolsets: ReadonlyArray<Toolset>
  /** Every tool of every toolset, whether it can work here or not: rows count them all. */
  readonly toolNames: ReadonlyArray<string>
  /** What the toolsets of these names offer, in the toolbox's order; those that cannot work here offer nothing. */
  readonly offer: (toolsets: ReadonlyArray<string>) => Offer
}

export class Toolbox extends Context.Tag("batch-runner/Toolbox")<Toolbox, ToolboxService>() {}

/** A toolbox of these toolsets. */
export const make = (toolsets: ReadonlyArray<Toolset>): ToolboxService => {
  const offers = new Map<string, Offer>()
  const build = (names: ReadonlyArray<string>): Offer => {
    const tools = toolsets
      .filter(({ name, lacks }) => lacks === null && names.includes(name))
      .flatMap((toolset) => toolset.tools)
    const definitions = tools.map(({ definition }) => definition)
    return { tools, definitions, json: JSON.stringify(definitions) }
  }
  return {
    toolsets,
    toolNames: toolsets.flatMap((toolset) => toolset.toolNames),
    offer: (names) => {
      const id = names.toSorted().join(",")
      const offer = offers.get(id) ?? build(names)
      offers.set(id, offer)
      return offer
    }
  }
}

/** Toolsets that cannot be in one toolbox. `message` is one line that names the tool or toolset. */
export class ToolboxError extends Schema.TaggedError<ToolboxError>()("ToolboxError", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

const repeated = (names: ReadonlyArray<string>): string | undefined =>
  names.find((name, at) => names.indexOf(name) !== at)

/** Why toolsets cannot be in one toolbox: rows and models know tools by their names alone. */
const trouble = (toolsets: ReadonlyArray<Toolset>): string | undefined => {
  const toolNames = toolsets.flatMap((toolset) => toolset.toolNames)
  const [set, tool] = [repeated(toolsets.map(({ name }) => name)), repeated(toolNames)]
  const odd = toolNames.find((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name))
  if (set !== undefined) return `there are two toolsets ${JSON.stringify(set)}; give one of them another name`
  if (tool !== undefined) return `there are two tools ${JSON.stringify(tool)}; give one of them another name`
  if (odd === undefined) return undefined
  return `the tool ${JSON.stringify(odd)} has a name that models cannot call; allowed: at most 64 letters, digits, _ and -`
}

/**
 * The toolsets that come with the program, and after them a program's own. Fails when two tools or two toolsets have the same
 * name, or when a tool has one that no model could call.
 */
export const layer = (
  options: Partial<Setting> = {},
  ...own: ReadonlyArray<Toolset>
): Layer.Layer<Toolbox, ToolboxError> =>
  Layer.scoped(
    Toolbox,
    Effect.flatMap(catalogue(setting(options)), (toolsets) => {
      const all = [...toolsets, ...own]
      const detail = trouble(all)
      return detail === undefined ? Effect.succeed(make(all)) : new ToolboxError({ detail })
    })
  )
