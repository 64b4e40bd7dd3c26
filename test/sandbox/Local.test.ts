import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Layer, Logger } from "effect"
import { build } from "esbuild"
import { afterAll, describe, expect, it } from "vitest"
import * as Local from "../../src/sandbox/Local.ts"
import { Sandbox, Sandboxes, type SandboxService } from "../../src/sandbox/Sandbox.ts"
import { inside, said, sh, spec, suite } from "./suite.ts"

const root = mkdtempSync(join(tmpdir(), "sandbox-test-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const works = spawnSync("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0
if (!works && process.env.CI === undefined) console.log("bubblewrap does not work here: its tests are skipped")

const quiet = Logger.replace(Logger.defaultLogger, Logger.none)
const plain = Local.layer({ network: true, hide: [], root, namespace: "plain" }).pipe(Layer.provide(quiet))

suite("plain folder", plain)

/** Whole command lines of live processes that contain `part`. */
const processes = (part: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) =>
      existsSync(`/proc/${pid}/cmdline`) ? [`${pid} ${spawnSync("cat", [`/proc/${pid}/cmdline`]).stdout}`] : []
    )
    .filter((line) => line.includes(part))

describe("plain folder, as the host sees it", () => {
  it("is one warning, one line long", async () => {
    const lines: Array<unknown> = []
    const logger = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message }) => lines.push(message))
    )
    const program = Effect.all([inside((box) => sh(box, "true")), inside((box) => sh(box, "true"))])
    await Effect.runPromise(
      program.pipe(
        Effect.provide(Local.layer({ network: true, hide: [], root, namespace: "plain" })),
        Effect.provide(logger)
      )
    )
    expect(lines).toHaveLength(1)
    expect(String(lines[0])).not.toContain("\n")
    expect(String(lines[0])).toContain("bubblewrap")
  })

  it("is refused where commands are to have no network", async () => {
    const none = Local.layer({ network: false, hide: [], root, namespace: "plain" })
    const error = await Effect.runPromise(Effect.flip(Effect.scoped(Layer.build(none))))
    expect(error).toMatchObject({ _tag: "SandboxError", reason: "Unavailable" })
    expect(error.message).toMatch(/^--network=off needs a bubblewrap sandbox[^\n]*leave --network out$/)
  })

  it("uses an absolute working directory as it is named, and makes it", async () => {
    const cwd = join(root, "made", "here")
    await Effect.runPromise(inside((box) => sh(box, "echo x > file"), cwd).pipe(Effect.provide(plain)))
    expect(readFileSync(join(cwd, "file"), "utf8")).toBe("x\n")
  })

  it("leaves no process and no folder when it closes", async () => {
    await Effect.runPromise(
      inside((box) =>
        sh(box, "setsid sleep 7501 & nohup sleep 7501 & env -i setsid sleep 7501 & mkdir -p a/b; chmod 0 a")
      ).pipe(Effect.provide(plain))
    )
    expect(processes("sleep\x007501")).toEqual([])
    expect(readdirSync(root).filter((name) => name.startsWith("batch-runner"))).toEqual([])
  })
})

