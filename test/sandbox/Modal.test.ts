/** Modal's sandboxes against a server of our own that speaks its protocol, with real processes behind it. */
import { execFile, spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Context, Effect, Either, Exit, Fiber, Layer, Scope } from "effect"
import { afterAll, beforeAll, beforeEach, expect, it, describe as vitestDescribe } from "vitest"
import * as Modal from "../../src/sandbox/Modal.ts"
import * as Owner from "../../src/sandbox/Owner.ts"
import * as Proc from "../../src/sandbox/Proc.ts"
import { type ContainerOptions, type SandboxError, Sandboxes, type SandboxService } from "../../src/sandbox/Sandbox.ts"
import { until, Workplace } from "../support/Command.ts"
import { type Known, keys, ModalServer } from "../support/modal/Server.ts"
import { final, runs, serve, turnOf } from "../support/Talk.ts"
import { ofImage, said, sh, spec, suite } from "./suite.ts"

/** Behind the server's sandboxes there are namespaces, which root alone may join. */
const works =
  process.getuid?.() === 0 && spawnSync("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0
const wanted = works || process.env.CI !== undefined
if (!wanted) console.log("no bubblewrap here, or not as root: the tests of Modal's sandboxes are skipped")
const describe = wanted ? vitestDescribe : vitestDescribe.skip

const server = new ModalServer()

beforeAll(async () => {
  await server.listen()
  process.env.MODAL_SERVER_URL = server.url
  process.env.MODAL_CONFIG_PATH = "/nowhere/modal.toml"
})

beforeEach(() => {
  process.env.MODAL_TOKEN_ID = keys.id
  process.env.MODAL_TOKEN_SECRET = keys.secret
  delete process.env.MODAL_SANDBOX_V2
})

afterAll(() => server.close())

const plain: ContainerOptions = { run: "my_run", network: true, cpus: undefined, memory: undefined, lifetime: 600 }

const image = "python:3.11-slim"

describe("A sandbox at Modal", () => {
  suite("modal", ofImage(Modal.layer(plain), image))
})

/** Runs with the service of a layer of its own. */
const using = <A, E>(
  use: (open: Sandboxes["Type"]["open"]) => Effect.Effect<A, E, Scope.Scope>,
  options: Partial<ContainerOptions> = {}
) =>
  Effect.flatMap(Sandboxes, ({ open }) => Effect.scoped(use(open))).pipe(
    Effect.provide(Modal.layer({ ...plain, ...options }))
  )

const inside = <A, E>(
  use: (box: SandboxService) => Effect.Effect<A, E, Scope.Scope>,
  options: Partial<ContainerOptions> = {},
  cwd = ""
) => using((open) => Effect.flatMap(open(spec(cwd, image)), use), options)

const failed = <A>(effect: Effect.Effect<A, SandboxError>) => Effect.runPromise(Effect.flip(effect))

const opening = (name: string, cwd = "") => using((open) => open(spec(cwd, name)))

const only = (): Known => {
  const [one, ...others] = server.live()
  if (one === undefined || others.length > 0) throw new Error(`${server.live().length} sandboxes`)
  return one
}

describe("A layer of Modal's sandboxes", () => {
  beforeEach(() => server.reset())

  it("says what to set where there is no token.", async () => {
    delete process.env.MODAL_TOKEN_ID
    delete process.env.MODAL_TOKEN_SECRET
    const none = await failed(opening(image))
    expect(none).toMatchObject({ reason: "Unavailable", transient: false })
    expect(none.message).toBe(
      "Modal needs a token, and there is none; set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET to a token of https://modal.com/settings/tokens, or run `modal token new`"
    )
    process.env.MODAL_TOKEN_ID = keys.id
    expect((await failed(opening(image))).message).toContain("MODAL_TOKEN_SECRET is missing")
    expect(server.calls).toEqual([])
  })

  it("fails at once with a token that Modal refuses.", async () => {
    process.env.MODAL_TOKEN_SECRET = "as-wrong"
    const refused = await failed(opening(image))
    expect(refused.reason).toBe("Unavailable")
    expect(refused.message).toMatch(
      /^Modal refuses the token here \(Token missing or not valid\.\); set MODAL_TOKEN_ID/
    )
    expect(refused.message).not.toContain("as-wrong")
  })

  it("is inspected without an app being made, or anything built.", async () => {
    const before = server.calls.length
    const found = await Effect.runPromise(Modal.inspect)
    expect(found.told).toBe("Modal takes the token")
    expect(await Effect.runPromise(found.image(image))).toEqual({
      _tag: "Unknown",
      why: "built at first use, not checked"
    })
    server.fail("appGetOrCreate", { status: "NOT_FOUND" })
    expect((await Effect.runPromise(Modal.inspect)).told).toMatch(/makes its app at first use/)
    const calls = server.calls.slice(before).filter(({ method }) => method !== "authTokenGet")
    expect(calls.map(({ method }) => method)).toEqual(["appGetOrCreate", "appGetOrCreate"])
    expect(calls.map(({ request }) => Number(request.objectCreationType ?? 0))).toEqual([0, 0])
    process.env.MODAL_TOKEN_SECRET = "as-wrong"
    expect((await failed(Modal.inspect)).message).toMatch(/^Modal refuses the token here/)
  })

  it("fails where nothing answers as Modal.", async () => {
    process.env.MODAL_SERVER_URL = "http://127.0.0.1:9"
    const unreachable = await failed(opening(image))
    process.env.MODAL_SERVER_URL = server.url
    expect(unreachable.reason).toBe("Unavailable")
    expect(unreachable.message).toMatch(/^Modal does not answer as it should at http:\/\/127\.0\.0\.1:9: /)
    expect(unreachable.message).not.toContain("\n")
  })

  it("lets the process end by itself once it is closed.", async () => {
    const module = (name: string) => new URL(`../../dist/sandbox/${name}.js`, import.meta.url).href
    const script = `
      import { Effect } from "effect"
      const { layer, clean } = await import("${module("Modal")}")
      const { Sandboxes } = await import("${module("Sandbox")}")
      const use = Effect.gen(function* () {
        const box = yield* (yield* Sandboxes).open({ id: "one", image: "busybox", cwd: "" })
        yield* box.exec("sleep 5000 & echo begun", { timeout: 20 })
        yield* box.start("cat", {})
        console.log((yield* box.exec("echo all well", { timeout: 20 }))._tag)
      })
      await Effect.runPromise(Effect.provide(Effect.scoped(use), layer(${JSON.stringify({ ...plain, cpus: 1, memory: 2 ** 29 })})))
      console.log(await Effect.runPromise(clean))`
    const before = performance.now()
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      timeout: 20_000
    })
    expect(stdout).toBe("Exited\n[]\n")
    expect(performance.now() - before).toBeLessThan(10_000)
    expect(server.live()).toEqual([])
  })
})

