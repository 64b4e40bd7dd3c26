/** Images as an engine gives them, slowly or not at all. */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Fiber, Logger, TestClock, TestContext } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import * as Client from "../../../src/sandbox/docker/Client.ts"
import * as Images from "../../../src/sandbox/docker/Images.ts"

/** An engine that has no image until `pulled` says so, and answers a pull as told. */
const engine = async (pull: (answer: ServerResponse) => void) => {
  const folder = mkdtempSync(join(tmpdir(), "images-test-"))
  const state = { there: false, pulls: 0 }
  const server = createServer(({ method, url = "" }, answer) => {
    if (url.startsWith("/_ping")) return answer.end("OK")
    if (method === "POST") {
      state.pulls++
      return pull(answer)
    }
    answer.writeHead(state.there ? 200 : 404, { "content-type": "application/json" })
    answer.end(state.there ? "{}" : '{"message":"no such image"}')
  })
  const path = join(folder, "engine.sock")
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })
  return { state, host: `unix://${path}` }
}

/** Runs with the images of that engine, on a clock of the test's own; what is logged comes in `lines`. */
const using = async (
  { host }: { readonly host: string },
  use: (images: Images.Images, lines: ReadonlyArray<string>) => Effect.Effect<void, unknown>
) => {
  const lines: Array<string> = []
  const logger = Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => lines.push(String(message)))
  )
  const program = Effect.gen(function* () {
    const client = yield* Effect.orDie(Client.connect({ host, by: "the test" }))
    yield* use(yield* Images.make(client), lines)
  })
  await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(logger), Effect.provide(TestContext.TestContext)))
}

/** Waits, in real time, until something holds. */
const until = (holds: () => boolean) => Effect.promise(() => expect.poll(holds, { timeout: 5000 }).toBe(true))

const step = (seconds: number) => TestClock.adjust(`${seconds} seconds`)

describe("A pull", () => {
  it("tells how it goes, and what an engine says last counts without the end of its line", async () => {
    let answering: ServerResponse | undefined
    const slow = await engine((answer) => {
      answering = answer
      answer.write('{"id":"a","status":"Downloading","progressDetail":{"current":5000000,"total":20000000}}\n')
      answer.write('{"id":"b","status":"Downloading","progressDetail":{"current":1000000,"total":1000000}}\n')
    })
    await using(slow, (images, lines) =>
      Effect.gen(function* () {
        const asked = yield* Effect.fork(Effect.exit(images.have("python:3")))
        yield* until(() => answering !== undefined)
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 100)))
        yield* step(10)
        yield* until(() => lines.length === 2)
        expect(lines).toEqual(["pulling python:3", "pulling python:3: 10.0 s, 6.0 MB of 21.0 MB"])
        answering?.end('{"error":"manifest for python:3 not found: manifest unknown: manifest unknown"}')
        const exit = yield* Fiber.join(asked)
        expect(exit).toEqual(Exit.fail(expect.objectContaining({ reason: "ImageMissing" })))
        expect(String(exit)).toContain("There is no image python:3: manifest unknown")
        expect(yield* Effect.exit(images.have("docker://python:3"))).toEqual(exit)
        expect(slow.state.pulls).toBe(1)
      })
    )
  })

  it("from a registry that does not answer is tried four times for all, and again after a minute", async () => {
    const dead = await engine((answer) => {
      answer.writeHead(500, { "content-type": "application/json" })
      answer.end('{"message":"Get https://login.example.org/v2/: context deadline exceeded"}')
    })
    await using(dead, (images) =>
      Effect.gen(function* () {
        const asked = yield* Effect.fork(
          Effect.forEach([1, 2, 3], () => Effect.flip(images.have("login.example.org/denied:1")), {
            concurrency: "unbounded"
          })
        )
        for (const [at, seconds] of [1, 2, 4].entries()) {
          yield* until(() => dead.state.pulls === at + 1)
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 100)))
          yield* step(seconds)
        }
        for (const error of yield* Fiber.join(asked)) {
          expect(error).toMatchObject({ reason: "ImageUnreachable", transient: true, passing: false })
        }
        expect(dead.state.pulls).toBe(4)
        yield* Effect.flip(images.have("login.example.org/denied:1"))
        expect(dead.state.pulls).toBe(4)
        yield* step(60)
        dead.state.there = true
        expect(yield* Effect.orDie(images.have("login.example.org/denied:1"))).toBe("login.example.org/denied:1")
      })
    )
  })

  it("of which nothing is heard for five minutes is given up", async () => {
    let begun = false
    const silent = await engine((answer) => {
      begun = true
      answer.write("\n")
    })
    await using(silent, (images) =>
      Effect.gen(function* () {
        const asked = yield* Effect.fork(Effect.flip(images.have("x")))
        yield* until(() => begun)
        for (let tries = 0; tries < 4; tries++) {
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 100)))
          yield* step(310)
        }
        expect((yield* Fiber.join(asked)).message).toMatch(/the engine said nothing for 300 seconds/)
      })
    )
  })
})

describe("A name", () => {
  it("is read in no time, however it is made", () => {
    const before = performance.now()
    for (const one of ["a", "a.", "a-", "a/", "a_", "A", "1:", "-", "a.-"]) {
      expect(Images.normalize(`${one.repeat(390 / one.length)}!`)).toBe(undefined)
    }
    expect(performance.now() - before).toBeLessThan(500)
  })
})
