/** Failures told apart: what ends a call, a prompt or the run, what runs again on resume, and when too many are enough. */
import { describe, expect, it } from "vitest"
import { sandboxed, until } from "../support/Command.ts"
import type { Reaction } from "../support/FireConduct.ts"
import type { Call } from "../support/FireRecord.ts"
import { cheap, expectHalted, expectSaved, named, prepare, saying } from "../support/FireRun.ts"
import { serve } from "../support/FireServer.ts"
import * as ModelServer from "../support/ModelServer.ts"
import * as Talk from "../support/Talk.ts"

const status = (code: number, error: object): Reaction => ({ kind: "status", status: code, error })

const hopeless: ReadonlyArray<readonly [number, object, RegExp]> = [
  [401, { message: "No auth credentials found", code: 401 }, /HTTP 401/],
  [402, { message: "Insufficient credits", code: 402 }, /HTTP 402/],
  [404, { message: "No endpoints found for test-model.", code: 404 }, /HTTP 404/],
  [403, { message: "Key limit exceeded", code: 403 }, /HTTP 403/]
]

describe("What no call of the run can get past", () => {
  for (const [code, error, says] of hopeless) {
    it(`ends it at once with one line: HTTP ${code} for all; a resume runs everything`, async () => {
      const prompts = named(30)
      const place = prepare(prompts)
      const server = await serve({ latency: 50, react: () => status(code, error) })
      const run = await place.run(server, { ...cheap, num_workers: 6 }, { BATCH_RUNNER_API_KEY: "some-key" })
      expectHalted(place, run, says)
      expect(run.took).toBeLessThan(10_000)
      expect(server.calls.length).toBeLessThanOrEqual(12)
      server.set({ react: () => undefined })
      await place.complete(server, { ...cheap, resume: true })
      expectSaved(place, prompts)
    })
  }

  for (const [code, error, says] of hopeless.slice(0, 2)) {
    it(`ends it in the middle too, with what was done kept and in-flight prompts released: HTTP ${code}`, async () => {
      const prompts = named(60)
      const place = prepare(prompts)
      let empty = false
      const server = await serve({ latency: 100, react: () => (empty ? status(code, error) : undefined) })
      const running = place.begin(server, { ...cheap, num_workers: 6 })
      await until(() => server.ledger.charges.length >= 45)
      empty = true
      const before = server.calls.length
      const run = await running.ended
      expectHalted(place, run, says)
      // Those in its hands, and those that were on their way.
      expect(server.calls.length - before).toBeLessThanOrEqual(12)
      expect(place.rows().length).toBeGreaterThanOrEqual(10)
      empty = false
      await place.complete(server, { ...cheap, num_workers: 6, resume: true })
      expectSaved(place, prompts)
    })
  }
})

it("What no call can get past ends the run while tools are at work, too, and leaves none of them", async () => {
  const place = prepare(["works", "meets it"])
  let empty = true
  const server = await Talk.serve((request) => {
    if (!empty) return Talk.final()
    return Talk.promptOf(request) === "works"
      ? Talk.runs("sleep 60")
      : { ...ModelServer.error(402, "Insufficient credits"), delay: 1500 }
  })
  const running = place.begin(server, { num_workers: 2 })
  const run = await running.ended
  expectHalted(place, run, /HTTP 402/)
  expect(run.took).toBeLessThan(15_000)
  expect(sandboxed(running.pid)).toEqual([])
  expect(place.rows()).toEqual([])
  expect(place.json("statistics.json")).toMatchObject({ tokens: { total: 15 }, failed: 0 })
  empty = false
  await place.complete(server, { num_workers: 2, resume: true })
  expectSaved(place, ["works", "meets it"])
})

