/** The tool `terminal`: one shell command in the sandbox, waited for or left running in the background. */
import { Effect, Schema } from "effect"
import { Sandbox } from "../sandbox/Sandbox.ts"
import * as Arguments from "./Arguments.ts"
import * as Shell from "./Shell.ts"
import * as Text from "./Text.ts"
import * as Tool from "./Tool.ts"

/** Seconds that a command may take: the operator's bound, and what holds when the model names none. */
export interface Limits {
  readonly commandTimeout: number
}

/** Seconds to wait for: what the model asks for, up to the operator's bound. */
export const seconds = (asked: number | undefined, { commandTimeout }: Limits): number =>
  asked === undefined ? commandTimeout : Math.min(asked, commandTimeout)

/** Runs commands. */
export const make = (limits: Limits): Tool.Tool =>
  Tool.make({
    name: "terminal",
    description:
      "Run a shell command. Files and background processes last from call to call; the working directory and shell " +
      "variables do not. Standard input is empty. Gives {output, exit_code, error}: output holds standard output and " +
      "standard error. For servers and other long work set background=true and follow it with the tool process.",
    parameters: Schema.Struct({
      command: Arguments.text("The command, as for bash -c"),
      timeout: Schema.optional(
        Arguments.whole(`Seconds to wait at most; ${limits.commandTimeout} by default, which is also the most`, 1)
      ),
      workdir: Schema.optional(Arguments.text("Directory to run in; the session's working directory by default")),
      background: Schema.optional(Arguments.flag("true: do not wait, give a session_id for the tool process"))
    }),
    run: Effect.fn("terminal.run")(function* ({ command, timeout, workdir, background }) {
      if (command.trim() === "") return yield* failed("", -1, "command: expected a command, got an empty string")
      yield* Shell.noNul("command", command)
      const cwd = workdir === undefined || workdir === "" ? undefined : yield* Shell.path("workdir", workdir)
      return yield* background === true ? start(command, cwd) : wait(command, cwd, seconds(timeout, limits))
    })
  })

const wait = Effect.fnUntraced(function* (command: string, cwd: string | undefined, timeout: number) {
  const sandbox = yield* Sandbox
  const result = yield* sandbox.exec(command.toWellFormed(), { cwd, timeout, keep: Text.resultBytes * 2 })
  switch (result._tag) {
    case "Exited":
      return { output: Text.ofOutput(result.output), exit_code: result.exitCode, error: "" }
    case "TimedOut":
      return yield* failed(
        Text.ofOutput(result.output),
        124,
        `timed out after ${timeout} second${timeout === 1 ? "" : "s"} and was killed; for long work use background=true`
      )
    case "NoDirectory":
      return yield* failed("", -1, `workdir: there is no directory ${result.cwd}`)
  }
})

const start = Effect.fnUntraced(function* (command: string, cwd: string | undefined) {
  const sandbox = yield* Sandbox
  const process = yield* sandbox
    .start(command.toWellFormed(), { cwd })
    .pipe(Effect.catchTag("FileError", (error) => failed("", -1, `workdir: ${error.message}`)))
  return {
    output: "started in the background",
    session_id: process.id,
    pid: process.pid,
    exit_code: 0,
    error: ""
  }
})

const failed = (output: string, exitCode: number, error: string): Effect.Effect<never, Tool.ToolFailure> =>
  Effect.fail(new Tool.ToolFailure({ error, result: { output, exit_code: exitCode } }))
