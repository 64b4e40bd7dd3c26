/** An engine that goes away, hangs or comes back in the middle of a run. */
import { connect, createServer, type Socket } from "node:net"
import { expect, onTestFinished, it as test } from "vitest"
import { sleep, until, Workplace } from "../support/Command.ts"
import * as Containers from "../support/Containers.ts"
import * as Engine from "../support/Engine.ts"
import * as Faulty from "../support/Faulty.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

/** A socket behind which the engine of the tests answers as long as it may. */
const proxy = async (place: Workplace) => {
  const path = place.path("engine.sock")
  const open = new Set<Socket>()
  let answers = true
  const server = createServer((near) => {
    const far = connect(Faulty.socketPath)
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
  const it = test.runIf(Faulty.socketPath.startsWith("/"))

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

  it("that stumbles over the making of a command is asked again, and the session goes on", async () => {
    const place = new Workplace()
    const { run, given } = Containers.options()
    place.dataset([{ prompt: "a", image: Engine.image("busybox") }])
    let left = 2
    const environment = await Faulty.engine(
      place,
      (method, path) => method === "POST" && path.endsWith("/exec") && left-- > 0
    )
    const server = await serve((request) => (turnOf(request) === 0 ? runs("echo in") : final()))
    const ended = await place.run(server, given, environment)
    expect(ended.code, ended.stderr).toBe(0)
    expect(left).toBeLessThan(0)
    expect(place.rows("trajectories.jsonl", run)[0]?.conversations[2]?.value).toContain("in\\n")
  })

  it("that does not remove what a dead run left is named by `clean`, and asked again the next time", {
    timeout: 120_000
  }, async () => {
    const { place, run, given, server } = await begin()
    const running = place.begin(server, given, Containers.environment)
    await Containers.until(run, (count) => count === 2)
    running.kill("SIGKILL")
    await running.ended
    const refusing = await Faulty.engine(place, (method) => method === "DELETE")
    const failed = await place.start(["clean"], refusing).ended
    expect(failed.stderr).toMatch(
      /^docker: The containers of dead runs could not be removed: \d+ of \d+ stay: made to fail$/m
    )
    expect(failed.code).toBe(1)
    expect(failed.stdout).not.toContain("Nothing was left behind")
    expect(await Containers.names(run)).not.toEqual([])
    // A run that has no use for the engine finds the note of the dead one, and looks there.
    place.dataset(["a prompt without an image"], "plain.jsonl")
    const plain = { ...given, run_name: "plain", dataset_file: "plain.jsonl" }
    const ended = await place.run(await serve(() => final()), plain, Containers.environment)
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stderr).toMatch(/removed what dead runs left: .*container/)
    expect(await Containers.names(run)).toEqual([])
  })
})