describe("A Modal sandbox", () => {
  beforeEach(() => server.reset())

  it("is made with its lifetime, limits and tags, and with nothing of the runner's.", async () => {
    process.env.SECRET_OF_THE_RUNNER = "s3cr3t"
    const options = { network: false, cpus: 1.5, memory: 512 * 2 ** 20, lifetime: 90.2 }
    await Effect.runPromise(inside((box) => sh(box, "true"), options))
    const [request] = server.asked("sandboxCreateV2")
    expect(request).toMatchObject({
      appId: "ap-0000000000000000000001",
      tags: [
        { tagName: "run", tagValue: "my_run" },
        { tagName: "owner", tagValue: expect.stringContaining(Owner.here()) },
        { tagName: "machine", tagValue: Owner.machine() },
        { tagName: "prompt", tagValue: expect.stringMatching(/^t\d+$/) }
      ],
      secretSources: [],
      definition: {
        entrypointArgs: ["/bin/sh", "-c", expect.stringContaining("sleep")],
        timeoutSecs: 91,
        networkAccess: { networkAccessType: 2 },
        resources: { milliCpu: 1500, milliCpuMax: 1500, memoryMb: 512, memoryMbMax: 512 },
        secretIds: [],
        volumeMounts: [],
        openPorts: { ports: [] }
      }
    })
    expect(JSON.stringify(server.calls)).not.toContain("s3cr3t")
    expect(server.asked("appGetOrCreate")).toMatchObject([{ appName: "batch-runner", objectCreationType: 1 }])
  })

  it("takes Modal's own limits, and a network, where nothing is said, and lives a day at most.", async () => {
    await Effect.runPromise(inside((box) => sh(box, "true"), { lifetime: 1e7 }))
    expect(server.asked("sandboxCreateV2")).toMatchObject([
      {
        definition: {
          timeoutSecs: 86_400,
          networkAccess: { networkAccessType: 1 },
          resources: { milliCpu: 0, milliCpuMax: 0, memoryMb: 0, memoryMbMax: 0 }
        }
      }
    ])
  })

  it("has no network where none is allowed.", async () => {
    const devices = "cut -s -d: -f1 /proc/net/dev | tr -d ' '"
    expect(await Effect.runPromise(inside((box) => sh(box, devices), { network: false }))).toBe("lo")
  })

  it("runs an image without its entry point.", async () => {
    await Effect.runPromise(using((open) => open(spec("", `docker://${image}`))))
    expect(server.asked("imageGetOrCreate").map(({ image }) => image)).toMatchObject([
      { dockerfileCommands: [`FROM ${image}`], secretIds: [] },
      { dockerfileCommands: ["FROM base", "ENTRYPOINT []"], secretIds: [] }
    ])
    expect(server.commandsOf(String(server.sandboxes[0]?.definition.imageId))).toEqual(["FROM base", "ENTRYPOINT []"])
  })

  it("has one build of its image, whoever else wants it.", async () => {
    server.buildTime = 300
    await Effect.runPromise(
      using((open) =>
        Effect.all(
          [1, 2, 3, 4].map(() => open(spec("", image))),
          { concurrency: "unbounded" }
        )
      )
    )
    expect(server.asked("imageGetOrCreate").length).toBe(2)
    expect(server.asked("sandboxCreateV2").length).toBe(4)
  })

  it("is started at the pace of the run, once its image is there.", async () => {
    const starts: Array<number> = []
    const ramp = <A, E, R>(start: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        starts.push(server.asked("imageJoinStreaming").length)
        return start
      })
    await Effect.runPromise(inside((box) => sh(box, "true"), { ramp }))
    expect(starts).toEqual([2])
  })

  it("is terminated after success, failure, a defect and an interruption.", async () => {
    const ways: ReadonlyArray<(box: SandboxService) => Effect.Effect<unknown, unknown>> = [
      (box) => sh(box, "sleep 6001 & echo done"),
      () => Effect.fail("no"),
      () => Effect.die("no"),
      () => Effect.interrupt,
      (box) => Effect.zipLeft(box.exec("sleep 6002", { timeout: 60 }), Effect.never).pipe(Effect.timeout(300))
    ]
    for (const way of ways) await Effect.runPromiseExit(inside(way))
    expect(server.asked("sandboxTerminateV2").length).toBe(ways.length)
    expect(server.sandboxes.length).toBe(ways.length)
    expect(server.live()).toEqual([])
  })

  it("does not outlive an interruption while it is being made.", async () => {
    server.createTime = 700
    await Effect.runPromise(
      using((open) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(open(spec("", image)))
          yield* Effect.sleep(500)
          expect(server.asked("sandboxCreateV2").length).toBe(1)
          expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
          expect(server.sandboxes.length).toBe(1)
          expect(server.live()).toEqual([])
        })
      )
    )
  })

  it("begins in the directory that is asked for, made where there is none.", async () => {
    expect(await Effect.runPromise(inside((box) => sh(box, "pwd"), {}, "/made/for it"))).toBe("/made/for it")
    expect(await Effect.runPromise(inside((box) => sh(box, "pwd"), {}, "below"))).toBe("/app/below")
    expect(await Effect.runPromise(inside((box) => sh(box, "pwd; echo $FROM_IMAGE")))).toBe("/app\n1")
    expect(await failed(opening(image, "/etc/passwd/x"))).toMatchObject({
      reason: "Unavailable",
      message: expect.stringContaining('cwd: "/etc/passwd/x" cannot be the working directory: ')
    })
    expect(await failed(opening(image, "/a\0b"))).toMatchObject({ reason: "Unavailable" })
    expect(server.live()).toEqual([])
  })

  it("takes commands of any length, and shows them nothing of how they came.", () =>
    Effect.runPromise(
      inside((box) =>
        Effect.gen(function* () {
          const word = `'"$x\\ä€\n`.repeat(100_000)
          const quoted = word.replaceAll("'", `'\\''`)
          const result = yield* sh(
            box,
            `x='${quoted}'; printf %s "$x" | wc -c; cat; echo $# "$0"; ls -A /tmp /dev/shm; env | grep -c file`,
            { stdin: new TextEncoder().encode("given\n") }
          )
          expect(result).toBe(`${Buffer.byteLength(word)}\ngiven\n0 bash\n/dev/shm:\n\n/tmp:\n0`)
          const background = yield* box.start(`: '${"#".repeat(200_000)}'; read line; echo "got $line"`, {})
          yield* background.write(new TextEncoder().encode("it\n"))
          expect(yield* background.wait(10)).toMatchObject({ exitCode: 0 })
        })
      )
    ))

  it("loses no output when its connection breaks or its key for commands runs out.", () =>
    Effect.runPromise(
      inside((box) =>
        Effect.gen(function* () {
          const count = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i; [ $((i%1000)) = 0 ] && sleep 0.3; done"
          const fiber = yield* Effect.fork(box.exec(count, { timeout: 20, keep: 1e6 }))
          for (const _ of [1, 2]) {
            yield* Effect.sleep(250)
            server.dropStreams()
          }
          expect(said(yield* Fiber.join(fiber))).toBe(Array.from({ length: 3000 }, (_, index) => index + 1).join("\n"))
          expect(server.asked("taskExecStdioRead").length).toBeGreaterThan(3)
        })
      )
    ))

  it("gets a new key for commands when the old one is no good any more.", async () => {
    server.shortTokens(1)
    await Effect.runPromise(
      inside((box) =>
        Effect.gen(function* () {
          yield* sh(box, "true")
          server.expireTokens()
          expect(yield* sh(box, "echo on")).toBe("on")
        })
      )
    )
    expect(server.asked("sandboxGetCommandRouterAccess").length).toBeGreaterThan(0)
  })

  it("says that it is lost, whatever was being done, when its lifetime is over.", () =>
    Effect.runPromise(
      inside((box) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(box.exec("sleep 6003", { timeout: 50 }))
          yield* Effect.sleep(300)
          server.expire(only())
          const before = performance.now()
          const lost = yield* Effect.flip(Fiber.join(fiber))
          expect(lost).toMatchObject({ reason: "Lost", transient: true })
          expect(lost.message).toMatch(/^The Modal sandbox sb-v2-\d+ is gone: its lifetime was over$/)
          expect(performance.now() - before).toBeLessThan(15_000)
          expect(yield* Effect.flip(box.exec("echo again", { timeout: 5 }))).toMatchObject({ reason: "Lost" })
          expect(yield* Effect.flip(box.read("/etc/passwd", { maxBytes: 5 }))).toMatchObject({ reason: "Lost" })
        })
      )
    ))

  it("goes by its lifetime at Modal.", () =>
    Effect.runPromise(
      inside(
        (box) =>
          Effect.gen(function* () {
            yield* Effect.sleep(2300)
            expect(server.live()).toEqual([])
            expect(yield* Effect.flip(box.exec("true", { timeout: 5 }))).toMatchObject({ reason: "Lost" })
          }),
        { lifetime: 2 }
      )
    ))

  it("ends all commands where those of one cannot be told, and goes on.", () =>
    Effect.runPromise(
      inside((box) =>
        Effect.gen(function* () {
          const crowd = "i=0; while [ $i -lt 1050 ]; do sleep 6004 & i=$((i+1)); done; wait"
          expect(yield* box.exec(crowd, { timeout: 8 })).toMatchObject({ _tag: "TimedOut" })
          const left =
            "n=0; for p in /proc/[0-9]*; do grep -qa 6004 $p/cmdline 2>/dev/null && n=$((n+1)); done; echo $n"
          expect(yield* sh(box, left.replace("6004", "600[4]"))).toBe("0")
          expect(only().result).toBe(undefined)
        })
      )
    ))

  it("is given up when its commands cannot be ended at all.", () =>
    Effect.runPromise(
      inside((box) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(Effect.flip(box.exec("sleep 6005", { timeout: 1 })))
          yield* Effect.sleep(500)
          server.fail("taskExecStart", { status: "INVALID_ARGUMENT" })
          expect(yield* Fiber.join(fiber)).toMatchObject({
            reason: "Lost",
            message: expect.stringContaining("had to be terminated")
          })
          expect(server.live()).toEqual([])
        })
      )
    ))

  it("runs as Modal's older kind as well.", async () => {
    process.env.MODAL_SANDBOX_V2 = "0"
    expect(await Effect.runPromise(inside((box) => sh(box, "echo old; pwd")))).toBe("old\n/app")
    expect(server.asked("sandboxCreate").length).toBe(1)
    expect(server.asked("sandboxTerminate").length).toBe(1)
    expect(server.live()).toEqual([])
  })

  it("keeps nobody waiting when Modal does not answer at its end.", async () => {
    server.hang("sandboxTerminateV2")
    const before = performance.now()
    expect(await Effect.runPromise(inside((box) => sh(box, "echo result")))).toBe("result")
    expect(performance.now() - before).toBeLessThan(35_000)
    expect(performance.now() - before).toBeGreaterThan(19_000)
  })
})

