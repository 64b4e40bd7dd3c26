/** A toolset: tools that are switched on or off as one, and what of them works here. */
import type { Tool } from "./Tool.ts"

/** A tool that cannot work here. */
export interface Lack {
  readonly name: string
  /** What it lacks, as a clause: `no BRAVE_API_KEY`. */
  readonly lacks: string
}

/** The tools of a toolset, each as it works here or with what it lacks. */
export type Built = ReadonlyArray<Tool | Lack>

/** Tools that lack the same. */
export const lacking = (lacks: string, ...names: ReadonlyArray<string>): Built => names.map((name) => ({ name, lacks }))

/** A group of tools that is switched on or off as one. */
export interface Toolset {
  readonly name: string
  readonly description: string
  /** Names of all its tools, whether they work here or not. */
  readonly toolNames: ReadonlyArray<string>
  /** The tools to offer. */
  readonly tools: ReadonlyArray<Tool>
  /** Those that cannot work here. */
  readonly missing: ReadonlyArray<Lack>
  /** What keeps all of them from working here, as a clause; null when some work. */
  readonly lacks: string | null
}

const isLack = (one: Tool | Lack): one is Lack => "lacks" in one

/**
 * A toolset of these tools; a program's own, or one of the catalogue. Its name is what distributions and `toolsets_used` of rows
 * say; its tools' names are unique among all of a run, for models and rows know tools by their names alone (see `Toolbox.layer`).
 */
export const make = (toolset: {
  readonly name: string
  readonly description: string
  readonly tools: Built
}): Toolset => {
  const tools = toolset.tools.flatMap((one) => (isLack(one) ? [] : [one]))
  const missing = toolset.tools.flatMap((one) => (isLack(one) ? [one] : []))
  return {
    name: toolset.name,
    description: toolset.description,
    toolNames: toolset.tools.map(({ name }) => name),
    tools,
    missing,
    lacks: tools.length > 0 ? null : [...new Set(missing.map(({ lacks }) => lacks))].join("; ") || "it has no tools"
  }
}
