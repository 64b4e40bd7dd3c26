/** What a run may cost, and that it is counted to the nano-dollar of the server's own books. */
import { describe, expect, it } from "vitest"
import { until } from "../support/Command.ts"
import { defaults } from "../support/FireConduct.ts"
import { nanoOf } from "../support/FireRecord.ts"
import { cheap, expectAgreed, expectSaved, named, prepare, saying } from "../support/FireRun.ts"
import { serve } from "../support/FireServer.ts"
import * as ModelServer from "../support/ModelServer.ts"
import * as Talk from "../support/Talk.ts"

const { nano } = defaults
const workers = { ...cheap, num_workers: 4 }

describe("--max_cost", () => {
  it("is never passed, says how to go on, asks nothing when it is used up, and counts what was spent before", async () => {
    const prompts = named(30)
    const place = prepare(prompts)
    const server = await serve({ latency: 60, nano })
    // 25 calls, and most of a 26th.
    const run = await place.run(server, { ...workers, max_cost: 0.32 })
    expect(run.code).toBe(1)
    expect(server.ledger.nano).toBeLessThanOrEqual(320_000_000)
    // A call more of each worker would have been too much, or nearly.
    expect(server.ledger.nano).toBeGreaterThan(320_000_000 - 5 * nano)
    expectAgreed(place, server.ledger)
    expect(place.failures()).toEqual([])
    expect(`${run.stderr}${run.stdout}`).toMatch(/max_cost/)
    expect(run.stdout).toMatch(/--resume/)
    const [rows, before] = [place.rows().length, server.calls.length]
    expect(rows).toBeGreaterThan(0)

    const same = await place.run(server, { ...workers, max_cost: 0.32, resume: true })
    expect(same.code).toBe(1)
    expect(server.calls.length).toBe(before)
    expect(`${same.stderr}${same.stdout}`).toMatch(/max_cost/)
    expectAgreed(place, server.ledger)

    const more = await place.run(server, { ...workers, max_cost: 0.6, resume: true })
    expect(more.code).toBe(1)
    expect(server.ledger.nano).toBeLessThanOrEqual(600_000_000)
    expect(server.ledger.nano).toBeGreaterThan(600_000_000 - 5 * nano)
    expect(place.rows().length).toBeGreaterThan(rows)
    expectAgreed(place, server.ledger)

    await place.complete(server, { ...workers, resume: true })
    expectSaved(place, prompts)
    expectAgreed(place, server.ledger)
  })

  it("that is enough is not in the way, down to the last call", async () => {
    const prompts = named(10)
    const place = prepare(prompts)
    const server = await serve({ latency: 30, nano: 10_000_000 })
    await place.complete(server, { ...workers, max_cost: 0.3 })
    expectSaved(place, prompts)
    expect(server.ledger.nano).toBe(300_000_000)
    expectAgreed(place, server.ledger)
  })

  it("lets what is under way come to its end, which is saved, and begins nothing more", async () => {
    const place = prepare(["first", "slow", ...named(20)])
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, cost: 0.01 }
    // The others have used up all the rest long before it answers.
    const server = await Talk.serve((request) => ({
      ...{ body: ModelServer.completion({ content: "done", reasoning: "hm", usage }) },
      delay: Talk.promptOf(request) === "slow" ? 2000 : 20
    }))
    const run = await place.run(server, { ...cheap, num_workers: 3, max_cost: 0.05 })
    expect(run.code, run.stderr).toBe(1)
    expect(run.took).toBeGreaterThan(2000)
    expect(server.requests.length).toBe(5)
    expect(place.rows().map((row) => row.conversations[0]?.value)).toEqual(["first", "slow", ...named(3)])
    expect(place.failures()).toEqual([])
    expect(place.json("statistics.json")).toMatchObject({ cost_usd: 0.05, tokens: { total: 75 } })
    expect(place.json("checkpoint.json")).toMatchObject({ completed_prompts: [[0, 4]] })
  })

  it("is not passed by the first calls either, whose cost nobody knows, when one at a time would not", async () => {
    const place = prepare(named(30))
    const server = await serve({ latency: 60, nano })
    const run = await place.run(server, { ...cheap, num_workers: 16, max_cost: 0.05 })
    expect(run.code).toBe(1)
    expect(server.ledger.nano).toBeLessThanOrEqual(50_000_000)
    expect(server.ledger.nano).toBeGreaterThan(0)
    expectAgreed(place, server.ledger)
  })

  it("counts failed attempts, discarded rows, and errors that were charged", async () => {
    const prompts = ["fails", "silent", "paid", "unlucky", ...named(30)]
    const place = prepare(prompts)
    const server = await serve({
      latency: 40,
      nano,
      react: ({ prompt, turn, earlier }) => {
        if (prompt === "silent") return { kind: "answer", reasoning: false }
        if (prompt === "paid" && turn === 1 && earlier < 2) return { kind: "paidError" }
        if (prompt === "unlucky" && turn === 1 && earlier === 0) return { kind: "fault", fault: "500" }
        return prompt === "fails" && turn === 2 ? { kind: "status", status: 400, error: { message: "no" } } : undefined
      }
    })
    // First all that is special, then as much as the budget allows.
    expect((await place.run(server, { ...workers, max_samples: 4 })).code).toBe(1)
    expect(server.ledger.of("fails")).toBe(2 * nano)
    expect(server.ledger.of("silent")).toBe(3 * nano)
    expect(server.ledger.of("paid")).toBe(5 * nano)
    expect(place.failures().map(({ usage }) => nanoOf(usage.cost_usd))).toEqual([2 * nano])
    expect(place.rows("discarded.jsonl").map(({ metadata }) => nanoOf(metadata.usage.cost_usd))).toEqual([3 * nano])
    const paid = place.rows().find((row) => row.conversations[0]?.value === "paid")
    expect(nanoOf(paid?.metadata.usage.cost_usd)).toBe(5 * nano)
    expectAgreed(place, server.ledger)

    // 13 calls were paid for; the failed prompt runs again first.
    const run = await place.run(server, { ...workers, resume: true, max_cost: (40.5 * nano) / 1e9 })
    expect(run.code).toBe(1)
    expect(server.ledger.nano).toBeLessThanOrEqual(40 * nano)
    expect(server.ledger.nano).toBeGreaterThan(35 * nano)
    expectAgreed(place, server.ledger)
  })

  it("counts the answers of prompts that a signal released", { timeout: 60_000 }, async () => {
    const prompts = named(40)
    const place = prepare(prompts)
    const server = await serve({ latency: 150, nano, turns: 4 })
    const running = place.begin(server, { ...cheap, num_workers: 8 })
    await until(() => server.ledger.charges.length >= 46)
    running.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    // What the server wrote while the signal was on its way was read by nobody: less than each worker's call.
    const told = nanoOf(Number(place.json("statistics.json").cost_usd))
    const unread = server.ledger.nano - told
    expect(unread).toBeGreaterThanOrEqual(0)
    expect(unread).toBeLessThan(8 * nano)
    const spent = server.ledger.nano
    const run = await place.run(server, { ...workers, resume: true, max_cost: (told + 10.5 * nano) / 1e9 })
    expect(run.code).toBe(1)
    expect(server.ledger.nano - spent).toBeLessThanOrEqual(10 * nano)
    expect(server.ledger.nano - spent).toBeGreaterThan(5 * nano)
    await place.complete(server, { ...cheap, num_workers: 8, resume: true })
    expectSaved(place, prompts)
    expect(nanoOf(Number(place.json("statistics.json").cost_usd))).toBe(server.ledger.nano - unread)
  })

  it("counts what those released cost that a hopeless endpoint ended", async () => {
    const prompts = named(40)
    const place = prepare(prompts)
    let empty = false
    const server = await serve({
      latency: 100,
      nano,
      react: () => (empty ? { kind: "status", status: 402, error: { message: "Insufficient credits" } } : undefined)
    })
    const running = place.begin(server, workers)
    await until(() => server.ledger.charges.length >= 20)
    empty = true
    expect((await running.ended).code).toBe(1)
    expectAgreed(place, server.ledger)
    empty = false
    await place.complete(server, { ...workers, resume: true })
    expectSaved(place, prompts)
    expectAgreed(place, server.ledger)
  })

  it("needs a price: without any the run ends after the first answers and says what to give", async () => {
    const prompts = named(30)
    const place = prepare(prompts)
    const server = await serve({ latency: 60, tellsCost: false })
    const run = await place.run(server, { ...workers, max_cost: 1 })
    expect(run.code).toBe(1)
    expect(saying(run, /--prices/).length).toBe(1)
    expect(server.calls.length).toBeLessThanOrEqual(8)
    expect(place.failures()).toEqual([])
    await place.complete(server, { ...workers, resume: true })
    expectSaved(place, prompts)
  })
})

