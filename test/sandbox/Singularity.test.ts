import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Exit, Fiber, Layer, Logger } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type SandboxError, Sandboxes, type SandboxService, type SandboxSpec } from "../../src/sandbox/Sandbox.ts"
import * as Singularity from "../../src/sandbox/Singularity.ts"
import * as Leftovers from "../../src/sandbox/singularity/Leftovers.ts"
import * as Images from "./singularity/Images.ts"
import { inside, said, sh, spec, suite } from "./suite.ts"

const works = Images.program !== undefined
if (!works && process.env.CI === undefined) console.log("Apptainer is not installed here: its tests are skipped")

const registry = process.env.TEST_REGISTRY

const top = mkdtempSync(join(tmpdir(), "singularity-test-"))
chmodSync(top, 0o755)
afterAll(() => rmSync(top, { recursive: true, force: true }))

const root = join(top, "root")
const folder = join(top, "images", "folder")
const file = join(top, "images", "small.sif")
const options: Singularity.Options = {
  run: "test",
  network: true,
  cpus: undefined,
  memory: undefined,
  lifetime: 600,
  cache: join(top, "cache"),
  root,
  program: Images.program
}

/** Warnings are mistakes here. */
const loud = Logger.replace(
  Logger.defaultLogger,
  Logger.make(({ logLevel, message }) => {
    if (logLevel._tag !== "Info") throw new Error(`unexpected: ${message}`)
  })
)

/** Sandboxes that name no image run the small one; the first of the suite's words about a directory is a folder of its own. */
const layerOf = (more: Partial<Singularity.Options> = {}, image = file) =>
  Layer.map(Singularity.layer({ ...options, ...more }), (context) => {
    const { open } = Context.get(context, Sandboxes)
    return Context.make(Sandboxes, {
      open: (spec) => open({ ...spec, image: spec.image || image, cwd: spec.cwd || "/workspace" })
    })
  }).pipe(Layer.provide(loud))

const layer = layerOf()
const alone = <A, E>(
  use: (box: SandboxService) => Effect.Effect<A, E>,
  { cwd = "", ...more }: Partial<Singularity.Options> & { readonly cwd?: string } = {}
) => Effect.runPromise(inside(use, cwd).pipe(Effect.provide(layerOf(more))))

/** What keeps a sandbox from opening. */
const refusal = (asked: Partial<SandboxSpec>, more: Partial<Singularity.Options> = {}): Promise<SandboxError> =>
  Effect.runPromise(
    Effect.flip(
      Effect.scoped(Effect.flatMap(Sandboxes, (sandboxes) => sandboxes.open({ ...spec(), image: file, ...asked })))
    ).pipe(Effect.provide(Singularity.layer({ ...options, ...more })), Effect.provide(loud))
  )

const left = () => [
  ...readdirSync(root),
  ...Images.instances(process.pid),
  ...Images.remains(),
  ...(existsSync(join(homedir(), ".apptainer/instances/app"))
    ? readdirSync(join(homedir(), ".apptainer/instances/app"), { recursive: true, encoding: "utf8" }).filter((name) =>
        name.includes("batch-runner")
      )
    : [])
]

const until = async (done: () => boolean, millis = 10_000) => {
  for (let waited = 0; !done() && waited < millis; waited += 50) await new Promise((resolve) => setTimeout(resolve, 50))
}

