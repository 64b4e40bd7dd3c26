/** The tool execute_code: a program in Python or JavaScript, run in the sandbox. */
import { Effect, Ref, Schema, type Scope } from "effect"
import { type ExecResult, Sandbox } from "../sandbox/Sandbox.ts"
import * as Arguments from "./Arguments.ts"
import type { Setting } from "./Setting.ts"
import * as Shell from "./Shell.ts"
import type { Limits } from "./Terminal.ts"
import * as Text from "./Text.ts"
import * as Tool from "./Tool.ts"
import { perSession } from "./ToolSession.ts"
import type { Built } from "./Toolset.ts"

/** Bytes of a program at most. */
const mostBytes = 1_000_000

const languages = ["python", "javascript"] as const
type Language = (typeof languages)[number]

/** What models call them besides. */
const aliases: Readonly<Record<string, Language>> = {
  py: "python",
  python3: "python",
  js: "javascript",
  node: "javascript",
  nodejs: "javascript",
  ecmascript: "javascript"
}

const LanguageName = Schema.transform(
  Schema.String.annotations({
    description: "Language of the code; python by default",
    jsonSchema: { type: "string", enum: languages, description: "Language of the code; python by default" }
  }),
  Schema.Literal(...languages),
  { strict: false, decode: spelled, encode: (language) => language }
)

function spelled(given: string): string {
  const word = given.trim().toLowerCase()
  return Object.hasOwn(aliases, word) ? (aliases[word] ?? word) : word
}

/** Every sandbox may have interpreters: which there are is seen in the session's own. */
export const make = (setting: Setting): Effect.Effect<Built, never, Scope.Scope> => Effect.succeed([tool(setting)])

const tool = (limits: Limits): Tool.Tool => {
  /** Programs of a session so far. */
  const count = perSession(Ref.make(0))
  return Tool.make({
    name: "execute_code",
    description:
      "Run a program in Python or JavaScript (Node.js) in the working directory, to its end. Standard input is empty; " +
      "nothing of one call's variables is there in the next, but files are. Print what you want to see. Gives " +
      '{status, output, error}: status is "success", or "error" for a program that failed, and error then holds the end ' +
      `of what it printed. It may take ${limits.commandTimeout} seconds.`,
    parameters: Schema.Struct({
      code: Arguments.text("The whole program"),
      language: Schema.optional(LanguageName)
    }),
    run: Effect.fn("execute_code.run")(function* ({ code, language = "python" }) {
      const program = Buffer.from(unfenced(code).toWellFormed(), "utf8")
      if (code.trim() === "") return yield* failed("", "code: expected a program, got an empty text")
      if (program.length > mostBytes) {
        return yield* failed("", `code: at most ${mostBytes} bytes, got ${program.length}; put data into files`)
      }
      const sandbox = yield* Sandbox
      const number = yield* Ref.updateAndGet(yield* count.get, (made) => made + 1)
      const place = `d="\${TMPDIR:-/tmp}/execute_code_${number}"`
      const script = `${place}\n${language === "python" ? python : javascript(program.toString("utf8"))}`
      const result = yield* sandbox.exec(script, {
        timeout: limits.commandTimeout,
        stdin: program,
        keep: Text.resultBytes * 2
      })
      if (result._tag === "TimedOut") {
        yield* sandbox.exec(`${place}; rm -rf -- "$d"`, { timeout: Shell.limit })
      }
      return yield* told(result, language, limits)
    })
  })
}

/** Begins the line of a script of ours that could not run the program. */
const mark = "execute_code: "

/** What the tool itself could not do; not an exit code that programs use. */
const unable = 253