describe("An image at Modal", () => {
  beforeEach(() => server.reset())

  it("is asked for by name, or nothing is.", async () => {
    expect(await failed(opening(""))).toMatchObject({
      reason: "Unavailable",
      message: "A Modal sandbox needs an image, and this prompt names none; give one to all by --image"
    })
    for (const name of ["python\nRUN curl evil", "a b", "-x", "$(x)"]) {
      expect(await failed(opening(name))).toMatchObject({
        reason: "ImageMissing",
        message: expect.stringContaining("no name of an image")
      })
    }
    expect(server.asked("imageGetOrCreate")).toEqual([])
  })

  it("that cannot be had, or built, fails each prompt with the builder's reason, asked for once.", async () => {
    server.broken.push(
      { part: "nosuch", log: "manifest unknown: nosuch:1", exception: "Image build failed. See build logs." },
      { part: "odd", log: "standard_init_linux.go: exec format error", exception: "" }
    )
    await Effect.runPromise(
      using((open) =>
        Effect.gen(function* () {
          const both = yield* Effect.all(
            [1, 2].map(() => Effect.flip(open(spec("", "nosuch:1")))),
            { concurrency: "unbounded" }
          )
          const later = yield* Effect.flip(open(spec("", "nosuch:1")))
          for (const error of [...both, later]) {
            expect(error).toMatchObject({ reason: "ImageMissing", transient: false })
            expect(error.message).toMatch(/^The image nosuch:1 cannot be had at Modal: .*manifest unknown: nosuch:1$/)
          }
          expect(yield* Effect.flip(open(spec("", "odd")))).toMatchObject({
            reason: "ImageUnfit",
            message: expect.stringContaining("exec format error")
          })
        })
      )
    )
    expect(server.asked("imageGetOrCreate").length).toBe(2)
    expect(server.asked("sandboxCreateV2")).toEqual([])
  })

  it("whose build Modal could not see to is asked for again.", async () => {
    await Effect.runPromise(
      using((open) =>
        Effect.gen(function* () {
          server.fail("imageGetOrCreate", { status: "RESOURCE_EXHAUSTED", details: "too many builds", times: 1 })
          const busy = yield* Effect.flip(open(spec("", image)))
          expect(busy).toMatchObject({ reason: "StartFailed", transient: true })
          expect(busy.message).toContain("too many builds")
          yield* open(spec("", image))
          server.fail("imageGetOrCreate", { status: "INVALID_ARGUMENT", details: "not a valid reference" })
          expect(yield* Effect.flip(open(spec("", "other")))).toMatchObject({ reason: "ImageMissing" })
        })
      )
    )
  })

  it("without a shell is unfit.", async () => {
    server.first = ["/bin/sh", "-c", "exit 127"]
    const ended = await failed(opening(image))
    expect(ended).toMatchObject({ reason: "ImageUnfit", message: expect.stringContaining("/bin/sh") })
    server.first = undefined
    server.fail("taskExecStart", { status: "NOT_FOUND", details: 'exec: "/bin/sh": no such file or directory' })
    expect(await failed(opening(image))).toMatchObject({ reason: "ImageUnfit" })
    expect(server.live()).toEqual([])
  })
})

