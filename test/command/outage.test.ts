/** An endpoint that goes away and comes back, was never there, refuses everybody, or says nothing: the run waits, or ends, in time. */
import { describe, expect, it } from "vitest"
import { sleep, until } from "../support/Command.ts"
import { ended } from "../support/FireRecord.ts"
import { cheap, expectHalted, expectSaved, hearing, named, prepare, saying } from "../support/FireRun.ts"
import { serve } from "../support/FireServer.ts"

/** The endpoint is down, and since when. */
const saysDown = /\bdown\b.*since.*\d\d:\d\d:\d\d/i

// They sleep most of the time: beside each other they take as long as one.
describe.concurrent("A server that dies for 20 s in the middle", () => {
  for (const [what, options] of [
    ["", {}],
    [", longer than a prompt may take: its clock stands still", { timeout: 15 }]
  ] as const) {
    it(`is waited for${what}`, { timeout: 120_000 }, async ({ onTestFinished }) => {
      const prompts = named(150)
      const place = prepare(prompts, onTestFinished)
      const server = await serve({ latency: 150 }, onTestFinished)
      const running = place.begin(server, { ...cheap, ...options, num_workers: 8 })
      const heard = hearing(running)
      await until(() => server.calls.length >= 150, 40_000)
      await server.stop()
      const before = server.calls.length
      await sleep(10_000)
      // Said while it lasts, not afterwards.
      expect(heard()).toMatch(saysDown)
      await sleep(10_000)
      await server.start()
      const back = performance.now()
      await until(() => server.calls.length > before, 15_000)
      // It is looked for often enough, and nobody storms it.
      expect((server.calls[before]?.at ?? 0) - back).toBeLessThan(10_000)
      const run = await running.ended
      expect(run.code, run.stderr.slice(-1000)).toBe(0)
      expectSaved(place, prompts)
      expect(place.failures()).toEqual([])
      expect(place.json("statistics.json")).toMatchObject({ failed: 0 })
      // Only the calls that were in its hands are made again.
      expect(server.calls.length).toBeLessThanOrEqual(450 + 8 + 5)
      // The line of progress has it too.
      expect(run.stderr).toMatch(/^done \d.* {2}endpoint down since \d\d:\d\d:\d\d/m)
      // Told a few times, not once a call.
      expect(saying(run, saysDown).length).toBeLessThanOrEqual(5)
      expect(saying(run, /connection (?:refused|was reset|was closed)/).length).toBeLessThanOrEqual(10)
    })
  }

  it("ends the run after --max_wait with what there is; a resume completes it", { timeout: 80_000 }, async ({
    onTestFinished
  }) => {
    const prompts = named(60)
    const place = prepare(prompts, onTestFinished)
    const server = await serve({ latency: 150 }, onTestFinished)
    const running = place.begin(server, { ...cheap, num_workers: 4, max_wait: 3 })
    await until(() => server.ledger.charges.length >= 60, 40_000)
    await server.stop()
    const died = performance.now()
    const run = await running.ended
    expect(performance.now() - died).toBeGreaterThan(2900)
    expect(performance.now() - died).toBeLessThan(10_000)
    expectHalted(place, run, /longer than --max_wait=3/)
    const saved = place.rows().length
    expect(saved).toBeGreaterThanOrEqual(10)
    expect(saved).toBeLessThan(60)
    expect(run.stdout).toMatch(/--resume/)
    await server.start()
    const before = server.ledger.charges.length
    await place.complete(server, { ...cheap, num_workers: 4, resume: true })
    expectSaved(place, prompts)
    expect(server.ledger.charges.length - before).toBe(3 * (60 - saved))
  })

  it("is the same as one that answers everybody with HTTP 503 for as long", { timeout: 120_000 }, async ({
    onTestFinished
  }) => {
    const prompts = named(150)
    const place = prepare(prompts, onTestFinished)
    const server = await serve({ latency: 150 }, onTestFinished)
    const running = place.begin(server, { ...cheap, num_workers: 8, timeout: 15 })
    await until(() => server.calls.length >= 150, 40_000)
    server.set({ react: () => ({ kind: "fault", fault: "503" }) })
    const before = server.calls.length
    await sleep(20_000)
    // Looked for now and then, not stormed.
    expect(server.calls.length - before).toBeLessThan(200)
    server.set({ react: () => undefined })
    const run = await running.ended
    expect(run.code, run.stderr.slice(-1000)).toBe(0)
    expectSaved(place, prompts)
    expect(place.failures()).toEqual([])
  })

  it("several times for less than --max_wait does not end the run", { timeout: 120_000 }, async ({
    onTestFinished
  }) => {
    const prompts = named(80)
    const place = prepare(prompts, onTestFinished)
    const server = await serve({ latency: 150 }, onTestFinished)
    const running = place.begin(server, { ...cheap, num_workers: 4, max_wait: 8 })
    for (const enough of [20, 100, 160]) {
      await until(() => server.ledger.charges.length >= enough, 40_000)
      await server.stop()
      await sleep(4000)
      await server.start()
    }
    const run = await running.ended
    expect(run.code, run.stderr.slice(-1000)).toBe(0)
    expectSaved(place, prompts)
    expect(place.failures()).toEqual([])
  })

  it("lets a signal end the wait", { timeout: 120_000 }, async ({ onTestFinished }) => {
    const place = prepare(named(60), onTestFinished)
    const server = await serve({ latency: 150 }, onTestFinished)
    const running = place.begin(server, { ...cheap, num_workers: 4 })
    await until(() => server.ledger.charges.length >= 20, 40_000)
    await server.stop()
    await sleep(2000)
    running.kill("SIGINT")
    const signalled = performance.now()
    expect((await running.ended).code).toBe(130)
    expect(performance.now() - signalled).toBeLessThan(3000)
    expect(place.failures()).toEqual([])
  })
})