// The program comes by standard input. It is put into a file of its own, beside the working directory, so that errors show its lines.
const start = (interpreters: string, file: string): string => `
i=
for n in ${interpreters}; do i=$(command -v "$n" 2>/dev/null) && break; done
if [ -z "$i" ]; then
  h=
  for n in python3 python node nodejs; do command -v "$n" >/dev/null 2>&1 && h="$h $n"; done
  echo "${mark}none$h"
  exit ${unable}
fi
u=$(umask)
umask 077
rm -rf -- "$d"
if ! { mkdir -- "$d" && cat > "$d/${file}"; } 2>/dev/null; then
  rm -rf -- "$d"
  echo "${mark}full"
  exit ${unable}
fi
umask "$u"
`

const end = `
c=$?
rm -rf -- "$d"
exit $c
`

// The interpreter would look for modules beside the program: its own files are in the working directory.
const python = `${start("python3 python", "program.py")}
PYTHONPATH="$PWD\${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 PYTHONIOENCODING=utf-8 PYTHONDONTWRITEBYTECODE=1 \\
  "$i" "$d/program.py" </dev/null${end}`

/** Node resolves what a program from standard input asks for as if it lay in the working directory. */
const javascript = (code: string): string => `${start("node nodejs", "program.js")}
"$i" ${isModule(code) ? "--input-type=module " : ""}- <"$d/program.js"${end}`

/** Whether there are statements that only a module may have; older versions of Node do not look by themselves. */
const isModule = (code: string): boolean =>
  /^[ \t]*(import\s*[\w{*"'][^\n]*|export\s+(default|const|let|var|function|class|async|\{|\*)[^\n]*)$/m.test(code) &&
  !/\brequire\s*\(/.test(code)

/** Without the fence of Markdown that models put around code. */
const unfenced = (code: string): string => /^\s*```[\w+-]*[ \t]*\r?\n([\s\S]*?)\r?\n?```\s*$/.exec(code)?.[1] ?? code

const told = Effect.fnUntraced(function* (result: ExecResult, language: Language, { commandTimeout }: Limits) {
  switch (result._tag) {
    case "NoDirectory":
      return yield* failed("", `the working directory ${result.cwd} is not there any more; make it again`)
    case "TimedOut":
      return yield* failed(
        Text.ofOutput(result.output),
        `timed out after ${commandTimeout} second${commandTimeout === 1 ? "" : "s"} and was killed; ` +
          "do less in one call, or run it as a background process of the terminal",
        "timeout"
      )
    case "Exited": {
      const output = Text.ofOutput(result.output)
      if (result.exitCode === 0) return { status: "success", output, error: "" }
      if (result.exitCode === unable && output.startsWith(mark)) {
        return yield* failed("", missing(output.slice(mark.length).trim().split(" "), language))
      }
      return { status: "error", output, error: complaint(output, result.exitCode) }
    }
  }
})

const missing = ([why, ...there]: ReadonlyArray<string>, language: Language): string => {
  if (why !== "none") return "the program cannot be written to a file in the sandbox: no space or no permission"
  const other = there.length === 0 ? "nor any other interpreter; use the terminal" : `only ${there.join(", ")}`
  return `there is no ${language === "python" ? "Python" : "Node.js"} in this sandbox, ${other}`
}

/** Lines and characters of what a failed program printed last. */
const lastLines = 12
const lastCharacters = 1500

/** The line of an output that names what went wrong. */
const named = /^(Uncaught )?[A-Za-z_.]*(Error|Exception|Interrupt)\b/

/** The end of an output, where the traceback is; Node puts its own above the places. */
const complaint = (output: string, exitCode: number): string => {
  const lines = output.trimEnd().split("\n")
  const from = Math.max(0, lines.length - lastLines)
  const name = lines.findLastIndex((line) => named.test(line))
  const shown = name >= 0 && name < from ? lines.slice(name, name + lastLines) : lines.slice(from)
  const text = shown.join("\n")
  return `exit code ${exitCode}${text === "" ? "" : `\n${Text.tail(text, lastCharacters)}`}`
}

const failed = (output: string, error: string, status = "error"): Effect.Effect<never, Tool.ToolFailure> =>
  Effect.fail(new Tool.ToolFailure({ error, result: { status, output } }))