describe.skipIf(!works && process.env.CI === undefined)("Singularity", () => {
  beforeAll(() => {
    mkdirSync(root, { recursive: true })
    Images.folder(folder)
    Images.file(file, folder)
  })

  suite("singularity", layer)

  describe("a sandbox of it", () => {
    it("can be written everywhere, shows nothing of the machine, and is the same when its instance was started again", () =>
      alone((box) =>
        Effect.gen(function* () {
          const places = "/ /etc /bin /usr /usr/deep/er /var /opt /srv /tmp /var/tmp /dev/shm /root /home"
          expect(
            yield* sh(box, `for d in ${places}; do mkdir -p $d && echo x > $d/own && cat $d/own; done | sort | uniq -c`)
          ).toMatch(/^\s*13 x$/)
          expect(yield* sh(box, "hostname; cat /etc/resolv.conf >/dev/null && echo names")).toBe("sandbox\nnames")
          expect(yield* sh(box, `ls ${process.cwd()} ${top} ${homedir()}/.cache 2>&1 | grep -v 'No such'`)).toBe("")
          expect(yield* sh(box, "ls /proc | grep -c '^[0-9]'")).toMatch(/^[2-6]$/)
          expect(
            yield* sh(box, "grep -v -e ' /dev' -e ' /proc' -e ' / ' -e resolv.conf -e hostname /proc/mounts")
          ).toBe("")
          const write = "echo x > /proc/sys/kernel/core_pattern"
          expect(yield* sh(box, `(${write}) 2>&1`)).toMatch(/Read-only|Permission denied|denied/)
          expect(yield* sh(box, "grep NoNewPrivs /proc/self/status")).toMatch(/1$/)
        })
      ))

    it("has the image's environment and the marks of nothing else", () =>
      alone((box) =>
        Effect.gen(function* () {
          const names = (yield* sh(box, "env | cut -d= -f1 | sort")).split("\n")
          expect(names).toEqual(["HOME", "LANG", "PATH", "PWD", "SANDBOX_CALL", "SHLVL", "TERM"])
          expect(yield* sh(box, "echo ~ $HOME $PATH")).toMatch(/^\/root \/root \/usr\/local\/sbin:/)
        })
      ))

    it("has loopback alone when it is to have no network", () =>
      alone(
        (box) =>
          Effect.gen(function* () {
            expect(yield* sh(box, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")).toBe("lo")
            yield* box.start("echo hello | nc -l -p 8123", {})
            yield* Effect.sleep(500)
            expect(yield* sh(box, "nc 127.0.0.1 8123 < /dev/null")).toBe("hello")
          }),
        { network: false }
      ))

    it.each([
      ["/made/here", "/made/here"],
      ["sub/../dir", "/dir"],
      ["~/x", "/root/x"],
      ["/etc", "/etc"],
      ['/it\'s a "dir"/$HOME', '/it\'s a "dir"/$HOME']
    ])("works in the directory %j", (cwd, at) =>
      alone(
        (box) =>
          Effect.gen(function* () {
            expect(box.cwd).toBe(at)
            expect(yield* sh(box, "pwd; echo x > own-file; cat own-file")).toBe(`${at}\nx`)
          }),
        { cwd }
      )
    )

    it.each([
      ["/etc/passwd", "/etc/passwd is no directory"],
      ["/etc/passwd/below", "/etc/passwd is no directory"],
      ["d/".repeat(2000), "its name is too long"],
      ["a\0b", "it has a control character"]
    ])("is refused before its first command where %j cannot be the working directory", async (cwd, why) => {
      const error = await refusal({ cwd })
      expect(error).toMatchObject({ reason: "Unavailable", transient: false })
      expect(error.message).toContain(why)
      expect(left()).toEqual([])
    })

    it("goes on after a command that takes too much memory or too many processes", () =>
      alone(
        (box) =>
          Effect.gen(function* () {
            const hog = yield* sh(box, "dd if=/dev/zero of=/dev/null bs=290M count=1 >/dev/null 2>&1; echo $?")
            expect(hog).toMatch(/^[1-9]/)
            const bomb = "i=0; while [ $i -lt 700 ]; do sleep 8701 & i=$((i+1)); done; echo all"
            expect(said(yield* box.exec(`(${bomb}) 2>&1 | tail -n 3`, { timeout: 5 }))).not.toMatch(/^all$/)
            expect(yield* sh(box, "echo on")).toBe("on")
          }),
        { memory: 200 * 2 ** 20, cpus: 1 }
      ))

    it("stands a command that ends all processes, and one that forks faster than it can be killed", () =>
      alone((box) =>
        Effect.gen(function* () {
          yield* sh(box, "echo kept > file")
          yield* box.start("sleep 8800", {})
          // All but the one that says so.
          expect(yield* sh(box, "kill -9 -1; echo survived")).toBe("survived")
          expect(yield* sh(box, "cat /proc/*/cmdline | grep -c '[s]leep'")).toBe("0")
          expect(yield* sh(box, "cat file")).toBe("kept")
          const forks = yield* box.exec("f() { (setsid sleep 8801 &); }; while :; do f; done", { timeout: 0.5 })
          expect(forks._tag).toMatch(/TimedOut|Exited/)
          expect(yield* sh(box, "cat file")).toBe("kept")
        })
      ))

    it("starts again with its files when its instance was ended from outside", () =>
      alone((box) =>
        Effect.gen(function* () {
          yield* sh(box, "echo kept > file")
          for (const keeper of Images.instances(process.pid)) spawnSync("pkill", ["-KILL", "-P", `${keeper}`])
          yield* Effect.sleep(300)
          expect(yield* sh(box, "cat file; echo ~; pwd")).toBe("kept\n/root\n/workspace")
        })
      ))

    it("ends by itself when its time is over", () =>
      alone(
        (box) =>
          Effect.gen(function* () {
            yield* box.start("sleep 8901", {})
            yield* Effect.sleep(2500)
            expect(Images.instances(process.pid)).toEqual([])
            const error = yield* Effect.flip(box.exec("echo on", { timeout: 5 }))
            expect(error).toMatchObject({ reason: "Lost" })
            expect(error.message).toContain("2 seconds")
          }),
        { lifetime: 2 }
      ))

    it("leaves nothing when it closes, nor when it is interrupted as it opens", async () => {
      const odd = "mkdir -p a/b; chmod 0 a; setsid sleep 9001 & nohup env -i setsid sleep 9001 & true"
      await alone((box) => Effect.zipRight(sh(box, odd), box.start("sleep 9001", {})))
      expect(left()).toEqual([])
      expect(Images.processes("^sleep\\x009001")).toEqual([])
      for (const millis of [30, 150, 300, 600]) {
        const program = Effect.gen(function* () {
          const fiber = yield* Effect.fork(inside((box) => sh(box, "sleep 9002")))
          yield* Effect.sleep(millis)
          expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
          expect(Images.instances(process.pid)).toEqual([])
        })
        await Effect.runPromise(program.pipe(Effect.provide(layer)))
        expect(left()).toEqual([])
      }
    })

    it("is of a folder as well, and leaves that as it was", async () => {
      const before = spawnSync("find", [folder]).stdout.toString()
      await Effect.runPromise(
        inside((box) =>
          Effect.gen(function* () {
            expect(yield* sh(box, "echo x > /bin/own; rm /etc/passwd; cat /bin/own; pwd")).toBe("x\n/workspace")
          })
        ).pipe(Effect.provide(layerOf({}, folder)))
      )
      expect(spawnSync("find", [folder]).stdout.toString()).toBe(before)
      expect(readFileSync(join(folder, "etc", "passwd"), "utf8")).toContain("root")
    })
  })

  describe("an image", () => {
    it("that cannot be had fails before anything is started, with the reason on one line", async () => {
      const junk = join(top, "images", "junk.sif")
      writeFileSync(junk, "no image at all")
      const shellless = join(top, "images", "shellless")
      for (const part of ["dev", "etc", "proc", "bin"]) mkdirSync(join(shellless, part), { recursive: true })
      const cases: ReadonlyArray<readonly [string, string, RegExp]> = [
        ["", "Unavailable", /needs an image/],
        ["/nowhere/x.sif", "ImageMissing", /\/nowhere\/x\.sif/],
        ["./nowhere", "ImageMissing", /there is no .*nowhere/],
        [junk, "ImageUnfit", /format not recognized/],
        [shellless, "ImageUnfit", /no \/bin\/sh/],
        ["docker://127.0.0.1:1/some/image:1", "ImageUnreachable", /connection refused/],
        ["docker-archive:/nowhere.tar", "ImageMissing", /no such file/]
      ]
      for (const [image, reason, words] of cases) {
        const error = await refusal({ image })
        expect({ image, reason: error.reason, message: error.message }).toMatchObject({ image, reason })
        expect(error.message).toMatch(words)
        expect(error.message).not.toContain("\n")
      }
      expect(left()).toEqual([])
      expect(readdirSync(join(top, "cache")).filter((name) => name.startsWith("part-"))).toEqual([])
    })
  })

  describe.skipIf(registry === undefined && process.env.CI === undefined)("an image of a registry", () => {
    const image = `docker://${registry}/batch-runner/busybox:1`
    const lines: Array<string> = []
    const noted = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message }) => lines.push(String(message)))
    )
    const fresh = (cache: string) => Singularity.layer({ ...options, cache }).pipe(Layer.provide(noted))
    const open = (asked: string) => Effect.flatMap(Sandboxes, ({ open }) => open(spec("/work", asked)))

    it("is converted once, however many ask for it, by one runner or another", async () => {
      const cache = join(top, "once")
      lines.length = 0
      const many = Effect.forEach(Array.from({ length: 4 }), () => Effect.scoped(open(image)), {
        concurrency: "unbounded"
      })
      // Two layers know nothing of each other, as two processes would.
      await Promise.all([1, 2].map(() => Effect.runPromise(many.pipe(Effect.provide(fresh(cache))))))
      const names = () => readdirSync(cache).filter((name) => !name.endsWith(".lock"))
      expect(names()).toHaveLength(1)
      expect(names()[0]).toMatch(/\.sif$/)
      const before = statSync(join(cache, names()[0] ?? "")).mtimeMs
      expect(lines.filter((line) => line.startsWith("converting")).length).toBeLessThanOrEqual(2)
      expect(lines.filter((line) => /converted .* in \d+\.\d s/.test(line)).length).toBeGreaterThanOrEqual(1)
      lines.length = 0
      await Effect.runPromise(Effect.scoped(open(image)).pipe(Effect.provide(fresh(cache))))
      expect(lines).toEqual([])
      expect(statSync(join(cache, names()[0] ?? "")).mtimeMs).toBe(before)
      expect(left()).toEqual([])
    })

    it("goes on being converted for others when the prompt that began it is interrupted", async () => {
      const cache = join(top, "interrupted")
      lines.length = 0
      const program = Effect.gen(function* () {
        const first = yield* Effect.fork(Effect.scoped(open(image)))
        yield* Effect.sleep(100)
        const second = yield* Effect.fork(Effect.scoped(open(image)))
        yield* Effect.sleep(50)
        yield* Fiber.interrupt(first)
        yield* Fiber.join(second)
      })
      await Effect.runPromise(program.pipe(Effect.provide(fresh(cache))))
      expect(lines.filter((line) => line.startsWith("converting"))).toHaveLength(1)
    })

    it("is half converted no longer when its runner stops", async () => {
      const cache = join(top, "stopped")
      await Effect.runPromise(Effect.timeoutOption(Effect.scoped(open(image)), 150).pipe(Effect.provide(fresh(cache))))
      expect(readdirSync(cache).filter((name) => !name.endsWith(".lock"))).toEqual([])
      expect(Images.processes(cache)).toEqual([])
    })

    it.each([
      ["env", "/srv/app", "hello\n/srv/app\n0", "echo $GREETING; pwd; id -u"],
      ["entrypoint", "/work", "/work", "pwd"],
      ["user", "/home/agent", "x", "echo x > file; cat file"],
      ["python", "/work", "42\n5", "python3 -c 'print(6*7)'; echo $BASH_VERSION | cut -c 1"]
    ])(
      "(%s) has its own environment and working directory",
      (name, cwd, printed, command) =>
        Effect.runPromise(
          Effect.scoped(
            Effect.gen(function* () {
              const sandboxes = yield* Sandboxes
              const box = yield* sandboxes.open({ ...spec(), image: `${registry}/batch-runner/${name}:1` })
              expect(box.cwd).toBe(cwd)
              expect(yield* sh(box, command)).toBe(printed)
            })
          ).pipe(Effect.provide(Singularity.layer(options)), Effect.provide(noted))
        ),
      240_000
    )

    it("in which no session can run is unfit, or missing where it is not for us", async () => {
      const of = (name: string) => refusal({ image: `docker://${name}` })
      expect(await of(`${registry}/batch-runner/noshell:1`)).toMatchObject({ reason: "ImageUnfit", transient: false })
      expect((await of(`${registry}/batch-runner/noshell:1`)).message).toContain("no /bin/sh")
      expect(await of(`${registry}/batch-runner/foreign:1`)).toMatchObject({ transient: false })
      const shut = process.env.TEST_PRIVATE_REGISTRY
      if (shut !== undefined) {
        expect(await of(`${shut}/batch-runner/busybox:1`)).toMatchObject({ reason: "ImageMissing", transient: false })
      }
    })

    it("that is not there is missing, and asked for once", async () => {
      for (const name of ["busybox:missing", "nothing-of-the-kind:1"]) {
        const error = await refusal({ image: `docker://${registry}/batch-runner/${name}` })
        expect(error).toMatchObject({ reason: "ImageMissing", transient: false })
        expect(error.message).toContain("cannot be had")
        expect(error.message).not.toContain("\n")
      }
    })
  })

  describe("a runner that is killed", () => {
    const killed = join(top, "killed")
    const asked = (more: Partial<Singularity.Options>) =>
      JSON.stringify({
        options: { ...options, root: killed, ...more },
        spec: { id: "a", image: file, cwd: "" },
        commands: ["setsid sleep 9101 & nohup sleep 9101 & true"],
        wait: "sleep 9101"
      })
    const runners: Array<ChildProcess> = []
    afterEach(() => {
      for (const runner of runners.splice(0)) runner.kill("SIGKILL")
    })
    const sleepers = () => Images.processes("^sleep\\x009101")
    const begun = async (script: string) => {
      const runner = spawn(process.execPath, [script, asked({})], { stdio: ["ignore", "pipe", "inherit"] })
      runners.push(runner)
      await new Promise((resolve) => runner.stdout.once("data", resolve))
      await until(() => sleepers().length % 2 === 0 && sleepers().length > 0)
      return runner
    }

    it("leaves no instance behind, and its folder to the next", async () => {
      const script = await Images.runner(join(top, "runner.mjs"))
      const runner = await begun(script)
      runner.kill("SIGKILL")
      await until(() => sleepers().length === 0 && Images.instances(runner.pid ?? 0).length === 0)
      expect(sleepers()).toEqual([])
      expect(Images.instances(runner.pid ?? 0)).toEqual([])
      expect(readdirSync(killed)).toHaveLength(1)
      await Effect.runPromise(
        inside(() => Effect.promise(() => until(() => readdirSync(killed).length === 1))).pipe(
          Effect.provide(layerOf({ root: killed }))
        )
      )
      expect(readdirSync(killed)).toEqual([])
    })

    it("is cleared away after by the next, and by that which cleans, even if its guard died with it; a live one's stay", async () => {
      const script = await Images.runner(join(top, "runner.mjs"))
      const runner = await begun(script)
      const live = await begun(script)
      for (const guard of Images.processes(`batch-runner-singularity-${runner.pid}-`)) {
        if (!Images.instances(runner.pid ?? 0).includes(guard)) process.kill(guard, "SIGKILL")
      }
      runner.kill("SIGKILL")
      await new Promise((resolve) => setTimeout(resolve, 500))
      expect(Images.instances(runner.pid ?? 0)).toHaveLength(1)
      const cleaned = await Effect.runPromise(Leftovers.remove({ root: killed, cache: join(top, "cache") }))
      expect(cleaned).toEqual(["1 Singularity instance", "1 folder of Singularity sandboxes"])
      expect(Images.instances(runner.pid ?? 0)).toEqual([])
      expect(sleepers()).toHaveLength(2)
      expect(Images.instances(live.pid ?? 0)).toHaveLength(1)
      live.kill("SIGKILL")
      await until(() => sleepers().length === 0)
      expect(await Effect.runPromise(Leftovers.remove({ root: killed, cache: join(top, "cache") }))).toEqual([
        "1 folder of Singularity sandboxes"
      ])
      expect(Images.remains()).toEqual([])
    })
  })

  describe.skipIf(process.getuid?.() !== 0)("an ordinary user", () => {
    it("has sandboxes alike, of files and folders, without a network if told so", async () => {
      const own = join(top, "ordinary")
      mkdirSync(own, { mode: 0o755 })
      spawnSync("chown", ["65534:65534", own])
      const script = await Images.runner(join(top, "ordinary.mjs"))
      const commands = [
        "id -u; pwd; for d in / /etc /bin /root /tmp /opt; do mkdir -p $d; echo x > $d/own && cat $d/own; done | wc -l",
        "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '",
        "cat /proc/1/environ /proc/self/environ | grep -c s3cr3t",
        "i=0; while [ $i -lt 600 ]; do sleep 9201 & i=$((i+1)); done 2>/dev/null; echo bombed",
        "dd if=/dev/zero of=/dev/null bs=290M count=1 >/dev/null 2>&1 && echo too much",
        "echo on"
      ]
      const ran = spawnSync(
        "setpriv",
        [
          ...["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath, script],
          JSON.stringify({
            options: { ...options, network: false, memory: 200 * 2 ** 20, root: own, cache: join(own, "cache") },
            spec: { id: "a", image: file, cwd: "work" },
            commands
          })
        ],
        { encoding: "utf8", env: { ...process.env, HOME: own, SECRET: "s3cr3t" } }
      )
      expect(ran.stdout).toContain("65534\n/work\n6\n\nlo\n\n0\n\n")
      expect(ran.stdout).toMatch(/\non\n\nready\n$/)
      expect(ran.stdout).not.toContain("too much")
      expect(readdirSync(own).filter((name) => name.startsWith("batch-runner"))).toEqual([])
      expect(Images.processes("^sleep\\x009201")).toEqual([])
    })
  })
})

describe("Without the program", () => {
  it.each(["/nowhere/apptainer", "no-such-apptainer"])(
    "(%s) there are no sandboxes, and it is said why",
    async (program) => {
      const error = await Effect.runPromise(
        Effect.flip(Effect.scoped(Layer.build(Singularity.layer({ ...options, program }))))
      )
      expect(error).toMatchObject({ _tag: "SandboxError", reason: "Unavailable" })
      expect(error.message).toContain(program)
      expect(error.message).not.toContain("\n")
    }
  )
})
