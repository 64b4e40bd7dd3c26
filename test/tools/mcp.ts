/** MCP servers in tests: their toolsets, and calls of their tools in a local sandbox. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Layer, Logger } from "effect"
import * as Scripted from "../../src/model/Scripted.ts"
import * as Local from "../../src/sandbox/Local.ts"
import { Sandbox, Sandboxes } from "../../src/sandbox/Sandbox.ts"
import * as Invoke from "../../src/tools/Invoke.ts"
import * as Mcp from "../../src/tools/Mcp.ts"
import * as ConfigFile from "../../src/tools/mcp/ConfigFile.ts"
import * as Setting from "../../src/tools/Setting.ts"
import type { Tool } from "../../src/tools/Tool.ts"
import * as ToolSession from "../../src/tools/ToolSession.ts"
import * as Variables from "../../src/tools/Variables.ts"
import * as Folder from "../support/Folder.ts"

/** The server of the tests, whose manner is its argument. */
export const script = fileURLToPath(new URL("../support/mcp/server.mjs", import.meta.url))

export const program = (manner: string, more: object = {}) => ({
  command: process.execPath,
  args: [script, manner],
  ...more
})

/** The same without a file, which a sandbox may not see. */
export const inlined = (manner: string, more: object = {}) => ({
  command: "node",
  args: ["-e", `import("data:text/javascript;base64,${readFileSync(script, "base64")}")`, manner],
  ...more
})

/** What the servers of the tests may know of this environment, and what none may. */
export const environment = { PATH: process.env.PATH, HOME: process.env.HOME, OPENROUTER_API_KEY: "sk-or-of-the-run" }

export const read = (file: unknown, more: Readonly<Record<string, string>> = {}, taken: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const path = join(yield* Folder.scoped, "mcp.json")
    writeFileSync(path, typeof file === "string" ? file : JSON.stringify(file))
    return yield* ConfigFile.read(path, Variables.from({ ...environment, ...more }), taken)
  })

interface Options {
  readonly variables?: Readonly<Record<string, string>>
  readonly commandTimeout?: number
  readonly wanted?: (name: string) => boolean
}

/** The toolsets of servers by name, with what was logged meanwhile. */
export const toolsets = (
  mcpServers: object,
  { variables = {}, commandTimeout = 20, wanted = () => true }: Options = {}
) =>
  Effect.gen(function* () {
    const servers = yield* read({ mcpServers }, variables)
    const setting = Setting.make({
      commandTimeout,
      wanted,
      variables: Variables.from({ ...environment, ...variables })
    })
    return yield* Mcp.toolsets(servers, setting)
  })

export const use = (tools: ReadonlyArray<Tool>, name: string, args: object = {}) =>
  Effect.map(Invoke.call(tools, { name, arguments: JSON.stringify(args) }), (invoked) => ({
    ok: invoked.ok,
    valid: invoked.valid,
    ...JSON.parse(invoked.text)
  }))

/** The tools of the servers in a session of their own, in a local sandbox. */
export const session = (namespace: "auto" | "plain" = "auto") =>
  Layer.mergeAll(
    Layer.scoped(
      Sandbox,
      Effect.flatMap(Sandboxes, (sandboxes) => sandboxes.open({ id: "mcp", image: "", cwd: "" }))
    ).pipe(Layer.provide(Local.layer({ network: true, hide: [], namespace }))),
    ToolSession.layer,
    Scripted.fromScript({ prompts: {}, default: [] })
  )

/** Runs an effect with what it logs. */
export const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => {
      lines.push(String(message))
    })
    return Effect.map(Effect.provide(effect, Logger.replace(Logger.defaultLogger, logger)), (value) => ({
      value,
      lines
    }))
  })
