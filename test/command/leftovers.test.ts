/** However a run with containers ends, none of them stays: at once where it can still act, else by the next run or `clean`. */
import { expect, it } from "vitest"
import { sleep, until, Workplace } from "../support/Command.ts"
import * as Containers from "../support/Containers.ts"
import * as Engine from "../support/Engine.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

const { environment } = Containers

/** Prompts in containers that each take a moment; slow ones take for ever until `hurry` is called. */
const begin = async (many: number, workers: number, slow: (at: number) => boolean = () => false) => {
  const place = new Workplace()
  const { run, given } = Containers.options({ num_workers: workers, batch_size: 7, sandbox_starts: 50 })
  const prompts = Array.from({ length: many }, (_, at) => `prompt ${at}`)
  place.dataset(prompts.map((prompt) => ({ prompt, image: Engine.image("busybox"), cwd: "/work" })))
  let patient = true
  const server = await serve((request) => {
    const prompt = promptOf(request)
    if (turnOf(request) > 0) return final(`of ${prompt}`)
    const waits = patient && slow(prompts.indexOf(prompt)) ? "setsid sleep 1000 & sleep 1000" : "sleep 0.2"
    return runs(`echo ${prompt} > file; ${waits}; cat file`)
  })
  const start = (options: object = {}) => place.begin(server, { ...given, ...options }, environment)
  return {
    place,
    run,
    prompts,
    server,
    start,
    resume: () => {
      patient = false
      return start({ resume: true }).ended
    },
    /** Every prompt is there once, with what its own sandbox printed. */
    expectWhole: () => {
      const rows = place.rows("trajectories.jsonl", run)
      expect(rows.map(({ conversations }) => conversations[0]?.value)).toEqual(prompts)
      expect(place.saved(run).toSorted()).toEqual(prompts.toSorted())
      for (const [at, { conversations }] of rows.entries()) {
        const result = conversations.find(({ from }) => from === "tool")?.value ?? ""
        expect(JSON.parse(result)).toMatchObject({ output: `${prompts[at]}\n`, exit_code: 0 })
      }
    }
  }
}

Engine.describe("A run of 40 prompts with 10 workers", () => {
  it("that is interrupted in the middle leaves no container, and --resume completes it", {
    timeout: 120_000
  }, async () => {
    const { place, run, start, resume, expectWhole } = await begin(40, 10)
    const running = start()
    await until(() => place.saved(run).length >= 10, 40_000)
    expect((await Containers.list(run)).length).toBeGreaterThan(0)
    running.kill("SIGINT")
    const ended = await running.ended
    expect(await Containers.names(run)).toEqual([])
    expect(ended).toMatchObject({ code: 130, signal: null })
    expect(ended.stdout).toMatch(/: \d+ of 40 prompts done, stopped early/)
    expect(ended.stderr).not.toMatch(/WARN|^\s+at /m)
    expect(place.text("failures.jsonl", run)).toBe("")
    const done = place.saved(run).length
    expect(done).toBeLessThan(40)

    const again = await resume()
    expect(again.code, again.stderr).toBe(0)
    expectWhole()
    expect(await Containers.names(run)).toEqual([])
  })

  it("that is killed in the middle leaves none that the next run does not remove", { timeout: 120_000 }, async () => {
    const { place, run, start, resume, expectWhole } = await begin(40, 10)
    const running = start()
    await until(() => place.saved(run).length >= 10, 40_000)
    running.kill("SIGKILL")
    await running.ended
    const again = await resume()
    expect(again.code, again.stderr).toBe(0)
    expectWhole()
    expect(await Containers.names(run)).toEqual([])
  })
})

Engine.describe("A run in whose containers commands take for ever", () => {
  it.for([
    ["SIGTERM", 143],
    ["SIGINT", 130]
  ] as const)("leaves none after %s, and does not wait for them", async ([signal, code]) => {
    const { place, run, start, resume, expectWhole } = await begin(8, 4, (at) => at > 1)
    const running = start()
    await until(() => place.saved(run).length === 2)
    await Containers.until(run, (count) => count === 4)
    const before = performance.now()
    running.kill(signal)
    const ended = await running.ended
    expect(performance.now() - before).toBeLessThan(10_000)
    expect(await Containers.names(run)).toEqual([])
    expect(ended).toMatchObject({ code, signal: null })
    expect(ended.stderr).toContain(`${signal}: no new prompts`)
    const again = await resume()
    expect(again.code, again.stderr).toBe(0)
    expectWhole()
  })

  it.for([0, 50, 400])("leaves none after a second signal %i ms later", async (millis) => {
    const { place, run, start } = await begin(8, 4, (at) => at > 1)
    const running = start()
    await until(() => place.saved(run).length === 2)
    await Containers.until(run, (count) => count === 4)
    running.kill("SIGINT")
    await sleep(millis)
    running.kill("SIGINT")
    const ended = await running.ended
    expect(await Containers.names(run)).toEqual([])
    expect(ended.code).toBe(130)
    expect(ended.took).toBeLessThan(30_000)
  })

  it("leaves none when it is stopped while they start", { timeout: 120_000 }, async () => {
    const { run, start } = await begin(8, 8, () => true)
    for (const [at, millis] of [0, 60, 150, 300, 500].entries()) {
      const running = start({ resume: true })
      await Containers.until(run, (count) => at === 0 || count > 0)
      await sleep(millis)
      running.kill("SIGTERM")
      if (at % 2 === 1) {
        await sleep(30)
        running.kill("SIGTERM")
      }
      const ended = await running.ended
      expect(await Containers.names(run), `${millis} ms`).toEqual([])
      expect(ended.code === 143 || ended.signal === "SIGTERM", ended.stderr).toBe(true)
    }
  })

  it("and that is killed leaves them to `clean`, which spares those of a run that lives", async () => {
    const dead = await begin(6, 6, () => true)
    const live = await begin(1, 1, () => true)
    const running = [dead.start(), live.start()] as const
    await Containers.until(dead.run, (count) => count === 6)
    await Containers.until(live.run, (count) => count === 1)
    running[0].kill("SIGKILL")
    await running[0].ended
    const cleaned = await dead.place.start(["clean"], environment).ended
    expect(cleaned, cleaned.stderr).toMatchObject({ code: 0 })
    // Another test's run may have been first.
    expect(cleaned.stdout).toMatch(/^(Removed \d+ containers?|Nothing was)/)
    expect(await Containers.names(dead.run)).toEqual([])
    expect(await Containers.names(live.run)).toEqual([expect.stringMatching(/running$/)])
    running[1].kill("SIGINT")
    expect((await running[1].ended).code).toBe(130)
    expect(await Containers.names(live.run)).toEqual([])
  })

  it.for([
    ["with one prompt", 0],
    ["with nothing left to do", 1]
  ] as const)("and that is killed leaves them to the next run, also to one %s", async ([, done]) => {
    const next = await begin(1, 1)
    if (done === 1) expect((await next.start().ended).code).toBe(0)
    const dead = await begin(16, 16, () => true)
    const running = dead.start()
    await Containers.until(dead.run, (count) => count === 16)
    running.kill("SIGKILL")
    await running.ended
    const ended = await next.resume()
    expect(ended.code, ended.stderr).toBe(0)
    expect(await Containers.names(dead.run)).toEqual([])
  })
})
