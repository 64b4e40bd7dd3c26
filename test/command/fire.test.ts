/** A run against an endpoint that refuses, fails and has limits: every prompt is saved once, and what is sent follows what is taken. */
import { expect, it } from "vitest"
import { sleep, until } from "../support/Command.ts"
import { between, type Call, ended, meanInWork, workOf } from "../support/FireRecord.ts"
import { cheap, expectSaved, named, prepare } from "../support/FireRun.ts"
import { serve } from "../support/FireServer.ts"

/** The moment by which such a part of all that was answered had been answered. */
const momentOf = (calls: ReadonlyArray<Call>, part: number): number => {
  const moments = ended(calls, "answered")
    .map((call) => call.ended ?? 0)
    .toSorted((a, b) => a - b)
  return moments[Math.floor(part * (moments.length - 1))] ?? 0
}

it("saves each of 1,000 prompts once while 30 % of calls fail, with few calls more than needed, in good time", {
  timeout: 180_000
}, async () => {
  const capacity = 16
  const prompts = named(1000)
  const place = prepare(prompts)
  // Of this seed one call fails seven times in a row; without a call too many there would be 3,987.
  const server = await serve({ seed: 1, faulty: 0.3, capacity, latency: 100 })
  const run = await place.run(server, { ...cheap, num_workers: 48 })
  expect(run.code, run.stderr.slice(-1000)).toBe(0)
  expectSaved(place, prompts)
  expect(place.failures()).toEqual([])
  expect(place.rows().every((row) => row.api_calls === 3)).toBe(true)
  expect(server.ledger.duplicates).toBe(0)
  expect(server.broken).toEqual([])
  expect(server.calls.length).toBeLessThanOrEqual(1.6 * 3000)
  // The server can do so much work at once: with never a free place it would have taken this long for all the calls that it
  // took, slow ones and those that failed in its hands included. Start and end of the run count as its own.
  const ideal = workOf(server.calls) / capacity
  expect(run.took / ideal).toBeLessThanOrEqual(1.5)
})

it("finds what a server takes: few calls sent away, and hardly a free place", { timeout: 120_000 }, async () => {
  const capacity = 20
  const prompts = named(700)
  const place = prepare(prompts)
  const server = await serve({ capacity, latency: 200 })
  await place.complete(server, { ...cheap, num_workers: 64 })
  expectSaved(place, prompts)
  expect(server.inWork.most).toBe(capacity)
  const warm = server.calls.slice(Math.ceil(server.calls.length / 10))
  expect(ended(warm, "busy").length / warm.length).toBeLessThan(0.03)
  // From the end of the warm-up until so few sessions are left that they cannot fill the server.
  const [from, to] = [warm[0]?.at ?? 0, momentOf(server.calls, 0.95)]
  const answered = ended(server.calls, "answered")
  const meanTime = workOf(answered) / answered.length
  const rate = answered.filter((call) => (call.ended ?? 0) >= from && (call.ended ?? 0) < to).length / (to - from)
  expect(rate / (capacity / meanTime)).toBeGreaterThanOrEqual(0.9)
})

it("follows a server whose capacity falls and rises again", { timeout: 120_000 }, async () => {
  const place = prepare(named(3000))
  const server = await serve({ capacity: 20, latency: 200 })
  const running = place.begin(server, { ...cheap, num_workers: 64 })
  await until(() => server.calls.length > 0)
  await sleep(6000)
  const full = performance.now()
  server.set({ capacity: 5 })
  await sleep(8000)
  const low = performance.now()
  server.set({ capacity: 20 })
  await sleep(10_000)
  const high = performance.now()
  running.kill("SIGINT")
  expect((await running.ended).code).toBe(130)
  // Each time the last seconds count, when it has had time to settle.
  expect(meanInWork(server.calls, full - 2000, full)).toBeGreaterThanOrEqual(17)
  expect(meanInWork(server.calls, low - 4000, low)).toBeGreaterThanOrEqual(4)
  expect(meanInWork(server.calls, high - 4000, high)).toBeGreaterThanOrEqual(17)
  // What is sent falls too: at five a time and 200 ms, a steady 64 would be sent away at least nine times of ten.
  const narrow = between(server.calls, low - 4000, low)
  expect(ended(narrow, "busy").length / narrow.length).toBeLessThan(0.15)
  const wide = between(server.calls, high - 4000, high)
  expect(ended(wide, "busy").length / wide.length).toBeLessThan(0.03)
  expect(place.failures()).toEqual([])
})

it("sends as many calls as there are workers with --concurrency=fixed, whatever comes back", async () => {
  const prompts = named(128)
  const place = prepare(prompts)
  const server = await serve({ latency: 1000, turns: 1, busyWait: 1 })
  const running = place.begin(server, { ...cheap, num_workers: 64, concurrency: "fixed" })
  await until(() => server.calls.length >= 64)
  expect(ended(server.calls, "answered")).toEqual([])
  server.set({ capacity: 0 })
  // Every place is given away again at once, though nothing but refusals came back last.
  await until(() => ended(server.calls, "busy").length >= 64)
  server.set({ capacity: 1000 })
  expect((await running.ended).code).toBe(0)
  expect(server.inWork.most).toBe(64)
  expectSaved(place, prompts)
})

it("never has more calls in flight than workers", async () => {
  const place = prepare(named(60))
  const server = await serve({ latency: 50 })
  await place.complete(server, { ...cheap, num_workers: 6 })
  expect(server.inWork.most).toBeLessThanOrEqual(6)
  expect(server.inWork.most).toBeGreaterThanOrEqual(5)
})

it("heeds the limit that the headers tell before it is hit, and uses it up", { timeout: 90_000 }, async () => {
  const limit = { calls: 40, millis: 2000 }
  const prompts = named(130)
  const place = prepare(prompts)
  const server = await serve({ latency: 100, limit })
  await place.complete(server, { ...cheap, num_workers: 32 })
  expectSaved(place, prompts)
  expect(ended(server.calls, "limited").length / server.calls.length).toBeLessThanOrEqual(0.01)
  expect(server.broken).toEqual([])
  // 390 calls are ten windows; the last need not be waited out.
  const took = (server.calls.at(-1)?.at ?? 0) - (server.calls[0]?.at ?? 0)
  expect(took).toBeLessThan(1.3 * Math.ceil(390 / limit.calls) * limit.millis)
})

it("waits as long as those are told to wait that are sent away, and no longer than needed", async () => {
  const prompts = named(40)
  const place = prepare(prompts)
  const server = await serve({ latency: 200, capacity: 4, busyWait: 1, turns: 2 })
  const run = await place.complete(server, { ...cheap, num_workers: 16 })
  expectSaved(place, prompts)
  expect(server.broken).toEqual([])
  expect(run.took).toBeLessThan(15_000)
})