describe("--prices", () => {
  const tokens = { prompt: 1000, completion: 200 }
  /** 3 dollars a million prompt tokens, 15 a million completion tokens. */
  const priced = 1000 * 3000 + 200 * 15_000
  const prices = (model: string) => ({ [model]: { prompt: 3, completion: 15 } })

  for (const model of ["test-model", "*"]) {
    it(`say what calls cost where the endpoint does not: ${model}`, async () => {
      const prompts = named(20)
      const place = prepare(prompts)
      place.write("prices.json", JSON.stringify(prices(model)))
      const server = await serve({ latency: 40, tellsCost: false, tokens, nano: priced })
      const options = { ...workers, prices: "prices.json" }
      const run = await place.run(server, { ...options, max_cost: 0.15 })
      expect(run.code).toBe(1)
      expect(server.ledger.nano).toBeLessThanOrEqual(150_000_000)
      expect(server.ledger.nano).toBeGreaterThan(150_000_000 - 5 * priced)
      expectAgreed(place, server.ledger)
      await place.complete(server, { ...options, resume: true })
      expectSaved(place, prompts)
      expectAgreed(place, server.ledger)
      expect(place.rows().map((row) => nanoOf(row.metadata.usage.cost_usd))).toEqual(prompts.map(() => 3 * priced))
    })
  }

  it("do not count where the endpoint tells", async () => {
    const place = prepare(named(4))
    place.write("prices.json", JSON.stringify(prices("test-model")))
    const server = await serve({ latency: 20, nano })
    await place.run(server, { ...workers, prices: "prices.json" })
    expectAgreed(place, server.ledger)
  })
})

describe("--max_total_tokens", () => {
  it("is never passed, also over several sessions of work", async () => {
    const prompts = named(30)
    const place = prepare(prompts)
    const server = await serve({ latency: 60, tellsCost: false })
    for (const [limit, resume] of [
      [4000, false],
      [4000, true],
      [7000, true]
    ] as const) {
      const before = server.calls.length
      const run = await place.run(server, { ...workers, max_total_tokens: limit, resume })
      expect(run.code).toBe(1)
      expect(`${run.stderr}${run.stdout}`).toMatch(/max_total_tokens/)
      expect(server.ledger.tokens).toBeLessThanOrEqual(limit)
      expect(server.ledger.tokens).toBeGreaterThan(limit - 5 * 150)
      if (resume && limit === 4000) expect(server.calls.length).toBe(before)
      expect(place.json("statistics.json").tokens).toMatchObject({ total: server.ledger.tokens })
      expect(place.failures()).toEqual([])
    }
    await place.complete(server, { ...workers, resume: true })
    expectSaved(place, prompts)
    expect(place.json("statistics.json").tokens).toMatchObject({ total: server.ledger.tokens })
  })
})
