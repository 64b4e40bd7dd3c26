/** The servers of `--mcp_config` as toolsets: each is asked once for its tools, and speaks with every session by itself. */
import { Effect, ExecutionStrategy, Exit, Scope } from "effect"
import * as Local from "../sandbox/Local.ts"
import { Sandbox, type SandboxError } from "../sandbox/Sandbox.ts"
import { brief, type Program, type Server } from "./mcp/ConfigFile.ts"
import * as Link from "./mcp/Link.ts"
import * as Listing from "./mcp/Listing.ts"
import * as Names from "./mcp/Names.ts"
import * as Result from "./mcp/Result.ts"
import type { Setting } from "./Setting.ts"
import * as Tool from "./Tool.ts"
import * as ToolSession from "./ToolSession.ts"
import { make, type Toolset } from "./Toolset.ts"

export { McpConfigError, read, type Server } from "./mcp/ConfigFile.ts"

/** Where programs run that run in no sandbox; made with the first. */
type Outside = Effect.Effect<Effect.Effect.Success<typeof Local.beside>, SandboxError>

/** Servers that are asked for their tools at once. */
const atOnce = 8

/** A toolset without a tool. */
const without = (name: string, lacks: string): Toolset => ({
  ...make({ name, description: described(name), tools: [] }),
  lacks
})

const described = (name: string) => `Tools of the MCP server ${name}`

/** Runs the effect in a scope of its own, which is closed at once where it fails. */
const tried = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.flatMap(Effect.scope, (around) =>
    Effect.flatMap(Scope.fork(around, ExecutionStrategy.sequential), (own) =>
      Effect.onError(Scope.extend(effect, own), (cause) => Scope.close(own, Exit.failCause(cause)))
    )
  )

/** A program of the user's own, beside the sandbox: its environment is his path and home, and what the file sets. */
const outside = (server: Server, at: Program, { variables }: Setting, place: Outside) =>
  Effect.gen(function* () {
    const open = yield* place
    const beside = yield* open(`mcp-${server.name}`, "")
    const own = Object.fromEntries(
      ["PATH", "HOME", "LANG"].flatMap((name) => {
        const value = variables.plain(name)
        return value === undefined ? [] : [[name, value]]
      })
    )
    return yield* Link.toProgram(
      server,
      beside.connect,
      { command: at.command, args: at.args, env: { ...own, ...at.env }, guarded: true },
      at.cwd
    )
  })

/** A link with what the place's own troubles mean: it cannot be had. */
const linked = <R>(link: Effect.Effect<Link.Link, Effect.Effect.Error<ReturnType<typeof outside>>, R>) =>
  Effect.mapError(link, (error) =>
    error._tag === "LinkError" ? error : new Link.LinkError({ reason: "Over", message: error.message })
  )

/** How a prompt's session comes to a server. */
const sessions = (server: Server, setting: Setting, place: Outside) => {
  const { at } = server
  if (at._tag === "Remote") return Link.toRemote(server, at)
  let told = false
  let hopeless = false
  const tell = (why: string) =>
    Effect.suspend(() => {
      if (told) return Effect.void
      told = true
      return Effect.logWarning(`the MCP server ${server.name} runs outside the sandbox; ${why}`)
    })
  const beside = linked(outside(server, at, setting, place))
  const within = Effect.gen(function* () {
    const sandbox = yield* Sandbox
    if (sandbox.connect === undefined) {
      return yield* new Link.LinkError({ reason: "Over", message: "this sandbox gives no pipe to its programs" })
    }
    const { command, args, env, cwd } = at
    return yield* Link.toProgram(server, sandbox.connect, { command, args, env, guarded: false }, cwd)
  })
  return Effect.suspend(() => {
    if (at.inside === false || hopeless) return beside
    const fits = tried(within).pipe(
      Effect.catchTag("FileError", ({ message }) => new Link.LinkError({ reason: "Over", message }))
    )
    if (at.inside === true) return fits
    return Effect.catchTag(fits, "LinkError", (error) => {
      // To wait as long in every session would help nobody.
      hopeless ||= error.reason === "TimedOut"
      return Effect.zipRight(tell(`inside, ${error.message}`), beside)
    })
  })
}

