/** The tool `process`: what became of the commands that `terminal` left running in the background. */
import { Clock, Effect, Schema } from "effect"
import { type Background, type BackgroundState, Sandbox } from "../sandbox/Sandbox.ts"
import * as Arguments from "./Arguments.ts"
import { type Limits, seconds } from "./Terminal.ts"
import * as Text from "./Text.ts"
import * as Tool from "./Tool.ts"

/** Lines of a log shown when the model names no limit. */
const logLines = 200
const previewCharacters = 500

/** Watches and steers background processes. */
export const make = (limits: Limits): Tool.Tool =>
  Tool.make({
    name: "process",
    description:
      "Follow background processes started by terminal(background=true). list: all of them. poll: state and last " +
      "output of one. log: its output by lines. wait: until it ends or the timeout is over. kill: end it with its " +
      "children. write: send data to its standard input, as it is (end a line with \\n).",
    parameters: Schema.Struct({
      action: Arguments.choice("What to do", "list", "poll", "log", "wait", "kill", "write"),
      session_id: Schema.optional(Arguments.text("Which process; needed for all actions but list")),
      data: Schema.optional(Arguments.text("Text to send, for write")),
      timeout: Schema.optional(
        Arguments.whole(`Seconds to wait at most, for wait; ${limits.commandTimeout} by default and at most`, 0)
      ),
      offset: Schema.optional(
        Arguments.whole("Lines to skip from the start, for log; without it the last lines are shown", 0)
      ),
      limit: Schema.optional(Arguments.whole(`Lines to show at most, for log; ${logLines} by default`, 1))
    }),
    run: Effect.fn("process.run")(function* ({ action, session_id, data, timeout, offset, limit }) {
      if (action === "list") return yield* list
      const one = yield* find(action, session_id)
      switch (action) {
        case "poll":
          return yield* poll(one, yield* one.state)
        case "log":
          return log(one, yield* one.state, offset, limit ?? logLines)
        case "wait":
          return yield* poll(one, yield* one.wait(seconds(timeout, limits)))
        case "kill":
          return yield* kill(one)
        case "write":
          return yield* write(one, data)
      }
    })
  })

const list = Effect.gen(function* () {
  const sandbox = yield* Sandbox
  const all = yield* sandbox.started
  return { processes: yield* Effect.forEach(all, (one) => Effect.flatMap(one.state, (state) => poll(one, state))) }
})

const find = Effect.fnUntraced(function* (action: string, id: string | undefined) {
  const sandbox = yield* Sandbox
  const all = yield* sandbox.started
  const one = all.find((process) => process.id === id)
  if (one !== undefined) return one
  const there = all.length === 0 ? "no process has been started" : `there are ${all.map(({ id }) => id).join(", ")}`
  return yield* new Tool.ToolFailure({
    error:
      id === undefined
        ? `session_id: is missing, ${action} needs one; ${there}`
        : `session_id: there is no process ${JSON.stringify(id.slice(0, 100))}; ${there}`
  })
})

const poll = Effect.fnUntraced(function* (one: Background, state: BackgroundState) {
  const now = yield* Clock.currentTimeMillis
  return {
    session_id: one.id,
    command: Text.bound(one.command, 1000),
    status: status(state),
    pid: one.pid,
    uptime_seconds: Math.max(0, Math.round((now - one.startedAt) / 1000)),
    output_preview: preview(state),
    exit_code: state.exitCode
  }
})

const status = (state: BackgroundState): "running" | "exited" => (state.exitCode === null ? "running" : "exited")

const preview = (state: BackgroundState): string => {
  const text = Text.ofOutput(state.output)
  const end = Text.tail(text, previewCharacters)
  return end.length === text.length ? text : `…${end}`
}

const log = (one: Background, state: BackgroundState, offset: number | undefined, limit: number) => {
  const { start, end, left, total } = Text.kept(state.output)
  const before = linesOf(start)
  const lines = left === 0 ? before : [...before, ...linesOf(end)]
  const from = offset ?? Math.max(0, lines.length - limit)
  const shown = lines.slice(from, from + limit)
  const all = left === 0 ? lines.length : `the ${lines.length} kept`
  const range = shown.length === 0 ? "no lines" : `lines ${from + 1} to ${from + shown.length} of ${all}`
  const found = { session_id: one.id, status: status(state) }
  if (left === 0) return { ...found, output: Text.bound(shown.join("\n")), total_lines: lines.length, showing: range }
  const cut = before.length - from
  if (cut >= 0 && cut <= shown.length) shown.splice(cut, 0, Text.gap(left, total))
  return {
    ...found,
    output: Text.bound(shown.join("\n")),
    // How many lines there were in what was left out, nobody knows.
    total_lines: null,
    kept_lines: lines.length,
    showing: range,
    note:
      `${left} of ${total} bytes were left out after line ${before.length} of those kept; offset and line numbers ` +
      "count the kept lines only. To have all of a long output, let the command write it to a file"
  }
}

const linesOf = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.replace(/\n$/, "").split("\n"))

const kill = Effect.fnUntraced(function* (one: Background) {
  const before = yield* one.state
  if (before.exitCode !== null) return { session_id: one.id, status: "already_exited", exit_code: before.exitCode }
  yield* one.kill
  const after = yield* one.wait(1)
  return { session_id: one.id, status: "killed", exit_code: after.exitCode }
})

const write = Effect.fnUntraced(function* (one: Background, data: string | undefined) {
  if (data === undefined) return yield* new Tool.ToolFailure({ error: "data: is missing, write needs it" })
  const bytes = Buffer.from(data.toWellFormed(), "utf8")
  if (yield* one.write(bytes)) return { session_id: one.id, bytes_written: bytes.length }
  const { exitCode } = yield* one.state
  return yield* new Tool.ToolFailure({
    error: `${one.id} ${exitCode === null ? "takes no more input" : `has ended with exit code ${exitCode}`}`
  })
})