describe("Modal's refusal to start a sandbox", () => {
  beforeEach(() => server.reset())

  it("is bad luck where another time it may do, and no more than that.", async () => {
    for (const status of ["RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED"] as const) {
      server.fail("sandboxCreateV2", { status, details: "no room\nnow" })
      const error = await failed(opening(image))
      expect(error).toMatchObject({ reason: "StartFailed", transient: true })
      expect(error.message).toBe(`A Modal sandbox of ${image} could not be made: no room now`)
    }
    server.fail("sandboxCreateV2", { status: "INVALID_ARGUMENT", details: "memory request is too large" })
    expect(await failed(opening(image))).toMatchObject({ reason: "Unavailable", transient: false })
    expect(server.live()).toEqual([])
  })
})

describe("What dead runs left at Modal", () => {
  beforeEach(() => server.reset())

  const space = Proc.pidNamespace("self")?.replace(/\D/g, "")
  const dead = `${process.pid}-1-${space}-0`

  /** Opens sandboxes that are left, as by a kill -9, with tags of other owners. */
  const leave = async (owners: ReadonlyArray<Record<string, string>>) => {
    const scope = Effect.runSync(Scope.make())
    const { open } = await Effect.runPromise(
      Effect.map(Layer.buildWithScope(Modal.layer(plain), scope), (context) => Context.get(context, Sandboxes))
    )
    for (const owner of owners) {
      await Effect.runPromise(Scope.extend(open(spec("", image)), scope))
      Object.assign(server.sandboxes.at(-1)?.tags ?? {}, owner)
    }
  }

  it("is terminated, and nothing else is.", async () => {
    await leave([{}, { owner: dead }, { owner: dead, machine: "another" }, { owner: dead }, { owner: dead }, {}])
    expect(server.live().length).toBe(6)
    expect(await Effect.runPromise(Modal.clean)).toEqual(["3 Modal sandboxes"])
    expect(server.live().length).toBe(3)
    expect(server.live().filter((one) => one.tags.owner === dead).length).toBe(1)
    expect(await Effect.runPromise(Modal.clean)).toEqual([])
  })

  it("is terminated by the next run as well.", async () => {
    await leave([{ owner: dead }])
    await Effect.runPromise(inside(() => Effect.sleep(300)))
    expect(server.live()).toEqual([])
  })

  it("is nothing where there is no token or no app, and unknown where the token is refused.", async () => {
    server.fail("appGetOrCreate", { status: "NOT_FOUND" })
    expect(await Effect.runPromise(Modal.clean)).toEqual([])
    process.env.MODAL_TOKEN_SECRET = "as-wrong"
    expect(Either.isLeft(await Effect.runPromise(Effect.either(Modal.clean)))).toBe(true)
    delete process.env.MODAL_TOKEN_ID
    delete process.env.MODAL_TOKEN_SECRET
    expect(await Effect.runPromise(Modal.clean)).toEqual([])
  })
})

