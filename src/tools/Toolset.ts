/** The catalogue: which tools there are, how they are grouped, and what works in this version. */
import { patch } from "./Patch.ts"
import * as Process from "./Process.ts"
import { readFile } from "./ReadFile.ts"
import { searchFiles } from "./SearchFiles.ts"
import * as Terminal from "./Terminal.ts"
import { todo } from "./Todo.ts"
import type { Tool } from "./Tool.ts"
import { writeFile } from "./WriteFile.ts"

/** A group of tools that is switched on or off as one. */
export interface Toolset {
  readonly name: Name
  readonly description: string
  /** Names of all its tools, built or not. */
  readonly toolNames: ReadonlyArray<string>
  /** The tools to offer; empty when it lacks something. */
  readonly tools: ReadonlyArray<Tool>
  /** What keeps it from working here, as a clause; null when it works. */
  readonly lacks: string | null
}

/** Every tool of the product by toolset: a row carries statistics for each, in this order. */
const toolsByToolset = {
  terminal: ["terminal", "process"],
  file: ["read_file", "write_file", "patch", "search_files"],
  web: ["web_search", "web_extract"],
  vision: ["vision_analyze"],
  image_gen: ["image_generate"],
  tts: ["text_to_speech"],
  moa: ["mixture_of_agents"],
  browser: [
    "browser_navigate",
    "browser_snapshot",
    "browser_click",
    "browser_type",
    "browser_scroll",
    "browser_back",
    "browser_press",
    "browser_get_images",
    "browser_vision",
    "browser_close"
  ],
  todo: ["todo"],
  code_execution: ["execute_code"]
} as const

export type Name = keyof typeof toolsByToolset

/** Names of all tools of the product, built or not. */
export const toolNames: ReadonlyArray<string> = Object.values(toolsByToolset).flat()

/** Names of all toolsets: those of the distributions first, in their order. */
export const names: ReadonlyArray<Name> = [
  "web",
  "vision",
  "image_gen",
  "terminal",
  "file",
  "moa",
  "browser",
  "tts",
  "todo",
  "code_execution"
]

const descriptions: Readonly<Record<Name, string>> = {
  web: "Search the web and read its pages",
  vision: "Answer questions about images",
  image_gen: "Make images from text",
  terminal: "Run commands and background processes",
  file: "Read, write, patch and search files",
  moa: "Ask several models and join their answers",
  browser: "Use web pages in a browser",
  tts: "Make speech from text",
  todo: "Keep a task list",
  code_execution: "Run Python or JavaScript code"
}

/** All toolsets, in the order of `names`. */
export const catalogue = (limits: Terminal.Limits): ReadonlyArray<Toolset> => {
  const built: Partial<Record<Name, ReadonlyArray<Tool>>> = {
    terminal: [Terminal.make(limits), Process.make(limits)],
    file: [readFile, writeFile, patch, searchFiles],
    todo: [todo]
  }
  return names.map((name) => ({
    name,
    description: descriptions[name],
    toolNames: toolsByToolset[name],
    tools: built[name] ?? [],
    lacks: built[name] === undefined ? "not part of this version yet" : null
  }))
}
