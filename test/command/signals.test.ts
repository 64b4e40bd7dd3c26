/** Interrupted: the first signal puts the files in order, the second ends at once, and no sandbox outlives either. */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { expect, it } from "vitest"
import { sandboxed, sleep, until, Workplace } from "../support/Command.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

const prompts = ["quick 0", "slow 1", "quick 2", "slow 3", "slow 4", "slow 5", "quick 6", "quick 7"]

/** A run with four workers, three of them in tools that take for ever, or all four waiting for a model. */
const busy = async (place: Workplace) => {
  place.dataset(prompts)
  let slow = true
  const server = await serve((request) => {
    if (!slow || promptOf(request).startsWith("quick")) return final()
    return turnOf(request) === 0 ? runs("setsid sleep 1001 & nohup sleep 1002 & sleep 1000") : final()
  })
  const running = place.begin(server, { batch_size: 3, num_workers: 4 })
  const sleepers = () => sandboxed(running.pid).filter((line) => /^sleep 100[012]/.test(line)).length
  await until(() => sleepers() === 12 && place.saved().length === 2)
  return {
    server,
    running,
    resume: () => {
      slow = false
      return place.run(server, { batch_size: 3, resume: true })
    }
  }
}

it.for([
  ["SIGINT", 130],
  ["SIGTERM", 143]
] as const)(
  "leaves files in order and no process behind after %s, and --resume completes the run",
  async ([signal, code]) => {
    const place = new Workplace()
    const { server, running, resume } = await busy(place)
    const asked = server.requests.length
    const before = performance.now()
    running.kill(signal)
    const ended = await running.ended
    expect(performance.now() - before).toBeLessThan(5000)
    expect(sandboxed(running.pid)).toEqual([])
    expect(readdirSync(place.tmp)).toEqual([])
    expect(ended).toMatchObject({ code, signal: null })
    expect(ended.stderr).toContain(`${signal}: no new prompts`)
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    expect(ended.stdout).toContain("run: 2 of 8 prompts done, stopped early")
    expect(ended.stdout).toMatch(/6 still to do.*: batch-runner .*--run_name=run .*--resume$/m)
    expect(server.requests.length).toBe(asked)
    expect(place.rows().map((row) => row.prompt_index)).toEqual([0, 2])
    expect(place.json("checkpoint.json")).toMatchObject({
      completed_prompts: [
        [0, 0],
        [2, 2]
      ]
    })
    expect(place.json("statistics.json")).toMatchObject({ total_prompts: 8 })
    expect(place.names().filter((name) => name.startsWith("."))).toEqual([])
    // An interrupted session is no failed one.
    expect(place.text("failures.jsonl")).toBe("")

    const again = await resume()
    expect(again.code, again.stderr).toBe(0)
    expect(place.rows().map((row) => row.conversations[0]?.value)).toEqual(prompts)
  }
)

it("ends at once at a second signal, with nothing left running", async () => {
  const place = new Workplace()
  const { running, resume } = await busy(place)
  const before = performance.now()
  running.kill("SIGINT")
  await sleep(5)
  running.kill("SIGINT")
  const ended = await running.ended
  expect(performance.now() - before).toBeLessThan(3000)
  expect(ended.code).toBe(130)
  expect(sandboxed(running.pid)).toEqual([])
  expect(readdirSync(place.tmp)).toEqual([])
  const again = await resume()
  expect(again.code, again.stderr).toBe(0)
  expect(place.rows().map((row) => row.prompt_index)).toEqual(prompts.map((_, at) => at))
})

it("means that the terminal is lost when it is SIGHUP: files in order with one, and no heed without", async () => {
  const place = new Workplace()
  const { running, resume } = await busy(place)
  running.kill("SIGHUP")
  await sleep(300)
  expect(running.child.exitCode).toBe(null)
  running.kill("SIGTERM")
  expect((await running.ended).code).toBe(143)
  expect((await resume()).code).toBe(0)

  const server = await serve(() => ({ hang: true }))
  const command = place.argv(server, { run_name: "shown" }).join(" ")
  const shown = place.shell(`exec script -qefc "exec $BATCH_RUNNER ${command}" /dev/null`)
  await until(() => server.requests.length > 0)
  const inside = execFileSync("pgrep", ["-P", `${shown.pid}`], { encoding: "utf8" }).trim()
  process.kill(Number(inside), "SIGHUP")
  const ended = await shown.ended
  expect(ended.code).toBe(129)
  expect(ended.stdout).toContain("SIGHUP: no new prompts")
  expect(ended.stdout).toMatch(/still to do.*--resume/)
})

it("does not wait for a model that does not answer", async () => {
  const place = new Workplace()
  place.dataset(["a", "b"])
  const server = await serve(() => ({ hang: true }))
  const running = place.begin(server)
  await until(() => server.requests.length === 2)
  const before = performance.now()
  running.kill("SIGINT")
  expect((await running.ended).code).toBe(130)
  expect(performance.now() - before).toBeLessThan(3000)
  expect(place.rows()).toEqual([])
})

it("does not wait for a data set that never comes, and leaves nothing behind", async () => {
  const place = new Workplace()
  execFileSync("mkfifo", [place.path("prompts.jsonl")])
  const running = place.begin(await serve(() => final()))
  await sleep(1500)
  const before = performance.now()
  running.kill("SIGINT")
  const ended = await running.ended
  expect(performance.now() - before).toBeLessThan(1500)
  expect(ended).toMatchObject({ code: 130, signal: null, stdout: "" })
  expect(existsSync(place.path("data"))).toBe(false)
  expect(readdirSync(place.tmp)).toEqual([])
})

it("obeys a signal that comes while it starts", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => final())
  for (const millis of [0, 100, 200, 300, 400]) {
    const running = place.begin(server, { resume: true })
    await sleep(millis)
    running.kill("SIGTERM")
    const ended = await running.ended
    // Before the program has a word in it, the system ends it.
    expect(ended.code === 143 || ended.signal === "SIGTERM" || ended.code === 0, JSON.stringify(ended)).toBe(true)
    expect(sandboxed(running.pid)).toEqual([])
  }
  await place.complete(server, { resume: true })
  expect(place.rows().length).toBe(1)
})
