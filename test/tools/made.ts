/** Tools of one maker with a setting of the test's own, called in a sandbox the way an agent calls them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import sharp from "sharp"
import { onTestFinished } from "vitest"
import * as Invoke from "../../src/tools/Invoke.ts"
import * as Setting from "../../src/tools/Setting.ts"
import type { Needs, RunError } from "../../src/tools/Tool.ts"
import * as Toolset from "../../src/tools/Toolset.ts"
import * as Variables from "../../src/tools/Variables.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { inSandbox, type Used } from "./support.ts"

type Maker = (setting: Setting.Setting) => Effect.Effect<Toolset.Built, never, Scope.Scope>

/** What a maker makes of a setting; variables by their names. */
export const toolset = (
  make: Maker,
  {
    variables = {},
    ...setting
  }: Omit<Partial<Setting.Setting>, "variables"> & {
    readonly variables?: Record<string, string>
  }
) =>
  Effect.map(make(Setting.make({ ...setting, variables: Variables.from(variables) })), (tools) =>
    Toolset.make({ name: "made", description: "", tools })
  )

/** Calls the only tool; the result is the parsed text. */
export const call = ({ tools }: Toolset.Toolset, args: object): Effect.Effect<Used, RunError, Needs> =>
  Effect.map(Invoke.call(tools, { name: tools[0]?.name ?? "", arguments: JSON.stringify(args) }), (invoked) => ({
    ...invoked,
    result: JSON.parse(invoked.text)
  }))

/** Runs a test's effect in a sandbox and a scope. */
export const scoped = <A, E>(effect: Effect.Effect<A, E, Needs | Scope.Scope>): Promise<A> =>
  inSandbox(Effect.scoped(effect))

/** A server that is closed after the test. */
export const serve = async (handler: ModelServer.Handler): Promise<ModelServer.ModelServer> => {
  const server = await ModelServer.start(handler)
  onTestFinished(() => server.close())
  return server
}

/** A folder that is gone after the test. */
export const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), "media-"))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const blank = (red: number) =>
  sharp({ create: { width: 12, height: 8, channels: 3, background: { r: red, g: 20, b: 30 } } })

/** A picture of each kind; another for each colour. */
export const png = (red = 10) => blank(red).png().toBuffer()
export const jpeg = () => blank(1).jpeg().toBuffer()
export const webp = () => blank(1).webp().toBuffer()
export const gif = () => blank(1).gif().toBuffer()
