/** What every sandbox must do, whatever its backend. */
import { Context, Effect, Exit, Fiber, Layer } from "effect"
import { describe, expect, it } from "vitest"
import * as Output from "../../src/sandbox/Output.ts"
import {
  type ExecOptions,
  type ExecResult,
  Sandbox,
  type SandboxError,
  Sandboxes,
  type SandboxService
} from "../../src/sandbox/Sandbox.ts"

/** What a result printed. */
export const said = (result: ExecResult): string => {
  if (result._tag === "NoDirectory") return `no directory ${result.cwd}`
  return Output.text(result.output).trimEnd()
}

let ids = 0
export const spec = (cwd = "", image = "") => ({ id: `t${ids++}`, image, cwd })

/** Runs `use` in a sandbox of its own. */
export const inside = <A, E, R = never>(use: (box: SandboxService) => Effect.Effect<A, E, R>, cwd = "") =>
  Effect.gen(function* () {
    const sandboxes = yield* Sandboxes
    return yield* Effect.flatMap(Sandbox, use).pipe(Effect.provide(Layer.scoped(Sandbox, sandboxes.open(spec(cwd)))))
  })

export const sh = (box: SandboxService, command: string, options: Partial<ExecOptions> = {}) =>
  Effect.map(box.exec(command, { timeout: 20, ...options }), said)

const encode = (text: string) => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** Sandboxes of which each that names no image runs this one. */
export const ofImage = <R>(layer: Layer.Layer<Sandboxes, SandboxError, R>, image: string) =>
  Layer.map(layer, (context) => {
    const { open } = Context.get(context, Sandboxes)
    return Context.make(Sandboxes, { open: (spec) => open({ ...spec, image: spec.image || image }) })
  })