describe("An endpoint that is not there from the start", () => {
  it("ends the run soon, with one line and nothing marked as failed; a resume runs all", async () => {
    const prompts = named(12)
    const place = prepare(prompts)
    const server = await serve({ latency: 20 })
    await server.stop()
    const run = await place.run(server, { ...cheap, num_workers: 4 })
    expect(run.took).toBeLessThan(15_000)
    expectHalted(place, run, /^(?!.*since).*127\.0\.0\.1:\d+.*connection refused/)
    await server.start()
    await place.complete(server, { ...cheap, resume: true })
    expectSaved(place, prompts)
  })
})

describe("An endpoint that says nothing", () => {
  it("costs a prompt its --timeout, keeps what it had, and holds nobody else up", async () => {
    const prompts = ["hangs", "trickles", ...named(10)]
    const place = prepare(prompts)
    const server = await serve({
      latency: 50,
      react: ({ prompt, turn }) => {
        if (turn === 0) return undefined
        return prompt === "hangs"
          ? { kind: "hang" }
          : prompt === "trickles"
            ? { kind: "trickle", every: 50 }
            : undefined
      }
    })
    const run = await place.run(server, { ...cheap, num_workers: 4, timeout: 3 })
    expect(run.code).toBe(1)
    expect(run.took).toBeGreaterThan(3000)
    expect(run.took).toBeLessThan(12_000)
    const failures = place.failures().toSorted((a, b) => a.prompt_index - b.prompt_index)
    for (const [at, failure] of failures.entries()) {
      expect(failure).toMatchObject({
        ...{ prompt_index: at, kind: "session_timed_out", attempt: 1, api_calls: 1, retryable: true },
        usage: { total: 150, cost_usd: 0.01234567 }
      })
      expect(failure.conversations.map(({ from, value }) => [from, from === "human" ? value : ""])).toEqual([
        ["human", prompts[at]],
        ["gpt", ""],
        ["tool", ""]
      ])
    }
    expect(failures.length).toBe(2)
    expect(place.rows().map((row) => row.prompt_index)).toEqual(named(10).map((_, at) => at + 2))
    expect(ended(server.calls, "lost").length).toBe(2)
    expect(server.inWork.now).toBe(0)
  })
})
