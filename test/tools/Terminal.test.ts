import { Effect } from "effect"
import { expect, test } from "vitest"
import { inSandbox, put, sh, use } from "./support.ts"

test("A command's output and exit code come back, and a non-zero exit is no failure", () =>
  inSandbox(
    Effect.gen(function* () {
      const good = yield* use("terminal", { command: "echo out; echo err >&2" })
      expect(good).toMatchObject({ ok: true, valid: true })
      expect(good.result).toEqual({ output: "out\nerr\n", exit_code: 0, error: "" })
      const bad = yield* use("terminal", { command: "exit 3" })
      expect(bad).toMatchObject({ ok: true, result: { output: "", exit_code: 3, error: "" } })
    })
  ))

test("A command that takes too long fails with its output so far, code 124 and the seconds", () =>
  inSandbox(
    Effect.gen(function* () {
      const late = yield* use("terminal", { command: "echo begun; sleep 30", timeout: 1 })
      expect(late).toMatchObject({ ok: false, valid: true, result: { output: "begun\n", exit_code: 124 } })
      expect(late.result.error).toContain("1 second")
    })
  ))

test("A directory that is not there is a failure, one that is there is where the command runs", () =>
  inSandbox(
    Effect.gen(function* () {
      const nowhere = yield* use("terminal", { command: "pwd", workdir: "not/here" })
      expect(nowhere.ok).toBe(false)
      expect(nowhere.result.error).toContain("not/here")
      yield* put("some/where/a.txt", "")
      expect((yield* use("terminal", { command: "ls", workdir: "some/where" })).result.output).toBe("a.txt\n")
      const behind = yield* use("terminal", { command: "ls", workdir: "not/here", background: true })
      expect(behind.ok).toBe(false)
    })
  ))

test("Long and binary output stays within 50 KB of JSON and says how much is missing", () =>
  inSandbox(
    Effect.gen(function* () {
      const long = yield* use("terminal", { command: "seq 1 1000000" })
      expect(Buffer.byteLength(long.text)).toBeLessThan(51_000)
      expect(long.result.output).toMatch(/^1\n2\n[\s\S]*bytes left out[\s\S]*1000000\n$/)
      const binary = yield* use("terminal", { command: "head -c 300000 /dev/zero; head -c 300000 /dev/urandom" })
      expect(Buffer.byteLength(binary.text)).toBeLessThan(51_000)
      const wide = yield* use("terminal", { command: "for i in $(seq 20000); do printf '€𝄞'; done" })
      expect(wide.result.output).not.toContain("\ufffd")
      expect(wide.result.output.isWellFormed()).toBe(true)
    })
  ))

test("NUL bytes, lone surrogates, and commands of a megabyte are answered, not thrown", () =>
  inSandbox(
    Effect.gen(function* () {
      expect((yield* use("terminal", { command: "echo \0" })).result.error).toContain("NUL")
      expect((yield* use("terminal", { command: "pwd", workdir: "\0" })).ok).toBe(false)
      expect((yield* use("terminal", { command: "" })).ok).toBe(false)
      expect((yield* use("terminal", { command: "echo '\ud800'" })).result.output).toBe("\ufffd\n")
      expect((yield* use("terminal", { command: `: ${"x".repeat(1_000_000)}` })).result.exit_code).toBe(0)
    })
  ))

test("A background process is listed, polled, logged, fed, waited for and killed", () =>
  inSandbox(
    Effect.gen(function* () {
      const command = "seq 1 300; while read -r line; do echo got $line; done"
      const started = yield* use("terminal", { command, background: true })
      expect(started.result).toMatchObject({ session_id: "proc_1", exit_code: 0, error: "" })
      const at = { session_id: "proc_1" }
      expect((yield* use("process", { action: "write", ...at, data: "hé\n" })).result.bytes_written).toBe(4)
      yield* sh("sleep 0.5")
      const poll = yield* use("process", { action: "poll", ...at })
      expect(poll.result).toMatchObject({ ...at, command, status: "running", exit_code: null })
      expect(poll.result.output_preview).toMatch(/got hé\n$/)
      const log = yield* use("process", { action: "log", ...at, offset: 1, limit: 2 })
      expect(log.result).toMatchObject({ output: "2\n3", total_lines: 301, showing: "lines 2 to 3 of 301" })
      const last = yield* use("process", { action: "log", ...at, limit: 1 })
      expect(last.result).toMatchObject({ output: "got hé", showing: "lines 301 to 301 of 301" })
      expect((yield* use("process", { action: "wait", ...at, timeout: 1 })).result.status).toBe("running")
      expect((yield* use("process", { action: "list" })).result.processes).toMatchObject([{ ...at, status: "running" }])
      expect((yield* use("process", { action: "kill", ...at })).result.status).toBe("killed")
      expect((yield* use("process", { action: "kill", ...at })).result.status).toBe("already_exited")
      const late = yield* use("process", { action: "write", ...at, data: "x" })
      expect(late.ok).toBe(false)
    })
  ))

test("A log of which the middle is gone says how much and where, and counts only the lines it kept", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* use("terminal", { command: "seq 1 100000", background: true })
      const at = { action: "log", session_id: "proc_1" }
      yield* use("process", { ...at, action: "wait" })
      const end = (yield* use("process", { ...at, limit: 2 })).result
      expect(end).toMatchObject({ output: "99999\n100000", total_lines: null })
      const [, left, total, before] =
        /^(\d+) of (\d+) bytes were left out after line (\d+) of those kept/.exec(end.note)?.map(Number) ?? []
      expect(total).toBe(588_895)
      expect(left).toBeGreaterThan(400_000)
      expect(end.showing).toBe(`lines ${end.kept_lines - 1} to ${end.kept_lines} of the ${end.kept_lines} kept`)
      const middle = (yield* use("process", { ...at, offset: Number(before) - 2, limit: 4 })).result
      expect(middle.output.split("\n")).toEqual([
        String(Number(before) - 1),
        expect.stringMatching(/^\d+$/),
        `[… ${left} of ${total} bytes left out …]`,
        expect.stringMatching(/^\d*$/),
        expect.stringMatching(/^\d+$/)
      ])
      const start = (yield* use("process", { ...at, offset: 0, limit: 2 })).result
      expect(start).toMatchObject({ output: "1\n2", total_lines: null, note: end.note })
    })
  ))

test("wait gives the exit code of a process that ends in time", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* use("terminal", { command: "sleep 0.3; exit 7", background: true })
      const ended = yield* use("process", { action: "wait", session_id: "proc_1", timeout: 10 })
      expect(ended.result).toMatchObject({ status: "exited", exit_code: 7 })
    })
  ))

test("A process that is not there is a failure that names those there are", () =>
  inSandbox(
    Effect.gen(function* () {
      expect((yield* use("process", { action: "poll", session_id: "x" })).result.error).toContain("no process has been")
      yield* use("terminal", { command: "true", background: true })
      expect((yield* use("process", { action: "poll", session_id: "x" })).result.error).toContain("proc_1")
      expect((yield* use("process", { action: "kill" })).result.error).toContain("session_id: is missing")
    })
  ))
