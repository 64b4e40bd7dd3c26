/** A session's tools in a real local sandbox, called the way an agent calls them. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Logger, LogLevel } from "effect"
import * as Scripted from "../../src/model/Scripted.ts"
import * as Local from "../../src/sandbox/Local.ts"
import { Sandbox, Sandboxes, type SandboxService } from "../../src/sandbox/Sandbox.ts"
import * as Catalogue from "../../src/tools/Catalogue.ts"
import * as Invoke from "../../src/tools/Invoke.ts"
import * as Setting from "../../src/tools/Setting.ts"
import * as Shell from "../../src/tools/Shell.ts"
import type { Needs, RunError } from "../../src/tools/Tool.ts"
import * as ToolSession from "../../src/tools/ToolSession.ts"

/** Every tool that is built, with commands of at most 20 seconds. */
export const tools = (
  await Effect.runPromise(Effect.scoped(Catalogue.catalogue(Setting.make({ commandTimeout: 20 }))))
).flatMap((toolset) => toolset.tools)

/** Calls a tool with arguments as a value; the result is the parsed text. */
export const use = (name: string, args: object): Effect.Effect<Used, RunError, Needs> =>
  Effect.map(Invoke.call(tools, { name, arguments: JSON.stringify(args) }), (invoked) => ({
    ...invoked,
    result: JSON.parse(invoked.text)
  }))

export interface Used extends Invoke.Invoked {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into results of every shape
  readonly result: any
}

/** Runs a command outside the tools, to set the stage. */
export const sh = (command: string) =>
  Effect.gen(function* () {
    const sandbox = yield* Sandbox
    const result = yield* sandbox.exec(command, { timeout: 20 })
    return result._tag === "Exited" ? Buffer.from(result.output.head).toString("utf8") : result._tag
  })

/** Writes a file outside the tools. */
export const put = (path: string, content: string | Uint8Array) =>
  Effect.flatMap(Sandbox, (sandbox) => sandbox.write(path, Buffer.from(content)))

/** A file's bytes as text. */
export const get = (path: string) =>
  Effect.flatMap(Sandbox, (sandbox) => sandbox.read(path, { maxBytes: 20_000_000 })).pipe(
    Effect.map(({ bytes }) => Buffer.from(bytes).toString("utf8"))
  )

/** A sandbox of its own for each test. */
export const place = Layer.unwrapEffect(
  Effect.map(Sandboxes, (sandboxes) => Layer.scoped(Sandbox, sandboxes.open({ id: "tools", image: "", cwd: "" })))
).pipe(
  Layer.provide(Local.layer({ network: true, hide: [], namespace: "plain" })),
  Layer.provide(Logger.minimumLogLevel(LogLevel.Error))
)

const model = Scripted.fromScript({ prompts: {}, default: [] })

/** Runs a test's effect in a sandbox of its own. */
export const inSandbox = <A, E>(effect: Effect.Effect<A, E, Needs>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, Layer.mergeAll(place, ToolSession.layer, model)))

/** A busybox to try scripts with, where the machine has one (or BUSYBOX names it). */
export const busybox: string | undefined = [process.env.BUSYBOX ?? "", "/bin/busybox", "/usr/bin/busybox"].find(
  (path) => path !== "" && existsSync(path)
)

/** The same sandbox whose commands find nothing but busybox. */
export const inBusybox = <A, E>(effect: Effect.Effect<A, E, Needs>): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "applets-"))
  const applets = join(folder, "bin")
  mkdirSync(applets)
  execFileSync(busybox ?? "busybox", ["--install", "-s", applets])
  const only = (inner: SandboxService): SandboxService => ({
    ...inner,
    exec: (command, options) => inner.exec(`PATH=${applets} ${applets}/sh -c ${Shell.quote(command)}`, options)
  })
  const poor = Layer.effect(Sandbox, Effect.map(Sandbox, only)).pipe(Layer.provide(place))
  return Effect.runPromise(Effect.provide(effect, Layer.mergeAll(poor, ToolSession.layer, model))).finally(() =>
    rmSync(folder, { recursive: true })
  )
}