describe("any local sandbox", () => {
  it("refuses a container image", async () => {
    const program = Effect.gen(function* () {
      const sandboxes = yield* Sandboxes
      return yield* Effect.flip(Effect.provide(Sandbox, Layer.scoped(Sandbox, sandboxes.open(spec("", "python:3.12")))))
    })
    const error = await Effect.runPromise(Effect.provide(program, plain))
    expect(error).toMatchObject({ _tag: "SandboxError", reason: "Unavailable" })
    expect(error.message).toContain("python:3.12")
  })

  it("makes nothing while no tool is called", async () => {
    await Effect.runPromise(
      inside(() =>
        Effect.sync(() => expect(readdirSync(root).filter((name) => name.startsWith("batch-runner"))).toEqual([]))
      ).pipe(Effect.provide(plain))
    )
  })

  it("removes what dead runners left, and nothing of live ones", async () => {
    const own = readFileSync("/proc/self/stat", "latin1")
    const start = own.slice(own.lastIndexOf(")") + 2).split(" ")[19]
    const space = spawnSync("readlink", ["/proc/self/ns/pid"]).stdout.toString().replace(/\D/g, "")
    const names = [`batch-runner-4194303-5-${space}-0`, `batch-runner-${process.pid}-1-${space}-0`]
    const kept = [`batch-runner-${process.pid}-${start}-${space}-77`, "batch-runner-mine", "batch-runner-4194303-5-1-0"]
    for (const name of [...names, ...kept]) mkdirSync(join(root, name, "x"), { recursive: true })
    await Effect.runPromise(
      inside(() =>
        Effect.gen(function* () {
          for (let round = 0; round < 100 && names.some((name) => existsSync(join(root, name))); round++) {
            yield* Effect.sleep(20)
          }
        })
      ).pipe(Effect.provide(plain))
    )
    expect(names.filter((name) => existsSync(join(root, name)))).toEqual([])
    expect(kept.filter((name) => existsSync(join(root, name)))).toEqual(kept)
    for (const name of kept) rmSync(join(root, name), { recursive: true })
  })
})

