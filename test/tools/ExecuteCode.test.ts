import { execFileSync } from "node:child_process"
import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import * as Local from "../../src/sandbox/Local.ts"
import { Sandbox, Sandboxes, type SandboxService } from "../../src/sandbox/Sandbox.ts"
import * as ExecuteCode from "../../src/tools/ExecuteCode.ts"
import * as Invoke from "../../src/tools/Invoke.ts"
import * as Setting from "../../src/tools/Setting.ts"
import { make } from "../../src/tools/Toolset.ts"
import { busybox, inBusybox, inSandbox, put, sh, use } from "./support.ts"

const execute = (code: string, language?: string) =>
  use("execute_code", { code, ...(language === undefined ? {} : { language }) })

const has = (program: string): boolean => {
  try {
    execFileSync("/bin/sh", ["-c", `command -v ${program}`])
    return true
  } catch {
    return false
  }
}

/** The sandbox of a test with other programs on PATH. */
const withPath = (path: string) => (inner: SandboxService) => ({
  ...inner,
  exec: (command: string, options: Parameters<SandboxService["exec"]>[1]) =>
    inner.exec(`PATH=${path}\n${command}`, options)
})

const brief = make({
  name: "code_execution",
  description: "",
  tools: await Effect.runPromise(Effect.scoped(ExecuteCode.make(Setting.make({ commandTimeout: 2 }))))
}).tools

test("A program that fails is no failure of the tool: its traceback is the error, with the right line", () =>
  inSandbox(
    Effect.gen(function* () {
      const used = yield* execute("print('before')\nraise ValueError('no good')\n")
      expect(used).toMatchObject({ ok: true, valid: true, result: { status: "error" } })
      expect(Object.keys(used.result)).toEqual(["status", "output", "error"])
      expect(used.result.output).toMatch(/^before\nTraceback/)
      expect(used.result.error).toMatch(/^exit code 1\n[\s\S]*line 2[\s\S]*ValueError: no good$/)
      expect((yield* execute("import sys; sys.exit(7)")).result).toEqual({
        status: "error",
        output: "",
        error: "exit code 7"
      })
    })
  ))

test("Python runs in the working directory, with its modules, nothing to read, and nothing left behind", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* put("helper.py", "def twice(x):\n    return 2 * x\n")
      yield* put("data.txt", "21")
      const code = [
        "import sys, threading",
        "import helper",
        "def main():",
        "    print(helper.twice(int(open('data.txt').read())), repr(sys.stdin.read()), 'ünï')",
        "if __name__ == '__main__':",
        "    thread = threading.Thread(target=main)",
        "    thread.start()",
        "open('made.txt', 'w').write('here')"
      ].join("\r\n")
      const used = yield* execute(code)
      expect(used.result).toEqual({ status: "success", output: "42 '' ünï\n", error: "" })
      expect(yield* sh('ls; ls -A "$TMPDIR"')).toBe("data.txt\nhelper.py\nmade.txt\n")
      const failing = yield* execute("import os; os._exit(3)")
      expect(failing.result.status).toBe("error")
      expect(yield* sh('ls -A "$TMPDIR"')).toBe("")
    })
  ))

test.skipIf(!has("node") && process.env.CI === undefined)(
  "JavaScript runs as script or module, finds files and packages of the working directory, and reads nothing",
  () =>
    inSandbox(
      Effect.gen(function* () {
        yield* put("half.cjs", "module.exports = (x) => x / 2")
        yield* put("third.mjs", "export default (x) => x / 3")
        yield* put("node_modules/seven/index.js", "module.exports = 7")
        const script = yield* execute(
          "const half = require('./half.cjs'); console.log(half(84), require('seven'), require('fs').readFileSync(0).length)",
          "javascript"
        )
        expect(script.result).toEqual({ status: "success", output: "42 7 0\n", error: "" })
        const module = yield* execute(
          'import third from "./third.mjs"\nimport seven from "seven"\nconsole.log(third(await Promise.resolve(126)), seven)',
          "js"
        )
        expect(module.result).toEqual({ status: "success", output: "42 7\n", error: "" })
        const failing = yield* execute("const x = 1\nx.y.z()", "node")
        expect(failing).toMatchObject({ ok: true, result: { status: "error" } })
        expect(failing.result.error).toMatch(/^exit code 1\n[\s\S]*TypeError/)
        expect(yield* sh('ls -A "$TMPDIR"')).toBe("")
      })
    )
)

test("A language by another of its names is taken, an unknown one is told which there are", () =>
  inSandbox(
    Effect.gen(function* () {
      for (const name of ["py", "Python3", " python "]) expect((yield* execute("print(1)", name)).ok).toBe(true)
      const unknown = yield* execute("puts 1", "ruby")
      expect(unknown).toMatchObject({ ok: false, valid: false })
      expect(unknown.result.error).toContain('language: expected one of "python", "javascript", got "ruby"')
    })
  ))

