/** The server under fire itself, driven by small clients: what it says it does, it does, and its books are right. */
import { expect, it } from "vitest"
import { chance } from "./Chance.ts"
import { sleep } from "./Command.ts"
import { ended, faults, meanInWork, nanoOf, workOf } from "./FireRecord.ts"
import { type FireServer, serve } from "./FireServer.ts"

interface Got {
  readonly status: number
  readonly headers: Headers
  readonly body: {
    readonly error?: object
    readonly choices?: ReadonlyArray<{
      readonly finish_reason: string
      readonly message: { readonly reasoning?: string }
    }>
    readonly usage?: { readonly cost: number }
  }
}

/** One call for a prompt whose conversation has so many answers; status 0 where there is no HTTP answer. */
const ask = async (server: FireServer, prompt: string, turn = 0, signal?: AbortSignal): Promise<Got> => {
  const answers = Array.from({ length: turn }, () => ({ role: "assistant", content: "" }))
  const messages = [{ role: "system", content: "s" }, { role: "user", content: prompt }, ...answers]
  try {
    const response = await fetch(`${server.url}/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "m", messages }),
      ...(signal === undefined ? {} : { signal })
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Got["body"] }
  } catch {
    return { status: 0, headers: new Headers(), body: {} }
  }
}

it("answers with tool calls until the last turn, and its books are the sum of what it said", async () => {
  const server = await serve({ latency: 5, turns: 3 })
  const got = [await ask(server, "a"), await ask(server, "a", 1), await ask(server, "a", 2), await ask(server, "a", 2)]
  expect(got.map(({ body }) => body.choices?.[0]?.finish_reason)).toEqual(["tool_calls", "tool_calls", "stop", "stop"])
  expect(got.map(({ body }) => nanoOf(body.usage?.cost))).toEqual([12_345_670, 12_345_670, 12_345_670, 12_345_670])
  expect(server.ledger.nano).toBe(4 * 12_345_670)
  expect(server.ledger.tokens).toBe(600)
  expect(server.ledger.duplicates).toBe(1)
  expect(server.calls.map(({ prompt, turn, earlier }) => [prompt, turn, earlier])).toEqual([
    ["a", 0, 0],
    ["a", 1, 0],
    ["a", 2, 0],
    ["a", 2, 1]
  ])
})

it("works on as many at once as it may, sends the others away at once, and charges nothing for that", async () => {
  const server = await serve({ latency: 200, spread: 0, capacity: 3, busyWait: 1 })
  const before = performance.now()
  const got = await Promise.all(Array.from({ length: 8 }, (_, at) => ask(server, `p${at}`)))
  const took = performance.now() - before
  expect(got.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 429, 429, 429, 429, 429])
  expect(got.find(({ status }) => status === 429)?.headers.get("retry-after")).toBe("1")
  expect(server.inWork).toEqual({ now: 0, most: 3 })
  expect(ended(server.calls, "busy").length).toBe(5)
  expect(server.ledger.charges.length).toBe(3)
  expect(workOf(server.calls)).toBeGreaterThan(590)
  expect(workOf(server.calls)).toBeLessThan(3 * took)
  const first = server.calls[0]?.at ?? 0
  expect(meanInWork(server.calls, first, first + 150)).toBeGreaterThan(2.7)
  // Too early, and in time.
  const sent = ended(server.calls, "busy").map(({ prompt }) => prompt)
  await ask(server, sent[0] ?? "")
  expect(server.broken).toMatchObject([{ prompt: sent[0], turn: 0 }])
  await sleep(900)
  await ask(server, sent[1] ?? "")
  expect(server.broken.length).toBe(1)
  server.set({ capacity: 1 })
  const narrow = await Promise.all([ask(server, "x"), ask(server, "y")])
  expect(narrow.map(({ status }) => status).toSorted()).toEqual([200, 429])
})

it("takes so many calls a window and says on every answer how many are left", async () => {
  const server = await serve({ latency: 1, limit: { calls: 3, millis: 1000 } })
  const got = [await ask(server, "a"), await ask(server, "b"), await ask(server, "c"), await ask(server, "d")]
  expect(got.map(({ status }) => status)).toEqual([200, 200, 200, 429])
  expect(got.map(({ headers }) => headers.get("x-ratelimit-remaining-requests"))).toEqual(["2", "1", "0", "0"])
  for (const { headers } of got) expect(headers.get("x-ratelimit-reset-requests")).toMatch(/^\d+ms$|^1\.000s$/)
  expect(got[3]?.headers.get("retry-after")).toBe("1")
  expect(ended(server.calls, "limited").length).toBe(1)
  await sleep(1010)
  expect((await ask(server, "d")).status).toBe(200)
  expect(server.broken).toEqual([])
})

it("makes the same faults for the same seed, about as many of each kind, and only good answers cost", async () => {
  const outcomes = async (seed: number) => {
    const server = await serve({ latency: 2, faulty: 0.3, seed })
    for (let from = 0; from < 700; from += 20)
      await Promise.all(Array.from({ length: 20 }, (_, at) => ask(server, `p${from + at}`)))
    expect(server.inWork.now).toBe(0)
    expect(server.ledger.charges.length).toBe(ended(server.calls, "answered").length)
    return server.calls.toSorted((a, b) => a.prompt.localeCompare(b.prompt)).map(({ outcome }) => outcome)
  }
  const once = await outcomes(7)
  expect(await outcomes(7)).toEqual(once)
  expect(await outcomes(8)).not.toEqual(once)
  for (const fault of faults.filter((each) => each !== "slow")) {
    const count = once.filter((each) => each === fault).length
    expect(count, fault).toBeGreaterThan(12)
    expect(count, fault).toBeLessThan(50)
  }
})

it("meets each reaction that a test wants of it", async () => {
  const reactions = {
    none: { kind: "answer", reasoning: false, nano: 5 },
    paid: { kind: "paidError" },
    refused: { kind: "status", status: 402, error: { message: "no" }, headers: { "x-a": "b" } },
    hang: { kind: "hang" },
    trickle: { kind: "trickle", every: 10 },
    reset: { kind: "fault", fault: "reset" },
    garbage: { kind: "fault", fault: "garbage" }
  } as const
  const server = await serve({
    latency: 5,
    react: ({ prompt }) => Object.entries(reactions).find(([name]) => name === prompt)?.[1]
  })
  expect((await ask(server, "none")).body.choices?.[0]?.message.reasoning).toBeUndefined()
  expect(await ask(server, "paid")).toMatchObject({ status: 200, body: { error: {}, usage: { cost: 0.01234567 } } })
  expect(await ask(server, "refused")).toMatchObject({ status: 402, body: { error: { message: "no" } } })
  expect((await ask(server, "reset")).status).toBe(0)
  expect((await ask(server, "garbage")).status).toBe(0)
  for (const silent of ["hang", "trickle"])
    expect((await ask(server, silent, 0, AbortSignal.timeout(200))).status).toBe(0)
  await sleep(20)
  expect(server.calls.map(({ outcome }) => outcome)).toEqual([
    ...["answered", "error", "refused", "reset", "garbage", "lost", "lost"]
  ])
  expect(server.ledger.nano).toBe(5 + 12_345_670)
  expect(server.inWork.now).toBe(0)
})

it("dies with all its connections and comes back at the same address", async () => {
  const server = await serve({ latency: 300 })
  const url = server.url
  const inWork = [ask(server, "a"), ask(server, "b")]
  await sleep(100)
  await server.stop()
  expect((await Promise.all(inWork)).map(({ status }) => status)).toEqual([0, 0])
  expect(server.calls.map(({ outcome }) => outcome)).toEqual(["killed", "killed"])
  expect((await ask(server, "c")).status).toBe(0)
  expect(server.calls.length).toBe(2)
  await server.start()
  expect(server.url).toBe(url)
  expect((await ask(server, "a")).status).toBe(200)
  expect(server.ledger.charges.length).toBe(1)
})

it("draws chances that are spread evenly and depend on every part", () => {
  const drawn = Array.from({ length: 10_000 }, (_, at) => chance(1, "a", at))
  for (let tenth = 0; tenth < 10; tenth++) {
    const count = drawn.filter((each) => Math.floor(each * 10) === tenth).length
    expect(count).toBeGreaterThan(880)
    expect(count).toBeLessThan(1120)
  }
  expect(new Set([chance(1, "ab", "c"), chance(1, "a", "bc"), chance(2, "ab", "c"), chance(1, "ab", "d")]).size).toBe(4)
})