/** How a call of one of the server's tools comes to its result. */
const caller = (
  server: Server,
  setting: Setting,
  place: Outside,
  files: ToolSession.PerSession<() => number, never, never>
) => {
  const session = ToolSession.perSession(sessions(server, setting, place))
  const seconds = Math.min(server.timeout ?? setting.commandTimeout, setting.commandTimeout)
  const failed = (error: Link.LinkError) => {
    switch (error.reason) {
      case "Refused":
        return `the MCP server ${server.name} refused the call: ${error.message}`
      case "TimedOut":
        return `the MCP server ${server.name} gave ${error.message}`
      case "Over":
        return `the MCP server ${server.name} is gone: ${error.message}; the next call starts it anew, without what it remembered`
    }
  }
  const come = Effect.catchTag(
    session.get,
    "LinkError",
    ({ message }) => new Tool.ToolFailure({ error: `the MCP server ${server.name} does not come up: ${message}` })
  )
  return (tool: string) =>
    Effect.fn("Mcp.call")(
      function* (args: object) {
        const before = yield* come
        if (before.over()) yield* session.drop
        const link = before.over() ? yield* come : before
        const answer = yield* link
          .request("tools/call", { name: tool, arguments: args }, seconds)
          .pipe(Effect.tapError(() => (link.over() ? session.drop : Effect.void)))
        return yield* Result.make(answer, server, yield* files.get)
      },
      Effect.catchTag("LinkError", (error) => new Tool.ToolFailure({ error: failed(error) }))
    )
}

/** Asks a server for its tools; a session of its own, which ends with that. */
const listed = (server: Server, setting: Setting, place: Outside) =>
  Effect.scoped(
    Effect.flatMap(
      server.at._tag === "Remote"
        ? Link.toRemote(server, server.at)
        : linked(outside(server, server.at, setting, place)),
      (link) => Listing.ask(link, server)
    )
  ).pipe(
    Effect.timeoutFail({
      duration: Link.startLimit * 1000,
      onTimeout: () =>
        new Link.LinkError({ reason: "TimedOut", message: `no answer within ${Link.startLimit} seconds` })
    })
  )

/** A toolset for each server. Those that are wanted are asked for their tools; what they hold open ends with the scope. */
export const toolsets = Effect.fn("Mcp.toolsets")(function* (servers: ReadonlyArray<Server>, setting: Setting) {
  const scope = yield* Effect.scope
  const place = yield* Effect.cached(Scope.extend(Local.beside, scope))
  const files = ToolSession.perSession(
    Effect.sync(() => {
      let written = 0
      return () => ++written
    })
  )
  const answers = yield* Effect.forEach(
    servers,
    (server) => {
      if (!setting.wanted(server.name)) return Effect.succeed("no session asks for it")
      if (server.unset.length > 0) return Effect.succeed(`no ${server.unset.join(", ")}`)
      return Effect.merge(
        Effect.mapError(listed(server, setting, place), ({ reason, message }) =>
          reason === "Refused" ? `it refused: ${message}` : message
        )
      )
    },
    { concurrency: atOnce }
  )
  const taken = new Set<string>()
  const all: Array<Toolset> = []
  for (const [at, server] of servers.entries()) {
    const answer = answers[at] ?? ""
    if (typeof answer === "string") {
      all.push(without(server.name, answer))
      continue
    }
    const names = Names.offered(
      server.name,
      answer.tools.map(({ name }) => name),
      taken
    )
    const call = caller(server, setting, place, files)
    const tools = answer.tools.flatMap(({ name, description, parameters }) => {
      const offered = names.get(name)
      return offered === undefined ? [] : [Tool.raw({ name: offered, description, parameters, run: call(name) })]
    })
    for (const [why, count, first] of unfit(answer.unfit)) {
      yield* Effect.logWarning(
        `the MCP server ${server.name}: ${count === 1 ? `its tool ${brief(first, server)} is` : `${count} tools, such as ${brief(first, server)}, are`} left out: ${why}`
      )
    }
    const toolset = make({ name: server.name, description: described(server.name), tools })
    all.push(toolset)
  }
  return all
})

/** Tools that are left out, those for the same reason together: the reason, how many, the first. */
const unfit = (tools: Listing.Listing["unfit"]): ReadonlyArray<readonly [why: string, count: number, first: string]> =>
  [...new Set(tools.map(([, why]) => why))].map((why) => {
    const names = tools.filter(([, each]) => each === why).map(([name]) => name)
    return [why, names.length, names[0] ?? ""]
  })
