/** What a call used and cost, read from the fields of many endpoints, and from a list of prices where they name no cost. */
import { Either, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { addUsage, noUsage } from "../../src/model/Model.ts"
import * as Wire from "../../src/model/openai/Wire.ts"
import * as Prices from "../../src/model/Prices.ts"
import { ask } from "./asks.ts"

const price = { prompt: 3, completion: 15, cached: 0.3 }

describe("Tokens", () => {
  it.each([
    [{ prompt_tokens_details: { cached_tokens: 7 } }],
    [{ cache_read_input_tokens: 7 }],
    [{ prompt_cache_hit_tokens: 7, prompt_cache_miss_tokens: 3 }],
    [{ prompt_tokens_details: { cached_tokens: 0 }, cache_read_input_tokens: 7 }]
  ])("that were kept are read from %j.", (fields) => {
    expect(Prices.read({ prompt_tokens: 10, ...fields }, undefined).usage.cached).toBe(7)
  })
  it.each([[{ completion_tokens_details: { reasoning_tokens: 4 } }], [{ reasoning_tokens: 4 }]])(
    "of reasoning are read from %j.",
    (fields) => {
      expect(Prices.read({ completion_tokens: 10, ...fields }, undefined).usage.reasoning).toBe(4)
    }
  )
})

describe("A cost", () => {
  const cost = (usage: object, of: typeof price | undefined = price) => {
    const { usage: read, priced } = Prices.read(usage, of)
    return [read.cost_usd, priced]
  }
  it("is what the endpoint says, also nothing.", () => {
    expect(cost({ prompt_tokens: 10, cost: 0.25 })).toEqual([0.25, true])
    expect(cost({ prompt_tokens: 10, cost: 0 })).toEqual([0, true])
    expect(Prices.read({ prompt_tokens: 10, cost: 0 }, undefined).priced).toBe(true)
  })
  it("is with the provider's own where the user's key is used there, and only there.", () => {
    const details = { cost: 0.01, cost_details: { upstream_inference_cost: 0.2 } }
    expect(cost({ ...details, is_byok: true })).toEqual([0.21, true])
    expect(cost({ ...details, is_byok: false })).toEqual([0.01, true])
    expect(cost({ cost: 0, is_byok: true, cost_details: { upstream_inference_cost: null } })).toEqual([0, true])
  })
  it("comes from the price where the endpoint names none.", () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 100, prompt_tokens_details: { cached_tokens: 400 } }
    expect(cost(usage)).toEqual([(600 * 3 + 400 * 0.3 + 100 * 15) / 1e6, true])
    expect(Prices.read(usage, { prompt: 3, completion: 15 }).usage.cost_usd).toBe((1000 * 3 + 100 * 15) / 1e6)
    expect(cost({ ...usage, cost: "0.5" })).toEqual([(600 * 3 + 400 * 0.3 + 100 * 15) / 1e6, true])
    expect(cost({ prompt_tokens: 10, cache_read_input_tokens: 99 })).toEqual([0.000003, true])
  })
  it("is unknown without a figure and a price, or without tokens that a price could count.", () => {
    expect(Prices.read({ prompt_tokens: 10 }, undefined)).toMatchObject({ usage: { cost_usd: 0 }, priced: false })
    for (const odd of ["0.5", null, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(Prices.read({ cost: odd }, undefined)).toEqual({ usage: noUsage, priced: false })
    }
    for (const usage of [undefined, null, {}, "none"]) expect(Prices.read(usage, price).priced).toBe(false)
  })
  it("sums to the cent over many thousands of calls.", () => {
    const calls = 200_000
    let sum = noUsage
    let micro = 0
    for (let call = 0; call < calls; call++) {
      const usage = {
        prompt_tokens: 1000 + (call % 777),
        completion_tokens: call % 91,
        cache_read_input_tokens: call % 500
      }
      sum = addUsage(sum, Prices.read(usage, price).usage)
      micro += (1000 + (call % 777) - (call % 500)) * 30 + (call % 500) * 3 + (call % 91) * 150
    }
    expect(Math.abs(sum.cost_usd - micro / 1e7)).toBeLessThan(1e-6)
  })
  it("is a number that can be summed, whatever a body holds.", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), fc.anything(), (cost, tokens, details) => {
        const { usage } = Prices.read(
          { cost, prompt_tokens: tokens, completion_tokens_details: details, cost_details: details, is_byok: true },
          price
        )
        expect(Object.values(usage).every((each) => Number.isFinite(each) && each >= 0)).toBe(true)
      })
    )
  })
})

describe("The price of a model", () => {
  const other = { prompt: 1, completion: 1 }
  it("is that of its very name, else that of all others.", () => {
    expect(Prices.priceOf({ model: "a/b", prices: { "a/b": price, "*": other } })).toBe(price)
    expect(Prices.priceOf({ model: "a/c", prices: { "a/b": price, "*": other } })).toBe(other)
    expect(Prices.priceOf({ model: "a/c", prices: { "a/b": price } })).toBeUndefined()
    expect(Prices.priceOf({ model: "constructor", prices: {} })).toBeUndefined()
  })
})

describe("A body", () => {
  const usage = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 }
  it("that is an answer says what it cost, and whether anything tells.", () => {
    const answer = (price?: Parameters<typeof Wire.decode>[2]) =>
      Either.getOrThrow(Wire.decode(ask(), { choices: [{ message: { content: "Hi" } }], usage }, price))
    expect(answer()).toMatchObject({ priced: false, usage: { cost_usd: 0 } })
    expect(answer(price)).toMatchObject({ priced: true, usage: { cost_usd: 0.0045 } })
  })
  it.each([
    ["no choices", {}],
    ["an error", { error: { message: "no" } }],
    ["a choice without a message", { choices: [{}] }],
    ["an answer that broke off", { choices: [{ message: { content: "x" }, finish_reason: "error" }] }]
  ])("with %s counts what it used.", (_, body) => {
    const problem = Either.getOrThrow(Either.flip(Wire.decode(ask(), { ...body, usage }, price)))
    expect(problem.usage).toMatchObject({ total: 1100, cost_usd: 0.0045 })
  })
})
