/** Sandboxes without a machine behind them: commands are echoed, and who is open is counted. */
import { Effect, Layer, Ref } from "effect"
import * as Output from "../../src/sandbox/Output.ts"
import {
  FileError,
  Sandbox,
  type SandboxError,
  Sandboxes,
  type SandboxService,
  type SandboxSpec
} from "../../src/sandbox/Sandbox.ts"

/** What happened to the sandboxes of a layer. */
export interface Log {
  readonly opened: ReadonlyArray<SandboxSpec>
  readonly closed: ReadonlyArray<string>
  /** The most that were open at one time. */
  readonly most: number
}

export const nothing: Log = { opened: [], closed: [], most: 0 }

const noFile = (path: string) => new FileError({ path, reason: "NotFound", detail: `there is no file ${path}` })

const service = (exec: SandboxService["exec"]): SandboxService => ({
  cwd: "/work",
  exec,
  start: (command) => Effect.fail(noFile(command)),
  started: Effect.succeed([]),
  read: (path) => Effect.fail(noFile(path)),
  write: () => Effect.void
})

/** A command's output is the command. */
const echo: SandboxService["exec"] = (command) =>
  Effect.succeed({ _tag: "Exited", exitCode: 0, output: Output.fromText(command) })

/** One sandbox whose commands are echoed. */
export const sandbox: Layer.Layer<Sandbox> = Layer.succeed(Sandbox, service(echo))

export interface Options {
  readonly exec?: SandboxService["exec"]
  /** Runs before a sandbox opens. */
  readonly open?: (spec: SandboxSpec) => Effect.Effect<void, SandboxError>
}

const opened = (log: Ref.Ref<Log>, { exec, open }: Options, spec: SandboxSpec) =>
  Effect.gen(function* () {
    if (open !== undefined) yield* open(spec)
    yield* Effect.acquireRelease(
      Ref.update(log, ({ opened, closed, most }) => ({
        opened: [...opened, spec],
        closed,
        most: Math.max(most, opened.length + 1 - closed.length)
      })),
      () => Ref.update(log, (all) => ({ ...all, closed: [...all.closed, spec.id] }))
    )
    return service(exec ?? echo)
  })

/** Sandboxes that note in `log` what becomes of them. */
export const layer = (log: Ref.Ref<Log>, options: Options = {}): Layer.Layer<Sandboxes> =>
  Layer.succeed(Sandboxes, { open: (spec) => opened(log, options, spec) })
