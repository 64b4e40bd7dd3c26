import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Dockerode from "dockerode"
import { Effect, Exit, Fiber, Layer, Logger } from "effect"
import { describe, expect, it } from "vitest"
import * as Docker from "../../src/sandbox/Docker.ts"
import * as Owner from "../../src/sandbox/Owner.ts"
import { type SandboxError, Sandboxes, type SandboxService } from "../../src/sandbox/Sandbox.ts"
import * as Engine from "../support/Engine.ts"
import { ofImage, said, sh, suite } from "./suite.ts"

const image = (name: string) => `${Engine.registry}/batch-runner/${name}:1`

const layer = (options: Partial<Docker.Options> = {}) =>
  Docker.layer({
    run: "docker-test",
    network: true,
    cpus: undefined,
    memory: undefined,
    lifetime: 600,
    ...options
  }).pipe(Layer.provide(Logger.replace(Logger.defaultLogger, Logger.none)))

let ids = 0

/** Runs `use` in a container. */
const inside = <A, E>(
  use: (box: SandboxService) => Effect.Effect<A, E>,
  { cwd = "", name = "busybox", ...options }: Partial<Docker.Options> & { cwd?: string; name?: string } = {}
) =>
  Effect.gen(function* () {
    const { open } = yield* Sandboxes
    return yield* Effect.flatMap(open({ id: `d${ids++}`, image: name.includes("/") ? name : image(name), cwd }), use)
  }).pipe(Effect.scoped, Effect.provide(layer(options)))

const run = <A, E>(...args: Parameters<typeof inside<A, E>>) => Effect.runPromise(inside(...args))

/** Why no container could be had. */
const refusal = (options: Parameters<typeof inside>[1]): Promise<SandboxError> =>
  Effect.runPromise(Effect.flip(inside(() => Effect.die("it was opened"), options)))

const engine = () => new Dockerode()

/** What the engine knows of containers of runs of that name. */
const containers = async (run = "docker-test") =>
  engine().listContainers({ all: true, filters: { label: [`batch-runner.run=${run}`] } })