test("A program that takes too long is killed with its children, tells its output so far, and leaves no file", () =>
  inSandbox(
    Effect.gen(function* () {
      const code = "import subprocess\nprint('begun')\nsubprocess.run(['sleep', '31.4159'])"
      const used = yield* Invoke.call(brief, { name: "execute_code", arguments: JSON.stringify({ code }) })
      expect(used.ok).toBe(false)
      expect(JSON.parse(used.text)).toMatchObject({ status: "timeout", output: "begun\n" })
      expect(JSON.parse(used.text).error).toContain("timed out after 2 seconds")
      expect(yield* sh('ls -A "$TMPDIR"; pgrep -f "sleep 31[.]4159"')).toBe("")
    })
  ))

test("Floods, binary output, NUL, surrogates, fences and long programs all come to an answer", () =>
  inSandbox(
    Effect.gen(function* () {
      const flood = yield* execute("for i in range(1000000): print(i)")
      expect(flood.result.status).toBe("success")
      expect(Buffer.byteLength(flood.text)).toBeLessThan(52_000)
      expect(flood.result.output).toMatch(/^0\n1\n[\s\S]*bytes left out[\s\S]*999999\n$/)
      const binary = yield* execute("import os, sys; sys.stdout.buffer.write(os.urandom(300000)); sys.exit(1)")
      expect(binary.result.status).toBe("error")
      expect(Buffer.byteLength(binary.text)).toBeLessThan(62_000)
      expect((yield* execute("print(1)\0")).ok).toBe(true)
      expect((yield* execute("print('\ud800')")).result.output).toBe("\ufffd\n")
      expect((yield* execute("```python\nprint(5)\n```\n")).result.output).toBe("5\n")
      expect((yield* execute("  \n")).ok).toBe(false)
      expect((yield* execute(`x = '${"y".repeat(900_000)}'\nprint(len(x))`)).result.output).toBe("900000\n")
      expect((yield* execute("#".repeat(1_000_001))).result.error).toContain("at most 1000000 bytes")
      const lines = yield* execute(`${"\n".repeat(900_000)}import x`, "js")
      expect(lines.result.status).toBe("error")
    })
  ))

test("A sandbox without the interpreter says what there is instead", () =>
  inSandbox(
    Effect.gen(function* () {
      const inner = yield* Sandbox
      yield* sh(
        "mkdir -p bin none; for p in rm mkdir cat sh; do ln -s \"$(command -v $p)\" bin/$p; done; printf '#!/bin/sh\\n' > bin/node; chmod +x bin/node"
      )
      const path = `${inner.cwd}/bin`
      const poor = yield* Effect.provideService(execute("print(1)"), Sandbox, withPath(path)(inner))
      expect(poor).toMatchObject({ ok: false, result: { status: "error", output: "" } })
      expect(poor.result.error).toBe("there is no Python in this sandbox, only node")
      const none = yield* Effect.provideService(execute("1", "js"), Sandbox, withPath(`${inner.cwd}/none`)(inner))
      expect(none.result.error).toContain("there is no Node.js in this sandbox, nor any other")
    })
  ))

describe.skipIf(busybox === undefined && process.env.CI === undefined)("With busybox's shell", () => {
  test("a program runs as it does with others", () =>
    inBusybox(
      Effect.gen(function* () {
        const missing = yield* execute("print(1)")
        expect(missing.result.error).toContain("there is no Python in this sandbox")
        const inner = yield* Sandbox
        const python = execFileSync("python3", ["-c", "import sys; print(sys.executable)"]).toString().trim()
        yield* sh(`mkdir bin && ln -s ${python} bin/python3`)
        const rich = Effect.provideService(Sandbox, withPath(`$PATH:${inner.cwd}/bin`)(inner))
        expect((yield* rich(execute("import sys\nprint(6, sys.stdin.read())"))).result).toEqual({
          ...{ status: "success", output: "6 \n", error: "" }
        })
        const failing = yield* rich(execute("1 / 0"))
        expect(failing.result.error).toMatch(/^exit code 1\n[\s\S]*ZeroDivisionError: division by zero$/)
        expect(yield* sh('ls -A "$TMPDIR"')).toBe("")
      })
    ))
})

test("A namespace of its own runs programs too, and its working directory stays clean", () =>
  Effect.gen(function* () {
    const sandboxes = yield* Sandboxes
    const sandbox = yield* sandboxes.open({ id: "code", image: "", cwd: "" })
    yield* Effect.gen(function* () {
      const used = yield* execute("import os; print(os.getcwd(), os.listdir('.'))")
      expect(used.result).toEqual({ status: "success", output: "/workspace []\n", error: "" })
      expect(yield* sh("ls -A /tmp")).toBe("")
    }).pipe(Effect.provideService(Sandbox, sandbox))
  }).pipe(Effect.scoped, Effect.provide(Local.layer({ network: true, hide: [] })), (effect) => inSandbox(effect)))