describe("What one prompt cannot get past", () => {
  it("fails that prompt and leaves the others alone: HTTP 403 for one of them", async () => {
    const prompts = ["forbidden", ...named(20)]
    const place = prepare(prompts)
    const server = await serve({
      latency: 50,
      react: ({ prompt }) => (prompt === "forbidden" ? status(403, { message: "not you", code: 403 }) : undefined)
    })
    const run = await place.run(server, { ...cheap, num_workers: 4 })
    expect(run.code).toBe(1)
    expect(place.rows().map((row) => row.prompt_index)).toEqual(named(20).map((_, at) => at + 1))
    expect(place.failures()).toMatchObject([{ prompt_index: 0, kind: "forbidden", attempt: 1 }])
    expect(server.calls.filter(({ prompt }) => prompt === "forbidden").length).toBeLessThanOrEqual(2)
  })

  const refusals: Readonly<Record<string, Reaction>> = {
    "too long": status(400, {
      message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
      type: "invalid_request_error",
      code: "context_length_exceeded"
    }),
    refused: status(400, {
      message: "The response was filtered due to the prompt triggering the content management policy.",
      code: "content_filter"
    }),
    flagged: status(403, {
      message: "Your input was flagged",
      code: 403,
      metadata: { reasons: ["violence"], flagged_input: "…", provider_name: "x", model_slug: "y" }
    }),
    bad: status(400, { message: "unknown field", code: 400 })
  }
  const kinds = ["context_too_long", "content_refused", "content_refused", "bad_request"]

  it("is written down with its kind, and a resume runs what may go better, or what it is told to", async () => {
    const prompts = [...Object.keys(refusals), ...named(6)]
    const place = prepare(prompts)
    let mended = false
    const react = ({ prompt }: Call) => (mended ? undefined : refusals[prompt])
    const server = await serve({ latency: 30, react })
    const asked = async (options: object) => {
      const before = server.calls.length
      const run = await place.run(server, { ...cheap, num_workers: 2, resume: true, ...options })
      return {
        code: run.code,
        prompts: [...new Set(server.calls.slice(before).map(({ prompt }) => prompt))].toSorted()
      }
    }
    expect((await asked({})).code).toBe(1)
    const failures = () => place.failures().toSorted((a, b) => a.attempt - b.attempt || a.prompt_index - b.prompt_index)
    expect(failures().map(({ kind }) => kind)).toEqual(kinds)
    for (const failure of failures()) {
      expect(failure).toMatchObject({ attempt: 1, usage: { total: 0, cost_usd: 0 }, api_calls: 0 })
      expect(failure.message).toMatch(/^HTTP 40[03] from /)
    }
    // Again: only what may go better, and its failures count on.
    expect(await asked({})).toEqual({ code: 1, prompts: ["bad"] })
    expect(failures().slice(4)).toMatchObject([{ kind: "bad_request", attempt: 2, prompt_index: 3 }])
    // Those of one kind, then all.
    expect(await asked({ retry_failed: "content_refused" })).toEqual({ code: 1, prompts: ["flagged", "refused"] })
    expect(failures().slice(4)).toMatchObject([{ attempt: 2 }, { attempt: 2 }, { attempt: 2 }])
    expect(await asked({ retry_failed: "context_too_long,bad_request" })).toEqual({
      code: 1,
      prompts: ["bad", "too long"]
    })
    mended = true
    expect(await asked({})).toEqual({ code: 1, prompts: ["bad"] })
    expect(await asked({ retry_failed: "all" })).toEqual({ code: 0, prompts: ["flagged", "refused", "too long"] })
    expectSaved(place, prompts)
    expect(place.json("statistics.json")).toMatchObject({ failed: 0 })
  })

  it("says what its failed attempt had spent", async () => {
    const place = prepare(["breaks", "works"])
    const server = await serve({
      latency: 20,
      react: ({ prompt, turn }) =>
        prompt === "breaks" && turn === 2 ? status(400, { message: "no more", code: 400 }) : undefined
    })
    expect((await place.run(server, cheap)).code).toBe(1)
    expect(place.failures()).toMatchObject([
      { kind: "bad_request", attempt: 1, api_calls: 2, usage: { total: 300, cost_usd: 0.02469134 } }
    ])
  })
})

describe("Too many failures of a kind in a row", () => {
  const refuse = (message: string): Reaction => status(400, { message, code: 400 })

  it("stop the run, which says so, and leave the rest to a resume", async () => {
    const prompts = named(30)
    const place = prepare(prompts)
    const server = await serve({ latency: 20, react: () => refuse("never") })
    const options = { ...cheap, num_workers: 1, max_consecutive_failures: 3 }
    const run = await place.run(server, options)
    expect(run.code).toBe(1)
    expect(saying(run, /max_consecutive_failures/).length).toBe(1)
    expect(place.failures().map(({ kind }) => kind)).toEqual(["bad_request", "bad_request", "bad_request"])
    expect(server.calls.length).toBe(3)
    server.set({ react: () => undefined })
    await place.complete(server, { ...options, resume: true })
    expectSaved(place, prompts)
  })

  it("are 20 unless said otherwise, and those in flight with them", async () => {
    const place = prepare(named(100))
    const server = await serve({ latency: 30, react: () => refuse("never") })
    const run = await place.run(server, { ...cheap, num_workers: 4 })
    expect(run.code).toBe(1)
    expect(saying(run, /max_consecutive_failures/).length).toBe(1)
    expect(place.failures().length).toBeGreaterThanOrEqual(20)
    expect(place.failures().length).toBeLessThanOrEqual(24)
  })

  it("are counted anew after a success, and for each kind", async () => {
    const prompts = named(30)
    const place = prepare(prompts)
    // Two of a kind, then a success or another kind, again and again.
    const server = await serve({
      latency: 10,
      react: ({ prompt }) => {
        const at = Number(/\d+/.exec(prompt)?.[0]) % 5
        if (at === 2) return undefined
        return at < 2 ? refuse("never") : status(400, { message: "filtered", code: "content_filter" })
      }
    })
    const run = await place.run(server, { ...cheap, num_workers: 1, max_consecutive_failures: 3 })
    expect(run.code).toBe(1)
    expect(saying(run, /max_consecutive_failures/)).toEqual([])
    expect(place.failures().length).toBe(24)
    expect(place.rows().length).toBe(6)
  })
})
