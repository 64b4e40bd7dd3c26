/** The toolsets that come with the program: which tools each has, and what of them works here. */
import { Effect, type Scope } from "effect"
import * as Browser from "./Browser.ts"
import * as ExecuteCode from "./ExecuteCode.ts"
import * as ImageGeneration from "./ImageGeneration.ts"
import * as Mixture from "./Mixture.ts"
import { patch } from "./Patch.ts"
import * as Process from "./Process.ts"
import { readFile } from "./ReadFile.ts"
import { searchFiles } from "./SearchFiles.ts"
import type { Setting } from "./Setting.ts"
import * as Speech from "./Speech.ts"
import * as Terminal from "./Terminal.ts"
import { todo } from "./Todo.ts"
import { type Built, lacking, make, type Toolset } from "./Toolset.ts"
import * as Vision from "./Vision.ts"
import * as Web from "./Web.ts"
import { writeFile } from "./WriteFile.ts"

/** Every tool of the program by toolset: a row carries statistics for each, in this order. */
const toolsByToolset = {
  terminal: ["terminal", "process"],
  file: ["read_file", "write_file", "patch", "search_files"],
  web: ["web_search", "web_extract"],
  vision: ["vision_analyze"],
  image_gen: ["image_generate"],
  tts: ["text_to_speech"],
  moa: ["mixture_of_agents"],
  browser: Browser.names,
  todo: ["todo"],
  code_execution: ["execute_code"]
} as const

export type Name = keyof typeof toolsByToolset

/** Names of all tools of the program. */
export const toolNames: ReadonlyArray<string> = Object.values(toolsByToolset).flat()

/** Names of all its toolsets: those of the distributions first, in their order. */
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

/** How each is made. */
const makers: Readonly<Record<Name, (setting: Setting) => Effect.Effect<Built, never, Scope.Scope>>> = {
  terminal: (setting) => Effect.succeed([Terminal.make(setting), Process.make(setting)]),
  file: () => Effect.succeed([readFile, writeFile, patch, searchFiles]),
  todo: () => Effect.succeed([todo]),
  web: Web.make,
  vision: Vision.make,
  image_gen: ImageGeneration.make,
  tts: Speech.make,
  moa: Mixture.make,
  browser: Browser.make,
  code_execution: ExecuteCode.make
}

/** All toolsets, in the order of `names`; what they hold open ends with the scope. */
export const catalogue = (setting: Setting): Effect.Effect<ReadonlyArray<Toolset>, never, Scope.Scope> =>
  Effect.forEach(
    names,
    (name) =>
      Effect.map(
        setting.wanted(name)
          ? makers[name](setting)
          : Effect.succeed(lacking("no session asks for it", ...toolsByToolset[name])),
        (tools) => make({ name, description: descriptions[name], tools })
      ),
    { concurrency: "unbounded" }
  )
