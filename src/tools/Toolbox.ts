/** The toolsets of a run: which there are, and what a session that has some of them offers to its model. */
import { Context, Effect, Layer } from "effect"
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

/** The toolsets that come with the program. */
export const layer = (options: Partial<Setting> = {}): Layer.Layer<Toolbox> =>
  Layer.scoped(Toolbox, Effect.map(catalogue(setting(options)), make))
