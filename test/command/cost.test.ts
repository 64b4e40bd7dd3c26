/** What a run costs, as it tells it, and what one prompt may cost. */
import { describe, expect, it } from "vitest"
import { defaults } from "../support/FireConduct.ts"
import { nanoOf } from "../support/FireRecord.ts"
import { cheap, expectAgreed, expectSaved, named, prepare } from "../support/FireRun.ts"
import { serve } from "../support/FireServer.ts"
import * as ModelServer from "../support/ModelServer.ts"
import * as Talk from "../support/Talk.ts"

const { nano } = defaults
const workers = { ...cheap, num_workers: 4 }

describe("What one prompt may use", () => {
  for (const [what, option] of [
    ["--max_cost_per_prompt", { max_cost_per_prompt: 0.04 }],
    ["--max_tokens_per_prompt", { max_tokens_per_prompt: 500 }]
  ] as const) {
    it(`ends its session as partial, its row kept: ${what}`, async () => {
      const prompts = ["long", "short", ...named(4)]
      const place = prepare(prompts)
      const server = await serve({ latency: 20, nano, turns: (prompt) => (prompt === "long" ? 8 : 3) })
      await place.complete(server, { ...workers, ...option })
      expectSaved(place, prompts)
      expect(place.rows().map((row) => [row.api_calls, row.completed, row.partial])).toEqual([
        [3, false, true],
        ...prompts.slice(1).map(() => [3, true, false])
      ])
      expect(server.ledger.of("long")).toBe(3 * nano)
      expectAgreed(place, server.ledger)
    })
  }
})

describe("The cost of a run", () => {
  it("is that of its rows, live in the progress line, in statistics and in the summary", {
    timeout: 60_000
  }, async () => {
    const prompts = named(60)
    const place = prepare(prompts)
    const server = await serve({ latency: 200, nano, turns: 5 })
    const run = await place.complete(server, workers)
    expect(place.rows().map((row) => nanoOf(row.metadata.usage.cost_usd))).toEqual(prompts.map(() => 5 * nano))
    expectAgreed(place, server.ledger)
    expect(run.stdout).toContain(`$${(server.ledger.nano / 1e9).toFixed(4)}`)
    expect(run.stderr).toMatch(/^done \d.* {2}\d\S* tokens {2}\$/m)
    const told = run.stderr.split("\n").flatMap((line) => /^done \d.*\$(\d+\.\d+)/.exec(line)?.[1] ?? [])
    expect(told.length).toBeGreaterThan(0)
    expect(told.every((each) => Number(each) > 0 && Number(each) <= server.ledger.nano / 1e9)).toBe(true)
  })

  it("is told with its prompt, completion, reasoning and cached tokens, in each row and of all together", async () => {
    const prompts = ["one", "two"]
    const place = prepare(prompts)
    const usage = {
      ...{ prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, cost: 0.25 },
      prompt_tokens_details: { cached_tokens: 64 },
      completion_tokens_details: { reasoning_tokens: 7 }
    }
    const server = await Talk.serve((request) =>
      ModelServer.answer({
        ...{ reasoning: "hm", usage },
        ...(Talk.turnOf(request) === 0
          ? { toolCalls: [{ name: "todo", arguments: { todos: [{ id: "1", content: "a" }] } }] }
          : { content: "done" })
      })
    )
    const run = await place.complete(server, workers)
    const tokens = { prompt: 200, completion: 40, reasoning: 14, cached: 128, total: 240 }
    for (const row of place.rows()) expect(row.metadata.usage).toEqual({ ...tokens, cost_usd: 0.5 })
    expect(place.json("statistics.json")).toMatchObject({
      tokens: { prompt: 400, completion: 80, reasoning: 28, cached: 256, total: 480 },
      cost_usd: 1
    })
    expect(run.stdout).toMatch(/480 \(400 prompt, of which 256 cached; 80 completion, of which 28 reasoning\)/)
  })
})