describe.skipIf(!works && process.env.CI === undefined)("bubblewrap", () => {
  const hide = join("/opt", `hidden-${process.pid}`)
  const options = { network: true, hide: [join(hide, "run"), hide], root }
  const loud = Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => {
      throw new Error(`unexpected: ${message}`)
    })
  )
  const layer = Local.layer(options).pipe(Layer.provide(loud))
  const alone = <A, E>(use: (box: SandboxService) => Effect.Effect<A, E>, cwd = "") =>
    Effect.runPromise(inside(use, cwd).pipe(Effect.provide(layer)))

  suite("namespace", layer)

  it("shows nothing of the host but its system", async () => {
    if (process.getuid?.() === 0) mkdirSync(join(hide, "run"), { recursive: true })
    if (existsSync(hide)) writeFileSync(join(hide, "key"), "s3cr3t")
    await alone((box) =>
      Effect.gen(function* () {
        expect(
          yield* sh(box, `ls ${homedir()} ${root} ${process.cwd()} /var/log /srv /mnt 2>&1 | grep -v 'No such'`)
        ).toBe("")
        expect(
          yield* sh(box, `cat ${hide}/key /etc/shadow /etc/gshadow /etc/ssh/*_key /etc/environment 2>/dev/null`)
        ).toBe("")
        expect(
          yield* sh(
            box,
            "cat /proc/1/environ /proc/2/environ | tr '\\0' '\\n' | grep -v -e PATH -e SANDBOX_CALL -e PWD"
          )
        ).toBe("")
        expect(yield* sh(box, `ls /proc/1/root${root} /proc/2/root${homedir()} 2>/dev/null`)).toBe("")
        expect(yield* sh(box, "whoami; hostname; echo ~")).toBe("agent\nsandbox\n/home/agent")
        expect(yield* sh(box, "ls /proc | grep -c '^[0-9]'")).toMatch(/^[3-9]$/)
        expect(yield* sh(box, "for d in / /usr /etc /opt /home /var; do touch $d/x 2>/dev/null && echo $d; done")).toBe(
          ""
        )
        expect(yield* sh(box, "touch /tmp/x /var/tmp/y /dev/shm/z ~/w && ls /tmp /dev/shm")).toBe(
          "/dev/shm:\nz\n\n/tmp:\nx\ny"
        )
        expect(yield* sh(box, "tr '\\0' ' ' < /proc/1/cmdline")).not.toContain("--bind")
        expect(yield* sh(box, "cat /proc/*/cmdline")).not.toContain(root)
        expect(yield* sh(box, "ls -l /proc/self/fd | grep -c -e ' [0-9]* -> .*user:' -e 'pid:'")).toBe("0")
      })
    ).finally(() => rmSync(hide, { recursive: true, force: true }))
  })

  it("gives commands no capabilities and no way to new ones", () =>
    alone((box) =>
      Effect.gen(function* () {
        const status = yield* sh(box, "cat /proc/self/status")
        // The bounding set only limits what an exec could gain, and no exec can gain anything.
        for (const set of ["CapInh", "CapPrm", "CapEff", "CapAmb"]) {
          expect(status).toMatch(new RegExp(`${set}:\\s+0000000000000000`))
        }
        expect(status).toMatch(/NoNewPrivs:\s+1/)
      })
    ))

  it("lets no command change what steers the whole machine", () =>
    alone((box) =>
      Effect.gen(function* () {
        const script =
          "for f in /proc/sys/kernel/core_pattern /proc/sys/vm/stat_interval; do (cat $f > /tmp/was; cat /tmp/was > $f) 2>/dev/null && echo changed $f; done; " +
          "(: > /proc/sysrq-trigger) 2>/dev/null && echo pressed; echo end"
        expect(yield* sh(box, script)).toBe("end")
      })
    ))

  it("ends a command that has made more than a thousand processes with everything else inside, and goes on anew", () =>
    alone((box) =>
      Effect.gen(function* () {
        yield* sh(box, "echo kept > file")
        const made = yield* box.exec("for i in $(seq 1050); do sleep 7603 & done; echo made; wait", { timeout: 8 })
        expect(made).toMatchObject({ _tag: "TimedOut" })
        expect(processes("sleep\x007603")).toEqual([])
        expect(yield* sh(box, "cat file; cat /proc/*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 7603'")).toBe("kept\n0")
      })
    ))

  it("ends at once with a command in it, whoever reaps the dead of this machine", async () => {
    const ends = (work: (box: SandboxService) => Effect.Effect<unknown, unknown>) =>
      Effect.runPromise(
        Effect.gen(function* () {
          let since = 0
          yield* inside((box) =>
            Effect.gen(function* () {
              yield* sh(box, "true")
              yield* work(box)
              since = performance.now()
            })
          )
          return performance.now() - since
        }).pipe(Effect.provide(layer))
      )
    const busy = "(setsid sleep 7604 &) ; nohup sleep 7604 & sleep 7604"
    expect(await ends((box) => box.exec(busy, { timeout: 1 }))).toBeLessThan(700)
    expect(
      await ends((box) => Effect.timeout(box.exec(busy, { timeout: 100 }), 1000).pipe(Effect.ignore))
    ).toBeLessThan(700)
  })

  it("follows links inside, never on the host's side", async () => {
    const outside = join(root, "outside.txt")
    writeFileSync(outside, "host")
    await alone((box) =>
      Effect.gen(function* () {
        yield* sh(box, `ln -s ${outside} link; ln -s /etc/shadow shadow`)
        expect(yield* Effect.flip(box.read("link", { maxBytes: 10 }))).toMatchObject({ reason: "NotFound" })
        expect(yield* Effect.flip(box.write("link", new Uint8Array(3)))).toMatchObject({ _tag: "FileError" })
        expect(yield* Effect.exit(box.read("shadow", { maxBytes: 10 })).pipe(Effect.map(Exit.isFailure))).toBe(true)
        expect(yield* Effect.flip(box.write("/etc/new", new Uint8Array(3)))).toMatchObject({ reason: "NotAllowed" })
      })
    )
    expect(readFileSync(outside, "utf8")).toBe("host")
  })

  it("shows two sandboxes nothing of each other's processes and files", () =>
    Effect.runPromise(
      inside((one) =>
        Effect.gen(function* () {
          yield* sh(one, "sleep 7601 & echo x > /tmp/mine; echo x > /dev/shm/mine")
          yield* inside((two) =>
            Effect.gen(function* () {
              expect(yield* sh(two, "cat /proc/*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 7601'")).toBe("0")
              expect(yield* sh(two, "ls /tmp /dev/shm | grep mine")).toBe("")
            })
          )
          expect(
            yield* sh(one, "kill %1 2>/dev/null; cat /proc/*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 7601'")
          ).toBe("1")
        })
      ).pipe(Effect.provide(layer))
    ))

  it.each([
    ["", "/workspace", true],
    ["sub/dir", "/workspace/sub/dir", true],
    ["/tmp/deep/er", "/tmp/deep/er", true],
    ["/home/agent/project", "/home/agent/project", true],
    ["/home/someone/project", "/home/someone/project", true],
    ["/home", "/home", true],
    ["/root", "/root", true],
    ["/work/main", "/work/main", true],
    ["/var/lib/app", "/var/lib/app", true],
    ["/var", "/var", true],
    ["/run/app", "/run/app", true],
    ["/usr/src/app/deep", "/usr/src/app/deep", true],
    ["/etc/nowhere", "/etc/nowhere", true],
    ["/opt/nowhere", "/opt/nowhere", true],
    ["/lib/nowhere/x", "/lib/nowhere/x", true],
    ["/usr", "/usr", false],
    ["/usr/bin", "/usr/bin", false],
    ["/", "/", false]
  ])("works in the directory %j", (cwd, at, writable) =>
    alone((box) => {
      const check = Effect.gen(function* () {
        expect(box.cwd).toBe(at)
        expect(yield* sh(box, "pwd")).toBe(at)
        if (at.startsWith("/work/") || at === "/root") expect(yield* sh(box, "ls -A")).toBe("")
        expect(yield* sh(box, "(echo x > own-file) 2>/dev/null && cat own-file || echo read-only")).toBe(
          writable ? "x" : "read-only"
        )
        expect(yield* sh(box, "cat own-file 2>/dev/null; ls / >/dev/null && cat /etc/passwd | wc -l")).toBe(
          writable ? "x\n3" : "3"
        )
        expect(yield* sh(box, "touch /usr/x /etc/x /etc/ssl/x 2>/dev/null; echo $?")).toBe("1")
        expect(yield* sh(box, "cat /etc/shadow 2>/dev/null; ls ~ /tmp")).not.toContain("root:")
      })
      return check
    }, cwd)
  )

  it.each([
    ["/etc/passwd", "/etc/passwd is no directory"],
    ["/etc/passwd/below", "/etc/passwd is no directory"],
    [`/${"c".repeat(300)}`, "its name is too long"],
    ["d/".repeat(2000), "its name is too long"]
  ])("is refused before its first command where %j cannot be the working directory", async (cwd, why) => {
    const open = Effect.flatMap(Sandboxes, (sandboxes) => sandboxes.open(spec(cwd)))
    const error = await Effect.runPromise(Effect.flip(Effect.scoped(open)).pipe(Effect.provide(layer)))
    expect(error).toMatchObject({ _tag: "SandboxError", reason: "Unavailable", transient: false })
    expect(error.message).toContain(why)
  })

  it("takes ~ of the working directory for the home of its commands", () =>
    alone(
      (box) => Effect.map(sh(box, "pwd; echo ~"), (said) => expect(said).toBe("/home/agent/x\n/home/agent")),
      "~/x"
    ))

  it("leaves no process and no folder when it closes", async () => {
    await alone((box) =>
      Effect.gen(function* () {
        yield* sh(
          box,
          "setsid sleep 7701 & nohup env -i setsid sleep 7701 & mkdir -p a/b; chmod 0 a; touch b; chmod 0 b"
        )
        yield* sh(
          box,
          "d=; for i in $(seq 300); do mkdir abcdefghijklmnopqrst && cd abcdefghijklmnopqrst; done; pwd | wc -c"
        )
        yield* box.start("sleep 7701", {})
        yield* Effect.sleep(200)
        expect(processes("sleep\x007701").length).toBe(3)
      })
    )
    expect(processes("sleep\x007701")).toEqual([])
    expect(readdirSync(root).filter((name) => name.startsWith("batch-runner"))).toEqual([])
  })

  it("starts again when its namespace was ended from inside, with the files as they were", () =>
    alone((box) =>
      Effect.gen(function* () {
        yield* sh(box, "echo kept > file")
        expect(yield* box.exec("kill -9 -1; sleep 5", { timeout: 5 })).toMatchObject({ _tag: "Exited", exitCode: 137 })
        expect(yield* sh(box, "cat file")).toBe("kept")
      })
    ))

  it("stands a command that forks faster than it can be killed", () =>
    alone((box) =>
      Effect.gen(function* () {
        const result = yield* box.exec("f() { (setsid sleep 7801 &); }; while :; do f; done", { timeout: 0.5 })
        expect(result._tag).toBe("TimedOut")
        expect(processes("sleep\x007801")).toEqual([])
        expect(yield* sh(box, "echo on")).toBe("on")
      })
    ))

  it("has no network when told so, but loopback for the session's own processes", () =>
    Effect.runPromise(
      inside((box) =>
        Effect.gen(function* () {
          expect(yield* sh(box, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")).toBe("lo")
          const status = yield* sh(box, "cat /proc/self/status")
          expect(status).toMatch(/CapEff:\s+0000000000000000/)
          expect(yield* sh(box, "ls -l /proc/1/root/root 2>/dev/null | head -1")).toBe("")
          const serve =
            "exec 3<>/dev/tcp/127.0.0.1/9 2>/dev/null; python3 -c \"import socket;s=socket.socket();s.bind(('127.0.0.1',8123));s.listen();c,_=s.accept();c.send(b'hello')\""
          yield* box.start(serve, {})
          yield* Effect.sleep(500)
          if ((yield* sh(box, "command -v python3 bash")).includes("python3")) {
            expect(yield* sh(box, "exec 3<>/dev/tcp/127.0.0.1/8123 && cat <&3")).toBe("hello")
          }
        })
      ).pipe(Effect.provide(Local.layer({ ...options, network: false }).pipe(Layer.provide(loud))))
    ))

  it.each([
    ["SIGKILL", true],
    ["SIGKILL", false]
  ] as const)("leaves no process behind when the runner dies of %s (network %s)", async (signal, network) => {
    const script = join(root, "runner.mjs")
    const entry = `
      import { Effect, Layer } from "effect"
      import * as Local from "./src/sandbox/Local.ts"
      import { Sandbox, Sandboxes } from "./src/sandbox/Sandbox.ts"
      const program = Effect.gen(function* () {
        const sandboxes = yield* Sandboxes
        yield* Effect.gen(function* () {
          const box = yield* Sandbox
          yield* box.exec("setsid sleep 7901 & nohup sleep 7901 & true", { timeout: 10 })
          yield* box.start("sleep 7901", {})
          console.log("ready")
          yield* box.exec("sleep 7901", { timeout: 1000 })
        }).pipe(Effect.provide(Layer.scoped(Sandbox, sandboxes.open({ id: "a", image: "", cwd: "" }))))
      })
      Effect.runFork(program.pipe(Effect.provide(Local.layer({ network: ${network}, hide: [], root: ${JSON.stringify(join(root, "killed"))} }))))`
    await build({
      stdin: { contents: entry, resolveDir: process.cwd(), loader: "ts" },
      bundle: true,
      platform: "node",
      format: "esm",
      outfile: script,
      logLevel: "error",
      banner: { js: 'import{createRequire}from"module";const require=createRequire(import.meta.url);' }
    })
    const runner = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] })
    await new Promise((resolve) => runner.stdout.once("data", resolve))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(processes("sleep\x007901").length).toBe(4)
    runner.kill(signal)
    for (let round = 0; round < 100 && processes("sleep\x007901").length > 0; round++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(processes("sleep\x007901")).toEqual([])
    expect(processes(join(root, "killed"))).toEqual([])
  })

  it("says what a command that is not found means, in the shell's own words", () =>
    alone((box) =>
      Effect.map(box.exec("true\nnosuch", { timeout: 5 }), (result) => expect(said(result)).toContain("line 2: nosuch"))
    ))
})