/** `unique` is a time to sleep that no other process on the machine sleeps: `count` must find such processes inside. */
export const suite = (name: string, layer: Layer.Layer<Sandboxes, SandboxError>) =>
  describe(name, () => {
    const run = <A, E>(effect: Effect.Effect<A, E, Sandboxes>) => Effect.runPromise(Effect.provide(effect, layer))
    const alone = <A, E>(use: (box: SandboxService) => Effect.Effect<A, E>, cwd = "") => run(inside(use, cwd))
    const sleepers = (box: SandboxService, seconds: string) =>
      sh(
        box,
        `n=0; for f in /proc/[0-9]*/cmdline; do case "$( (tr '\\0' ' ' < $f) 2>/dev/null)" in "sleep ${seconds} ") n=$((n+1));; esac; done; echo $n`
      )

    it("runs a command and gives its output and exit code", () =>
      alone((box) =>
        Effect.gen(function* () {
          const result = yield* box.exec("echo out; echo err >&2; echo last; exit 3", { timeout: 10 })
          expect(result).toMatchObject({ _tag: "Exited", exitCode: 3 })
          expect(said(result)).toBe("out\nerr\nlast")
          expect(yield* sh(box, "echo one > /dev/stderr; echo two > /dev/stdout")).toBe("one\ntwo")
          expect(yield* box.exec("kill -9 $$", { timeout: 10 })).toMatchObject({ exitCode: 137 })
          expect(yield* box.exec("if", { timeout: 10 })).toMatchObject({ _tag: "Exited", exitCode: 2 })
          expect(yield* sh(box, 'echo "[$1][$#]"')).toBe("[][0]")
          expect(yield* box.exec("nosuchcommand", { timeout: 10 })).toMatchObject({ exitCode: 127 })
          expect(yield* box.exec("", { timeout: 10 })).toMatchObject({ exitCode: 0 })
        })
      ))

    it("gives a command an empty standard input, or the bytes it was given", () =>
      alone((box) =>
        Effect.gen(function* () {
          expect(yield* sh(box, "cat; echo end")).toBe("end")
          expect(yield* sh(box, "cat; cat /dev/stdin; echo end", { stdin: encode("") })).toBe("end")
          expect(yield* sh(box, "cat", { stdin: encode("given\n") })).toBe("given")
          expect(yield* sh(box, "cat /dev/stdin", { stdin: encode("given\n") })).toBe("given")
          expect(yield* sh(box, "exit 0", { stdin: new Uint8Array(2_000_000) })).toBe("")
        })
      ))

    it("takes long commands, and answers those no shell can take", () =>
      alone((box) =>
        Effect.gen(function* () {
          const word = "ä".repeat(150_000)
          expect(yield* sh(box, `x='${word}'; echo \${#x}; cat; echo $#`)).toMatch(/^(150000|300000)\n0$/)
          expect(yield* sh(box, "wc -c", { stdin: encode(word) })).toBe("300000")
          expect(yield* box.exec("echo \0", { timeout: 5 })).toMatchObject({ _tag: "Exited", exitCode: 127 })
          expect(yield* box.exec("#".repeat(3_000_000), { timeout: 5 })).toMatchObject({
            _tag: "Exited",
            exitCode: 127
          })
        })
      ))

    it("runs where it is told, and says when there is no such directory", () =>
      alone((box) =>
        Effect.gen(function* () {
          expect(yield* sh(box, "pwd")).toBe(box.cwd)
          yield* sh(box, "mkdir -p 'a b/-c'; touch file")
          expect(yield* sh(box, "pwd", { cwd: "a b/-c" })).toBe(`${box.cwd}/a b/-c`)
          expect(yield* sh(box, "pwd", { cwd: "/tmp" })).toBe("/tmp")
          for (const cwd of ["nowhere", "file", "/nowhere", "a\0b"]) {
            expect((yield* box.exec("echo ran", { timeout: 5, cwd }))._tag).toBe("NoDirectory")
          }
          expect(yield* sh(box, "cd nowhere || exit 0; echo ran")).not.toContain("ran")
        })
      ))

    it("keeps files, /tmp and background processes from call to call", () =>
      alone((box) =>
        Effect.gen(function* () {
          yield* sh(
            box,
            "echo kept > file; T=$(mktemp); echo $T > name; echo also > $T; sleep 7101 >/dev/null & echo $! > pid"
          )
          expect(yield* sh(box, "cat file; cat $(cat name); kill -0 $(cat pid) && echo alive")).toBe(
            "kept\nalso\nalive"
          )
          yield* sh(box, "kill $(cat pid)")
        })
      ))

    it("is not held up by a background child that holds its output", () =>
      alone((box) =>
        Effect.gen(function* () {
          const before = performance.now()
          expect(yield* sh(box, "(while :; do echo tick; sleep 0.02; done) & sleep 7102 & echo done")).toContain("done")
          expect(performance.now() - before).toBeLessThan(2500)
          // It must not have died of a closed pipe.
          yield* Effect.sleep(300)
          expect(yield* sleepers(box, "7102")).toBe("1")
          expect(
            yield* sh(
              box,
              "for i in 1 2 3 4 5 6 7 8 9; do grep -qa ^sleep.0.02 /proc/[0-9]*/cmdline 2>/dev/null && echo ticking && break; done"
            )
          ).toBe("ticking")
        })
      ))

    it("ends a command that runs out of time with all its children, and spares what earlier calls started", () =>
      alone((box) =>
        Effect.gen(function* () {
          yield* sh(box, "setsid sleep 7201 >/dev/null 2>&1 & sleep 7201 > /dev/null & true")
          const before = performance.now()
          const result = yield* box.exec(
            "echo begun; sleep 7202 & setsid sleep 7202 & nohup setsid sh -c 'sleep 7202 & setsid sleep 7202' & (setsid sh -c 'trap \"\" TERM; while :; do sleep 7202; done' &) ; env -u SANDBOX_CALL sleep 7202",
            { timeout: 0.7 }
          )
          expect(result._tag).toBe("TimedOut")
          expect(said(result)).toContain("begun")
          expect(performance.now() - before).toBeLessThan(4000)
          expect(yield* sleepers(box, "7202")).toBe("0")
          expect(yield* sleepers(box, "7201")).toBe("2")
        })
      ))

    it("spares a daemon without a mark, and what it goes on starting", () =>
      alone((box) =>
        Effect.gen(function* () {
          const daemon = "while :; do sleep 0.3; echo x >> beats; done"
          yield* sh(
            box,
            `env -i PATH="$PATH" setsid sh -c '${daemon}' >/dev/null 2>&1 </dev/null & sleep 7204 >/dev/null 2>&1 &`
          )
          const before = performance.now()
          expect((yield* box.exec("sleep 7205", { timeout: 1 }))._tag).toBe("TimedOut")
          expect(performance.now() - before).toBeLessThan(5000)
          const count = Number(yield* sh(box, "wc -l < beats"))
          yield* Effect.sleep(1000)
          expect(Number(yield* sh(box, "wc -l < beats"))).toBeGreaterThan(count)
          expect([yield* sleepers(box, "7204"), yield* sleepers(box, "7205")]).toEqual(["1", "0"])
        })
      ))

    const killsAll = () =>
      alone((box) =>
        Effect.gen(function* () {
          expect(Number(yield* sh(box, "ls /proc | grep -c '^[0-9]'"))).toBeLessThan(20)
          const result = yield* box.exec("echo x >> count; kill -9 -1; echo y >> count", { timeout: 20 })
          expect(result._tag).toBe("Exited")
          expect(yield* sh(box, "grep -c x count")).toBe("1")
        })
      )
    // In a plain folder that would be every process of the machine.
    if (name !== "plain folder") it("runs no command twice that kills all it can, and goes on", killsAll)

    it("ends children whatever their name is", () =>
      alone((box) =>
        Effect.gen(function* () {
          const name = "$(printf 'x\\nall\\n1 (y) S')"
          yield* sh(box, `printf '#!/bin/sh\nsleep 7203; true\n' > "${name}"; chmod 755 "${name}"`)
          const result = yield* box.exec(`setsid "./${name}" & setsid "./${name}" & sleep 7203`, { timeout: 0.7 })
          expect(result._tag).toBe("TimedOut")
          expect(yield* sleepers(box, "7203")).toBe("0")
        })
      ))

    it("cuts huge output to its head and tail", () =>
      alone((box) =>
        Effect.gen(function* () {
          const before = process.memoryUsage().rss
          const result = yield* box.exec("echo first; yes | head -c 50000000; echo last", { timeout: 60, keep: 10_000 })
          if (result._tag !== "Exited") throw new Error(result._tag)
          expect(Output.size(result.output)).toBe(50_000_011)
          expect(result.output.head.length + result.output.tail.length).toBe(10_000)
          expect(said(result)).toMatch(/^first\ny\n[\s\S]*bytes left out[\s\S]*\nlast$/)
          expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000)
        })
      ))

    it("takes output of any bytes", () =>
      alone((box) =>
        Effect.gen(function* () {
          expect(yield* sh(box, "printf '\\377\\000\\036a\\n'")).toBe("\ufffd\0\x1ea")
          expect((yield* sh(box, "head -c 100000 /dev/urandom")).isWellFormed()).toBe(true)
        })
      ))

    it("reads and writes files as they are", () =>
      alone((box) =>
        Effect.gen(function* () {
          const bytes = new Uint8Array(300_000).map((_, index) => (index * 7919) % 256)
          yield* box.write("deep/er/data.bin", bytes)
          expect(yield* box.read("deep/er/data.bin", { maxBytes: 1_000_000 })).toEqual({ bytes, size: 300_000 })
          expect(yield* box.read("deep/er/data.bin", { maxBytes: 1000 })).toEqual({
            bytes: bytes.slice(0, 1000),
            size: 300_000
          })
          expect(yield* box.read("deep/er/data.bin", { maxBytes: 0 })).toEqual({
            bytes: new Uint8Array(0),
            size: 300_000
          })
          yield* box.write("~/-odd 'name'\n", encode("x"))
          expect(yield* sh(box, "cat ~/-odd*")).toBe("x")
          yield* sh(box, "echo old > run.sh; chmod 751 run.sh; ln -s run.sh link")
          yield* box.write("link", encode("new"))
          expect(yield* sh(box, "cat run.sh; stat -c ' %a' run.sh; test -L link && echo link")).toBe("new 751\nlink")
          yield* box.write("empty", new Uint8Array(0))
          expect(decode((yield* box.read("empty", { maxBytes: 10 })).bytes)).toBe("")
          expect((yield* box.read("/proc/self/status", { maxBytes: 20 })).bytes.length).toBe(20)
        })
      ))

    it("says at once why a file cannot be read", () =>
      alone((box) =>
        Effect.gen(function* () {
          yield* sh(
            box,
            "mkfifo pipe; mkdir folder; ln -s gone dangling; ln -s loop loop; echo x > file; chmod 0 file; ln -s /dev/zero zero"
          )
          const reason = (path: string) =>
            Effect.map(Effect.flip(box.read(path, { maxBytes: 10 })), (error) =>
              error._tag === "FileError" ? error.reason : error.message
            )
          const before = performance.now()
          expect(yield* reason("pipe")).toBe("NotAFile")
          expect(yield* reason("/dev/zero")).toBe("NotAFile")
          expect(yield* reason("zero")).toBe("NotAFile")
          expect(yield* reason("folder")).toBe("NotAFile")
          expect(yield* reason(".")).toBe("NotAFile")
          expect(yield* reason("missing")).toBe("NotFound")
          expect(yield* reason("dangling")).toBe("NotFound")
          expect(yield* reason("")).toBe("BadPath")
          expect(yield* reason("a\0b")).toBe("BadPath")
          expect(yield* reason("x".repeat(300))).toBe("BadPath")
          expect(yield* reason("x/".repeat(3000))).toBe("BadPath")
          expect(performance.now() - before).toBeLessThan(5000)
        })
      ))

    it("says at once why a file cannot be written", () =>
      alone((box) =>
        Effect.gen(function* () {
          yield* sh(box, "mkfifo pipe; mkdir folder; echo x > file")
          const reason = (path: string) =>
            Effect.map(Effect.flip(box.write(path, encode("data"))), (error) =>
              error._tag === "FileError" ? error.reason : error.message
            )
          expect(yield* reason("pipe")).toBe("NotAFile")
          expect(yield* reason("folder")).toBe("NotAFile")
          expect(yield* reason("file/below")).toBe("BadPath")
          expect(yield* reason("file/far/below")).toBe("BadPath")
          expect(yield* reason("new/")).toBe("BadPath")
          expect(yield* reason("")).toBe("BadPath")
          expect(yield* reason("a\0b")).toBe("BadPath")
          expect(yield* reason("/dev/full")).toBe("NotAFile")
          expect(yield* reason(`/proc/self/${ids}/new`)).toMatch(/NotFound|NotAllowed|BadPath|Other/)
        })
      ))

    it("starts processes in the background that can be fed, watched and killed", () =>
      alone((box) =>
        Effect.gen(function* () {
          const echo = yield* box.start("while read line; do echo got $line; done; exit 4", {})
          expect(echo.id).toBe("proc_1")
          expect(echo.pid).toBeGreaterThan(0)
          expect(yield* sh(box, `kill -0 ${echo.pid} && echo alive`)).toBe("alive")
          expect(yield* echo.write(encode("one\n"))).toBe(true)
          const running = yield* echo.wait(0.3)
          expect(running.exitCode).toBe(null)
          expect(Output.text(running.output)).toBe("got one\n")
          yield* echo.kill
          expect((yield* echo.state).exitCode).not.toBe(null)
          expect(yield* echo.write(encode("two\n"))).toBe(false)
          const family = yield* box.start("setsid sleep 7301 & sleep 7301 & (setsid sleep 7301 &); wait", {})
          const other = yield* box.start("sleep 7302; echo no", {})
          yield* Effect.sleep(200)
          expect(yield* sleepers(box, "7301")).toBe("3")
          yield* family.kill
          expect(yield* sleepers(box, "7301")).toBe("0")
          expect(yield* sleepers(box, "7302")).toBe("1")
          const short = yield* box.start("echo bye; exit 5", {})
          expect(yield* short.wait(10)).toMatchObject({ exitCode: 5 })
          expect(Output.text((yield* short.state).output)).toBe("bye\n")
          expect((yield* box.started).map((one) => one.id)).toEqual([echo.id, family.id, other.id, short.id])
          expect(yield* Effect.flip(box.start("true", { cwd: "nowhere" }))).toMatchObject({ reason: "NotFound" })
          expect((yield* other.state).exitCode).toBe(null)
        })
      ))

    it("stays joined to a program, which ends with its connection, with all it started", () =>
      alone((box) =>
        Effect.gen(function* () {
          if (box.connect === undefined) return expect.unreachable("it gives no pipe")
          const { connect } = box
          let said = ""
          const take = (data: Uint8Array) => {
            said += decode(data)
          }
          const saying = (text: string) =>
            Effect.gen(function* () {
              for (let waits = 0; waits < 200 && !said.includes(text); waits++) yield* Effect.sleep(20)
              expect(said).toContain(text)
            })
          const talk = Effect.gen(function* () {
            const command = "sleep 7303 & setsid sleep 7303 & while read line; do echo got $line; echo err >&2; done"
            const connection = yield* connect(command, { take })
            expect(yield* connection.write(encode("one\ntwo\n"))).toBe(true)
            yield* saying("got two\nerr\n")
            // More than is kept of any output comes through.
            expect(yield* connection.write(encode(`${"x".repeat(3000)}\n`.repeat(100)))).toBe(true)
            expect(yield* connection.write(encode("three\n"))).toBe(true)
            yield* saying("got three\n")
            expect(said.length).toBeGreaterThan(300_000)
            expect(yield* sleepers(box, "7303")).toBe("2")
          })
          yield* Effect.scoped(talk)
          expect(yield* sleepers(box, "7303")).toBe("0")
          const ended = yield* Effect.scoped(
            Effect.flatMap(connect("echo bye; exit 5", { take, cwd: "/" }), ({ ended }) => ended)
          )
          expect(ended).toBe(5)
          expect(said).toMatch(/bye\n$/)
          expect(yield* Effect.flip(Effect.scoped(connect("true", { take, cwd: "nowhere" })))).toMatchObject({
            reason: "NotFound"
          })
          expect(yield* box.started).toEqual([])
        })
      ))

    it("shows two sandboxes nothing of each other's work folder", () =>
      run(
        inside((one) =>
          Effect.gen(function* () {
            yield* sh(one, "echo mine > secret; echo $PWD > ~/where")
            return yield* inside((two) =>
              Effect.gen(function* () {
                expect(yield* sh(two, "ls; ls ~")).toBe("")
                yield* sh(two, "echo theirs > secret")
                expect(yield* sh(one, "cat secret")).toBe("mine")
              })
            )
          })
        )
      ))

    it("leaves nothing of a command that is interrupted", () =>
      alone((box) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(box.exec("setsid sleep 7401 & sleep 7401", { timeout: 60 }))
          yield* Effect.sleep(500)
          const before = performance.now()
          expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
          expect(performance.now() - before).toBeLessThan(3000)
          expect(yield* sleepers(box, "7401")).toBe("0")
        })
      ))

    it("opens twenty at once, each with what is its own", () =>
      run(
        Effect.gen(function* () {
          const answers = yield* Effect.forEach(
            Array.from({ length: 20 }, (_, index) => index),
            (index) =>
              inside((box) =>
                Effect.gen(function* () {
                  yield* Effect.all([sh(box, `echo ${index} >> file`), sh(box, `echo ${index} >> file`)], {
                    concurrency: "unbounded"
                  })
                  return yield* sh(box, "cat file; ls")
                })
              ),
            { concurrency: "unbounded" }
          )
          expect(answers).toEqual(answers.map((_, index) => `${index}\n${index}\nfile`))
        })
      ))

    it("gives its tools nothing of the runner's environment", async () => {
      process.env.SECRET_OF_THE_RUNNER = "s3cr3t"
      await alone((box) =>
        Effect.map(
          sh(box, "env; cat /proc/self/environ; cat /proc/1/environ /proc/$PPID/environ 2>/dev/null"),
          (text) => {
            if (name !== "plain folder") expect(text).not.toContain("s3cr3t")
            expect(text.split("\0")[0]).not.toContain("s3cr3t")
          }
        )
      )
    })
  })
