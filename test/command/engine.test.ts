/** An engine that goes away, hangs or comes back in the middle of a run. */
import { connect, createServer, type Socket } from "node:net"
import { expect, onTestFinished, it as test } from "vitest"
import { sleep, until, Workplace } from "../support/Command.ts"
import * as Containers from "../support/Containers.ts"
import * as Engine from "../support/Engine.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

const socketPath = (process.env.DOCKER_HOST ?? "").replace(/^unix:\/\//, "")

/** A socket behind which the engine of the tests answers as long as it may. */
const proxy = async (place: Workplace) => {
  const path = place.path("engine.sock")
  const open = new Set<Socket>()
  let answers = true
  const server = createServer((near) => {
    const far = connect(socketPath)
    for (const [one, other] of [
      [near, far],
      [far, near]
    ] as const) {
      open.add(one)
      one.on("data", (chunk) => {
        if (answers) other.write(chunk)
      })
      one.on("error", () => {})
      one.on("close", () => {
        open.delete(one)
        other.destroy()
      })
    }
  })
  const listen = () => new Promise<void>((resolve) => server.listen(path, resolve))
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of open) socket.destroy()
    })
  await listen()
  onTestFinished(() => (server.listening ? stop() : undefined))
  return {
    environment: { DOCKER_HOST: `unix://${path}` },
    stop,
    listen,
    hang: () => {
      answers = false
    }
  }
}

const begin = async () => {
  const place = new Workplace()
  const { run, given } = Containers.options({ num_workers: 2, command_timeout: 20 })
  place.dataset(["a", "b", "c"].map((prompt) => ({ prompt, image: Engine.image("busybox") })))
  let patient = true
  const server = await serve((request) => {
    if (turnOf(request) > 1) return final()
    return runs(patient && promptOf(request) !== "a" && turnOf(request) === 0 ? "sleep 15" : "echo")
  })
  return {
    place,
    run,
    given,
    server,
    hurry: () => {
      patient = false
    }
  }
}

Engine.describe("An engine", () => {
  const it = test.runIf(socketPath.startsWith("/"))

  it("that goes away in the middle fails its prompts, and --resume does them when it is back", async () => {
    const { place, run, given, server, hurry } = await begin()
    const engine = await proxy(place)
    const running = place.begin(server, given, engine.environment)
    await until(() => place.saved(run).length === 1)
    await Containers.until(run, (count) => count === 2)
    await sleep(500)
    await engine.stop()
    const ended = await running.ended
    expect(ended.code, ended.stderr).toBe(1)
    expect(place.failures(run).map(({ error, retryable }) => [error, retryable])).toEqual([
      ["SandboxError", true],
      ["SandboxError", true]
    ])
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    await engine.listen()
    hurry()
    const again = await place.run(server, { ...given, resume: true }, engine.environment)
    expect(again.code, again.stderr).toBe(0)
    expect(place.rows("trajectories.jsonl", run).length).toBe(3)
    expect(await Containers.names(run)).toEqual([])
  })

  it("that says nothing any more does not hold up a third signal", async () => {
    const { place, run, given, server } = await begin()
    const engine = await proxy(place)
    const running = place.begin(server, given, engine.environment)
    await until(() => place.saved(run).length === 1)
    await Containers.until(run, (count) => count === 2)
    engine.hang()
    for (let signal = 0; signal < 3; signal++) {
      running.kill("SIGINT")
      await sleep(300)
    }
    const before = performance.now()
    expect((await running.ended).code).toBe(130)
    expect(performance.now() - before).toBeLessThan(2000)
    // The next run takes what was left.
    expect((await place.start(["clean"], Containers.environment).ended).code).toBe(0)
    expect(await Containers.names(run)).toEqual([])
  })
})
