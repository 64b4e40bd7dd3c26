/** Options that bound a run and what it costs: their defaults, their values, and what is said of bad ones. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Folder from "../support/Folder.ts"
import { complaint, config } from "./typed.ts"

describe("Options that bound a run", () => {
  it("leave money and tokens alone where nothing is said, and heed the endpoint.", () => {
    expect(config()).toMatchObject({
      ...{ concurrency: "adaptive", max_wait: 3600, max_consecutive_failures: 20, timeout: 3600 },
      ...{ max_cost: null, max_total_tokens: null, max_cost_per_prompt: null, max_tokens_per_prompt: null },
      ...{ prices: {}, prompt_cache: true, cache: false, dry_run: false, events: "" }
    })
  })
  it("arrive in the configuration.", () => {
    expect(
      config({
        ...{ concurrency: "Fixed", max_wait: "60", max_consecutive_failures: "3", max_cost: "5", events: "e.jsonl" },
        ...{ max_total_tokens: "1000000", max_cost_per_prompt: ".25", max_tokens_per_prompt: "20000" },
        ...{ no_prompt_cache: true, cache: true, dry_run: true }
      })
    ).toMatchObject({
      ...{ concurrency: "fixed", max_wait: 60, max_consecutive_failures: 3, max_cost: 5, events: "e.jsonl" },
      ...{ max_total_tokens: 1_000_000, max_cost_per_prompt: 0.25, max_tokens_per_prompt: 20_000 },
      ...{ prompt_cache: false, cache: true, dry_run: true }
    })
  })
  const counts = ["max_wait", "max_consecutive_failures", "max_total_tokens", "max_tokens_per_prompt"]
  const cases: ReadonlyArray<readonly [name: string, given: string, allowed: string]> = [
    ...counts.flatMap((name) =>
      ["0", "-1", "1.5", "1e3", "ten"].map((given) => [name, given, "a whole number of at least 1"] as const)
    ),
    ...["max_cost", "max_cost_per_prompt"].flatMap((name) =>
      ["0", "-1", "0.00", "$5", "1,5", "1e3", "NaN", "Infinity", "5.", "lots"].map(
        (given) => [name, given, "dollars above 0, such as 5 or 0.25"] as const
      )
    ),
    ["concurrency", "auto", "adaptive, fixed"],
    ["events", "", "the path of a file; or leave it out"]
  ]
  it.each(cases)("are told in one line where they are bad: --%s=%s.", (name, given, allowed) => {
    expect(complaint({ [name]: given })).toBe(`--${name}: given ${JSON.stringify(given)}, allowed: ${allowed}`)
  })
})

describe("The file of prices", () => {
  const file = (content: string) =>
    Effect.map(Folder.scoped, (folder) => {
      const path = join(folder, "prices.json")
      writeFileSync(path, content)
      return path
    })
  it.scoped("has dollars per million tokens by model.", () =>
    Effect.gen(function* () {
      const prices = { "a/b": { prompt: 3, completion: 15, cached: 0.3 }, "*": { prompt: 1, completion: 2 } }
      expect(config({ model: "a/b", prices: yield* file(JSON.stringify(prices)), api_key: "k" }).prices).toEqual(prices)
    })
  )
  it.scoped("is told in one line where it does not fit, or has no price for the model.", () =>
    Effect.gen(function* () {
      for (const [content, says] of [
        ["{", /is not JSON, allowed: a JSON object such as /],
        ["[]", /does not fit.*, allowed: /],
        ['{"*": {"prompt": 3}}', /does not fit \(\*\.completion: is missing\)/],
        ['{"*": {"prompt": -3, "completion": 1}}', /does not fit \(\*\.prompt: /],
        ['{"*": {"prompt": 3, "completion": 1, "cache": 1}}', /does not fit \(\*\.cache: /],
        ['{"x/y": {"prompt": 3, "completion": 1}}', /has no price for a\/b, only for x\/y; name the model, or "\*"/]
      ] as const) {
        const message = complaint({ model: "a/b", prices: yield* file(content), api_key: "k" })
        expect(message).toMatch(/^--prices: [^\n]+$/)
        expect(message).toMatch(says)
      }
      const own = yield* file('{"a/b": {"prompt": 3, "completion": 1}}')
      for (const [name, value] of [
        ["vision_model", "c/d"],
        ["moa_models", "a/b,c/d"],
        ["moa_aggregator", "c/d"]
      ] as const) {
        const asked = { model: "a/b", prices: own, api_key: "k", [name]: value }
        expect(complaint(asked)).toMatch(/^--prices: .* has no price for c\/d, only for a\/b;/)
      }
      expect(complaint({ prices: "/no/such.json" })).toMatch(
        /^--prices: given "\/no\/such\.json", allowed: an existing/
      )
    })
  )
})

it("The models of a mixture are at most eight.", () => {
  const models = (count: number) => Array.from({ length: count }, (_, n) => `m${n}`)
  expect(config({ moa_models: models(8).join(", ") }).moa_models).toEqual(models(8))
  expect(complaint({ moa_models: models(9).join(",") })).toMatch(
    /^--moa_models: given .*, allowed: at most 8 model ids/
  )
})