Engine.describe("Docker", () => {
  suite("with an image of busybox alone", ofImage(layer(), image("busybox")))
  suite("with an image of Debian", ofImage(layer(), image("python")))
  suite("of Podman", ofImage(layer({ host: Engine.podman }), image("busybox")))

  describe("takes an image", () => {
    it.each([
      ["busybox", "/root", "/work", "0"],
      ["python", "/root", "/work", "0"],
      ["dash", "/root", "/work", "0"],
      ["notimeout", "/root", "/work", "0"],
      ["user", "/home/agent", "/home/agent", "1000"],
      ["sealed", "/home/agent", "/home/agent", "1000"],
      ["entrypoint", "/root", "/work", "0"],
      ["env", "/root", "/srv/app", "0"]
    ])("such as %s, with the user's home and the image's directory", (name, home, cwd, user) =>
      run(
        (box) =>
          Effect.gen(function* () {
            expect(yield* sh(box, "id -u; echo ~; pwd")).toBe(`${user}\n${home}\n${cwd}`)
            expect(box.cwd).toBe(cwd)
            const late = yield* box.exec("echo begun; setsid sleep 7901 & sleep 7901", { timeout: 0.7 })
            expect(late._tag).toBe("TimedOut")
            expect(said(late)).toBe("begun")
            expect(yield* sh(box, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c ^7901$")).toBe("0")
          }),
        { name }
      )
    )

    it.each(["busybox", "user", "sealed", "env"])("and makes the prompt's own directory in %s, for its user", (name) =>
      run(
        (box) =>
          Effect.gen(function* () {
            expect(box.cwd).toBe("/app/deep er")
            expect(yield* sh(box, "pwd; echo x > file && cat file")).toBe("/app/deep er\nx")
            yield* box.write("by/tool.txt", new TextEncoder().encode("written"))
            expect(yield* sh(box, "cat by/tool.txt")).toBe("written")
          }),
        { name, cwd: "/app/deep er" }
      )
    )

    it("and takes a directory below the image's own, or the user's home", async () => {
      await run((box) => Effect.map(sh(box, "pwd"), (said) => expect(said).toBe("/srv/app/sub")), {
        name: "env",
        cwd: "sub"
      })
      await run((box) => Effect.map(sh(box, "pwd"), (said) => expect(said).toBe("/home/agent/in")), {
        name: "user",
        cwd: "~/in"
      })
    })

    it("and keeps the environment that it gives", () =>
      run(
        (box) =>
          Effect.map(sh(box, "echo $GREETING; env"), (said) => {
            expect(said).toMatch(/^hello\n/)
            expect(said).not.toMatch(/DOCKER|REGISTRY|NODE|npm/i)
          }),
        { name: "env" }
      ))

    it("named as Singularity names it", () =>
      run((box) => Effect.map(sh(box, "echo here"), (said) => expect(said).toBe("here")), {
        name: `docker://${image("busybox")}`
      }))
  })

  describe("refuses, before a session begins,", () => {
    it.each([
      [
        image("missing"),
        "ImageMissing",
        /^There is no image localhost:\d+\/batch-runner\/missing:1: .*(unknown|not found)/
      ],
      [`${Engine.registry}/batch-runner/busybox:7`, "ImageMissing", /There is no image .*busybox:7/],
      ["not a/name", "ImageMissing", /^"not a\/name" is no name of a container image; allowed: /],
      ["registry.example.org/Upper:1", "ImageMissing", /Upper:1" is no name of a container image; allowed: /],
      ["./image.sif", "ImageMissing", /is no name of a container image.*--sandbox=singularity/],
      ["a/../../127.0.0.1/x", "ImageMissing", /is no name of a container image/],
      ["http://foo/bar", "ImageMissing", /is no name of a container image/],
      ["docker://", "ImageMissing", /is no name of a container image/],
      [`${Engine.privateRegistry}/batch-runner/busybox:1`, "ImageMissing", /cannot be had: .*docker login/],
      ["localhost:1/nobody/there:1", "ImageUnreachable", /could not be pulled: .*connection refused/],
      [image("noshell"), "ImageUnfit", /No session can run in the image .*noshell:1: it has no \/bin\/sh/],
      [
        image("foreign"),
        "ImageUnfit",
        /No session can run in the image .*foreign:1: it is made for another kind of processor/
      ]
    ])("the image %s", async (name, reason, message) => {
      const error = await refusal({ name })
      expect(error).toMatchObject({ _tag: "SandboxError", reason })
      expect(error.message).toMatch(message)
      expect(error.message).not.toContain("\n")
      expect(error.transient).toBe(reason === "ImageUnreachable")
      await expect.poll(() => containers()).toEqual([])
    })

    it.each([
      ["/etc/passwd", /cannot be the working directory: .*(File exists|Not a directory)/],
      ["/etc/passwd/below", /cannot be the working directory: .*Not a directory/],
      ["/proc/no/such", /cannot be the working directory: /],
      ["a\0b", /cannot be the working directory: it has a control character/],
      ["x".repeat(300), /cannot be the working directory: its name is too long/]
    ])("the working directory %j", async (cwd, message) => {
      const error = await refusal({ cwd })
      expect(error).toMatchObject({ reason: "Unavailable", transient: false })
      expect(error.message).toMatch(message)
    })

    it.each([
      ["USER nosuchuser", "busybox", /the USER that it names is not in it/],
      // The shell of busybox needs no PATH for its own.
      ["ENV PATH=/nowhere", "python", /there is no cat, mkdir, sleep on its PATH/]
    ])("an image with %s", async (changes, base, message) => {
      await run(() => Effect.void, { name: base })
      const container = await engine().createContainer({ Image: image(base) })
      const name = { repo: "localhost/batch-runner-odd", tag: `${process.pid}` }
      await container.commit({ ...name, changes })
      await container.remove()
      const error = await refusal({ name: `${name.repo}:${name.tag}` }).finally(() =>
        engine().getImage(`${name.repo}:${name.tag}`).remove({ force: true })
      )
      expect(error).toMatchObject({ reason: "ImageUnfit", transient: false })
      expect(error.message).toMatch(message)
    })

    it("a private image without a login, and takes it with one", async () => {
      const folder = mkdtempSync(join(tmpdir(), "docker-config-"))
      const auth = Buffer.from("tester:secret").toString("base64")
      writeFileSync(join(folder, "config.json"), JSON.stringify({ auths: { [Engine.privateRegistry]: { auth } } }))
      process.env.DOCKER_CONFIG = folder
      const name = `${Engine.privateRegistry}/batch-runner/busybox:1`
      await run((box) => Effect.map(sh(box, "echo in"), (said) => expect(said).toBe("in")), { name }).finally(() => {
        delete process.env.DOCKER_CONFIG
        rmSync(folder, { recursive: true })
      })
      await engine().getImage(name).remove()
    })
  })

  describe("holds its containers", () => {
    it("to what they may: no powers, no privileges gained, no mounts, the limits that were given", () =>
      run(
        (box) =>
          Effect.gen(function* () {
            const status = yield* sh(box, "cat /proc/self/status")
            expect(status).toMatch(/NoNewPrivs:\s*1/)
            // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETFCAP.
            expect(/CapEff:\s*([0-9a-f]+)/.exec(status)?.[1]).toBe("00000000800000fb")
            expect(/CapBnd:\s*([0-9a-f]+)/.exec(status)?.[1]).toBe("00000000800000fb")
            const [only, ...others] = yield* Effect.promise(() => containers("limited"))
            expect(others).toEqual([])
            const { HostConfig, Mounts, Config } = yield* Effect.promise(() =>
              engine()
                .getContainer(only?.Id ?? "")
                .inspect()
            )
            expect(Mounts).toEqual([])
            expect(HostConfig).toMatchObject({
              Memory: 64 * 2 ** 20,
              MemorySwap: 64 * 2 ** 20,
              NanoCpus: 500_000_000,
              PidsLimit: 1024,
              NetworkMode: "none",
              Privileged: false,
              AutoRemove: true
            })
            expect(HostConfig.Binds ?? []).toEqual([])
            expect(Config.Labels).toMatchObject({
              "batch-runner.run": "limited",
              "batch-runner.machine": Owner.machine(),
              "batch-runner.prompt": expect.stringMatching(/^d\d+$/)
            })
            expect(yield* sh(box, "ls /sys/class/net")).toBe("lo")
          }),
        { run: "limited", network: false, cpus: 0.5, memory: 64 * 2 ** 20 }
      ))

    it("to their memory, and goes on with an error result", () =>
      run(
        (box) =>
          Effect.gen(function* () {
            yield* sh(box, "echo kept > file; sleep 7902 >/dev/null 2>&1 &")
            const hog = yield* box.exec("echo begun; x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo survived", {
              timeout: 60
            })
            expect(hog).toMatchObject({ _tag: "Exited" })
            expect(said(hog)).not.toContain("survived")
            expect(yield* sh(box, "cat file")).toBe("kept")
          }),
        { memory: 64 * 2 ** 20 }
      ))

    it("to their number of processes, also when that is used up, and goes on with their files", () =>
      run((box) =>
        Effect.gen(function* () {
          yield* sh(box, "echo kept > file")
          const bomb = yield* box.exec("i=0; while [ $i -lt 2000 ]; do sleep 7903 & i=$((i+1)); done; wait", {
            timeout: 20
          })
          expect(said(bomb)).toMatch(/fork|temporarily unavailable|bytes left out|^$/i)
          expect(yield* sh(box, "cat file; ls /proc | grep -c '^[0-9]'")).toMatch(/^kept\n\d{1,2}$/)
        })
      ))

    it.each([
      ["killall sh", "killall sh; true"],
      ["kill 1", "kill 1; kill -TERM 1; kill -INT 1; kill -HUP 1; true"],
      ["killing all that sleeps", "for i in 1 2 3; do killall sleep; done; true"],
      ["removing where it is", "cd /; rm -rf /work"]
    ])("whatever a command does to them, such as %s", (_, command) =>
      run((box) =>
        Effect.gen(function* () {
          yield* sh(box, "setsid cat /dev/zero > /dev/null 2>&1 & echo kept > /tmp/kept")
          yield* box.exec(command, { timeout: 10 })
          expect(yield* sh(box, "cat /tmp/kept; ps | grep -c '[c]at /dev/zero'", { cwd: "/" })).toBe("kept\n1")
        })
      )
    )

    it("only as long as they live: an ended one is lost, and says so", () =>
      run(
        (box) =>
          Effect.gen(function* () {
            const [only] = yield* Effect.promise(() => containers("killed"))
            yield* Effect.promise(() =>
              engine()
                .getContainer(only?.Id ?? "")
                .remove({ force: true })
            )
            const error = yield* Effect.flip(box.exec("true", { timeout: 5 }))
            expect(error).toMatchObject({ reason: "Lost", transient: true })
            expect(error.message).toMatch(/^The sandbox's container has ended: /)
          }),
        { run: "killed" }
      ))
  })

  describe("leaves nothing", () => {
    it("of a start that is interrupted at any moment", async () => {
      for (const millis of [1, 30, 80, 150, 250]) {
        const fiber = Effect.runFork(inside(() => Effect.never, { run: "interrupted" }))
        await new Promise((resolve) => setTimeout(resolve, millis))
        expect(Exit.isInterrupted(await Effect.runPromise(Fiber.interrupt(fiber)))).toBe(true)
        await expect.poll(() => containers("interrupted")).toEqual([])
      }
    })

    it("of dead runners, and all of live ones", async () => {
      const make = async (name: string, owner: string, machine = Owner.machine()) => {
        const container = await engine().createContainer({
          Image: image("busybox"),
          Cmd: ["sleep", "60"],
          Labels: { "batch-runner.run": name, "batch-runner.process": owner, "batch-runner.machine": machine }
        })
        await container.start()
        return container
      }
      const dead = Owner.here().replace(/^\d+-\d+/, "999999-1")
      await make("of-the-dead", `${dead}-0`)
      const kept = await Promise.all([
        make("of-the-living", `${Owner.here()}-99`),
        make("of-the-living", `${dead}-0`, "another machine"),
        make("of-the-living", "nonsense")
      ])
      expect(await Effect.runPromise(Docker.clean)).toEqual(["1 container"])
      expect(await containers("of-the-dead")).toEqual([])
      expect(await containers("of-the-living")).toHaveLength(3)
      expect(await Effect.runPromise(Docker.clean)).toEqual([])
      await make("of-the-dead", `${dead}-0`)
      await run(() => Effect.void)
      await expect.poll(() => containers("of-the-dead")).toEqual([])
      expect(await containers("of-the-living")).toHaveLength(3)
      await Promise.all(kept.map((one) => one.remove({ force: true })))
    })
  })

  it("pulls an image once for all who want it, and says so", async () => {
    const name = image("notimeout")
    await engine()
      .getImage(name)
      .remove({ force: true })
      .catch(() => {})
    const lines: Array<unknown> = []
    const logger = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message }) => lines.push(message))
    )
    const open = Effect.flatMap(Sandboxes, ({ open }) =>
      Effect.forEach(
        [1, 2, 3, 4, 5],
        (at) =>
          at === 1
            ? // Who asks first goes away: the others must not suffer from it.
              Effect.asVoid(Effect.timeoutOption(Effect.scoped(open({ id: "p1", image: name, cwd: "" })), 20))
            : Effect.zipRight(
                Effect.sleep(5),
                Effect.asVoid(Effect.scoped(open({ id: `p${at}`, image: name, cwd: "" })))
              ),
        { concurrency: "unbounded" }
      )
    )
    const docker = Docker.layer({ run: "pull", network: true, cpus: undefined, memory: undefined, lifetime: 600 })
    await Effect.runPromise(open.pipe(Effect.provide(docker), Effect.provide(logger)))
    expect(lines.map(String)).toEqual([`pulling ${name}`, expect.stringMatching(/^pulled .* in \d+\.\d s$/)])
  })

  it("says where it looked when no engine answers", async () => {
    for (const [host, message] of [
      ["unix:///nowhere.sock", /^No container engine answers at unix:\/\/\/nowhere.sock \(connect ENOENT/],
      ["tcp://127.0.0.1:1", /^No container engine answers at tcp:\/\/127.0.0.1:1 \(connect ECONNREFUSED/],
      ["http://[", /is no address of an engine; allowed: unix:/]
    ] as const) {
      const error = await refusal({ host })
      expect(error.reason).toBe("Unavailable")
      expect(error.message).toMatch(message)
    }
  })

  it("refuses limits that the engine's machine does not have", async () => {
    expect((await refusal({ cpus: 5000 })).message).toMatch(/^--cpus: given 5000, allowed: at most the \d+ of/)
    expect((await refusal({ memory: 2 ** 50 })).message).toMatch(
      /^--memory: given 1048576g, allowed: at most the [\d.]+g of/
    )
  })
})
