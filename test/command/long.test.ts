/** Sessions that are too long, that go in circles or that cost too much end in order, and their rows say so. */
import { describe, expect, it } from "vitest"
import { lastTurn } from "../../src/agent/SystemPrompt.ts"
import type { Row } from "../../src/trajectory/Trajectory.ts"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

const resultsOf = (row: Row | undefined) =>
  (row?.conversations ?? []).flatMap(({ from, value }) => (from === "tool" ? [JSON.parse(value)] : []))

const refusal: ModelServer.Reaction = {
  status: 400,
  body: {
    error: {
      message: "This model's maximum context length is 30000 characters.",
      type: "invalid_request_error",
      code: "context_length_exceeded"
    }
  }
}

/** Answers as `handler` does what is not longer, and refuses the rest. */
const upTo =
  (characters: number, handler: (request: ModelServer.Recorded) => ModelServer.Reaction): ModelServer.Handler =>
  (request) =>
    JSON.stringify(request.body.messages).length > characters ? refusal : handler(request)

describe("a conversation that is longer than the model takes", () => {
  it("goes on with older tool results shortened, marked in the row and counted in its metadata", async () => {
    const place = new Workplace()
    place.dataset(["a", "short"])
    const server = await serve(
      upTo(30_000, (request) =>
        turnOf(request) < 3 && promptOf(request) === "a" ? runs(`seq -w ${turnOf(request)} 1600`) : final()
      )
    )
    await place.complete(server, { num_workers: 1 })
    const [row, short] = place.rows()
    expect(Object.keys(row?.metadata ?? {})).toEqual(Object.keys(short?.metadata ?? {}))
    expect(short).toMatchObject({ metadata: { shortened: 0 } })
    expect(row).toMatchObject({ completed: true, partial: false, api_calls: 4, metadata: { shortened: 2 } })
    const [first, second, third] = resultsOf(row)
    for (const [at, { output, exit_code }] of [first, second].entries()) {
      expect(exit_code).toBe(0)
      expect(output).toMatch(new RegExp(`^000${at}\\n000`))
      expect(output).toMatch(/\n\[… \d+ characters left out to make room …\]\n/)
      expect(output).toMatch(/1600\n$/)
      expect(output.length).toBeLessThan(1000)
    }
    expect(third.output.length).toBeGreaterThan(7000)
    // What the row holds is what the model answered last.
    const read = server.requests.at(-2)?.body.messages.filter(({ role }) => role === "tool")
    expect(read?.map(({ content }) => JSON.parse(String(content)))).toEqual([first, second, third])
    expect(server.requests.length).toBe(6)
  })

  it("ends as partial when that was not enough, and has failed when its prompt alone is too long", async () => {
    const place = new Workplace()
    place.dataset(["long session", `long prompt ${"x".repeat(5000)}`])
    const server = await serve(
      upTo(4500, (request) => runs(`echo ${turnOf(request)}; seq -w 1 ${200 + turnOf(request)}`))
    )
    const { code, stderr } = await place.run(server, { max_turns: 30 })
    expect(code).toBe(1)
    const [row, ...others] = place.rows()
    expect([row?.prompt_index, others]).toEqual([0, []])
    expect(row).toMatchObject({ completed: false, partial: true, metadata: { shortened: 0 } })
    expect(row?.conversations.at(-1)?.from).toBe("tool")
    expect(stderr).toMatch(/kept, cut short: 3 answers, 3 calls/)
    expect(place.failures()).toMatchObject([
      { prompt_index: 1, kind: "context_too_long", retryable: false, api_calls: 0, conversations: [] }
    ])
    // Three answers and one refusal, which is not asked again as it is; and one refusal of the long prompt.
    expect(server.requests.length).toBe(5)
  })
})

describe("the same call with the same result", () => {
  it("gets a hint from the third time on, and ends the session as partial after ten", async () => {
    const place = new Workplace()
    place.dataset(["circles", "learns"])
    const server = await serve((request) =>
      promptOf(request) === "learns" && JSON.stringify(request.body.messages).includes("3 times in a row")
        ? final("I see.")
        : runs("cat nonsuch")
    )
    await place.complete(server, { max_turns: 20 })
    const [circles, learns] = place.rows()
    expect(circles).toMatchObject({ completed: false, partial: true, api_calls: 10 })
    expect(circles?.tool_stats.terminal?.count).toBe(10)
    const results = resultsOf(circles)
    expect(new Set(results.map(({ output, error }) => JSON.stringify([output, error]))).size).toBe(1)
    expect(results.slice(0, 2).every((result) => !("hint" in result))).toBe(true)
    expect(results.slice(2).map(({ hint }) => /result (\d+) times in a row/.exec(hint)?.[1])).toEqual([
      "3",
      "4",
      "5",
      "6",
      "7",
      "8",
      "9",
      "10"
    ])
    expect(learns).toMatchObject({ completed: true, partial: false, api_calls: 4 })
  })
})

describe("the budget of a prompt", () => {
  /** What a call costs: a dollar per million characters of the prompt, ten of the answer. */
  const usageOf = (request: ModelServer.Recorded) => {
    const prompt = JSON.stringify(request.body.messages).length
    return { prompt_tokens: prompt, completion_tokens: 40, total_tokens: prompt + 40, cost: (prompt + 400) / 1e6 }
  }
  const paid = (request: ModelServer.Recorded, spec: ModelServer.AnswerSpec) =>
    ModelServer.answer({ reasoning: "hm", ...spec, usage: usageOf(request) })
  const toldToEnd = (request: ModelServer.Recorded) => JSON.stringify(request.body.messages).includes(lastTurn)
  const goesOn = (request: ModelServer.Recorded) =>
    paid(request, {
      toolCalls: [{ name: "terminal", arguments: { command: `echo ${turnOf(request)}; seq 1 50` } }]
    })

  it("is never passed: the session is told its last call and completes, or ends as partial", async () => {
    const place = new Workplace()
    place.dataset(["obeys", "goes on"])
    const spent = new Map<string, { cost: number; tokens: number }>()
    const server = await serve((request) => {
      const prompt = promptOf(request)
      const { cost, total_tokens } = usageOf(request)
      const before = spent.get(prompt) ?? { cost: 0, tokens: 0 }
      spent.set(prompt, { cost: before.cost + cost, tokens: before.tokens + total_tokens })
      return prompt === "obeys" && toldToEnd(request) ? paid(request, { content: "done" }) : goesOn(request)
    })
    const check = (run: string, limit: { cost?: number; tokens?: number }) => {
      const rows = place.rows("trajectories.jsonl", run)
      expect(rows).toMatchObject([
        { completed: true, partial: false },
        { completed: false, partial: true }
      ])
      for (const row of rows) {
        const ledger = spent.get(row.conversations[0]?.value ?? "")
        expect(row.metadata.usage.cost_usd).toBeCloseTo(ledger?.cost ?? 0, 9)
        expect(row.metadata.usage.total).toBe(ledger?.tokens)
        expect(ledger?.cost).toBeLessThanOrEqual(limit.cost ?? 1)
        expect(ledger?.tokens).toBeLessThanOrEqual(limit.tokens ?? 1e9)
        expect(row.api_calls).toBeGreaterThan(2)
        expect(row.api_calls).toBeLessThan(20)
      }
      spent.clear()
    }
    await place.complete(server, { max_turns: 50, max_cost_per_prompt: 0.02 })
    check("run", { cost: 0.02 })
    await place.complete(server, { max_turns: 50, max_tokens_per_prompt: 20_000, run_name: "tokens" })
    check("tokens", { tokens: 20_000 })
  })
})
