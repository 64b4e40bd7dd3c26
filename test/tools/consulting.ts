/** Tools that ask models, over a model server and the layers that a run puts around it. */
import { Effect, Layer, Logger, type Scope } from "effect"
import { onTestFinished } from "vitest"
import { addUsage, noUsage, type Request } from "../../src/model/Model.ts"
import * as OpenAi from "../../src/model/OpenAi.ts"
import * as Retry from "../../src/model/Retry.ts"
import * as Triage from "../../src/model/Triage.ts"
import * as Invoke from "../../src/tools/Invoke.ts"
import * as Setting from "../../src/tools/Setting.ts"
import type { Needs, RunError } from "../../src/tools/Tool.ts"
import * as ToolSession from "../../src/tools/ToolSession.ts"
import * as Toolset from "../../src/tools/Toolset.ts"
import { request } from "../model/asks.ts"
import * as Server from "../support/ModelServer.ts"
import { place } from "./support.ts"

export type Maker = (setting: Setting.Setting) => Effect.Effect<Toolset.Built, never, Scope.Scope>

export const served = async (handler: Server.Handler): Promise<Server.ModelServer> => {
  const server = await Server.start(handler)
  onTestFinished(() => server.close())
  return server
}

export interface Options {
  readonly setting?: Partial<Setting.Setting>
  readonly request?: Partial<Request>
  readonly affords?: (questions: number) => boolean
}

/** Makes the tools and runs a test's calls of them, in one session: gives what they gave, and what it spent. */
export const consult = async <A, E>(
  make: Maker,
  server: Pick<Server.ModelServer, "url">,
  calls: (
    // biome-ignore lint/suspicious/noExplicitAny: tests look into results of every shape
    use: (name: string, args: object) => Effect.Effect<any, RunError, Needs>,
    set: Toolset.Toolset
  ) => Effect.Effect<A, E, Needs>,
  options: Options = {}
) => {
  let spent = noUsage
  const endpoint = { baseUrl: server.url, apiKey: undefined, model: "test-model", offline: false }
  const setting = Setting.make({ endpoint, ...options.setting })
  const session = Layer.scoped(
    ToolSession.ToolSession,
    Effect.map(Effect.scope, (scope) => ({
      whose: { prompt: "p", place: 0, sample: 0, occurrence: 0 },
      scope,
      spent: (usage: typeof noUsage) => {
        spent = addUsage(spent, usage)
      },
      affords: options.affords ?? (() => true)
    }))
  )
  const model = Triage.layer.pipe(
    Layer.provide(Retry.layer({ tries: 2 })),
    Layer.provide(OpenAi.layer(request(server.url, options.request), undefined))
  )
  const result = await Effect.scoped(
    Effect.flatMap(make(setting), (tools) => {
      const set = Toolset.make({ name: "set", description: "", tools })
      return calls(
        (name, args) =>
          Effect.map(Invoke.call(set.tools, { name, arguments: JSON.stringify(args) }), (invoked) => ({
            ...invoked,
            result: JSON.parse(invoked.text)
          })),
        set
      )
    })
  ).pipe(
    Effect.provide(Layer.mergeAll(place, session, model)),
    Effect.provide(Logger.replace(Logger.defaultLogger, Logger.none)),
    Effect.runPromise
  )
  return { result, spent }
}