describe("The command with --sandbox=modal", () => {
  beforeEach(() => server.reset())

  const key = { MODAL_TOKEN_ID: keys.id, MODAL_TOKEN_SECRET: keys.secret }
  const rows = Array.from({ length: 6 }, (_, index) => ({ prompt: `prompt ${index}`, image, cwd: "/app" }))
  const options = { batch_size: 3, num_workers: 4, sandbox: "modal" }

  it("starts nothing without a token, and runs every prompt in a sandbox of its own with one.", async () => {
    const place = new Workplace()
    place.dataset(rows)
    const model = await serve((request) => (turnOf(request) === 0 ? runs("echo $((6*7)); touch mine; ls") : final()))
    const environment = { MODAL_SERVER_URL: server.url }
    const refused = await place.run(model, options, environment)
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/^batch-runner: Modal needs a token.*\n$/) })
    await place.complete(model, options, { ...environment, ...key })
    expect(place.rows().length).toBe(6)
    for (const row of place.rows()) {
      expect(JSON.parse(row.conversations[2]?.value ?? "")).toMatchObject({ output: "42\nmine\n", exit_code: 0 })
    }
    expect(server.sandboxes.length).toBe(6)
    expect(server.live()).toEqual([])
  })

  it("leaves no sandbox after SIGINT, and what a kill -9 left is cleaned up.", async () => {
    const place = new Workplace()
    place.dataset(rows)
    const model = await serve((request) => (turnOf(request) === 0 ? runs("sleep 6006") : final()))
    const environment = { MODAL_SERVER_URL: server.url, ...key }
    const busy = () =>
      until(() => server.asked("taskExecStart").filter((one) => String(one.commandArgs).includes("6006")).length >= 4)
    const running = place.begin(model, options, environment)
    await busy()
    running.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    expect(server.sandboxes.length).toBe(4)
    expect(server.live()).toEqual([])
    server.reset()
    const killed = place.begin(model, { ...options, resume: true }, environment)
    await busy()
    killed.kill("SIGKILL")
    await killed.ended
    expect(server.live().length).toBe(4)
    expect(await place.start(["clean"], environment).ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("4 Modal sandboxes")
    })
    expect(server.live()).toEqual([])
  })
})
