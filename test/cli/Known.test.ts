/** Every variable that a tool reads is one that the command knows: it is told by the help, and taken by `setup`. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { expect, test } from "vitest"
import * as Known from "../../src/cli/setup/Known.ts"
import * as Api from "../../src/tools/net/Api.ts"
import * as Variables from "../../src/tools/Variables.ts"
import { services } from "../../src/tools/web/Search.ts"

const tools = fileURLToPath(new URL("../../src/tools", import.meta.url))

const texts = readdirSync(tools, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(join(tools, name), "utf8"))

/** Names in quotes that look like variables of a service or a program. */
const quoted = new Set(
  texts.flatMap((text) =>
    [...text.matchAll(/"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|URL|DOMAIN|ID|PATH|FILE|HOST|SECRET))"/g)].map(
      ([, name = ""]) => name
    )
  )
)

/** What a program that a tool starts is given or not given. */
const ofPrograms = ["FONTCONFIG_FILE", "FONTCONFIG_PATH", "LD_LIBRARY_PATH"]

const names = Known.variables.map(({ name }) => name)

test("What tools read is known", () => {
  expect(quoted.size).toBeGreaterThan(25)
  expect([...quoted].filter((name) => Known.find(name) === undefined).toSorted()).toEqual(ofPrograms)
  expect(new Set(names).size).toBe(names.length)
})

test("Variables are read by their names alone, not by names that are put together", () => {
  const computed = texts.flatMap((text) => [...text.matchAll(/\b(?:plain|secret)\(`.*/g)].map(([line]) => line))
  expect(computed).toEqual([])
})

test("What is known of a service is read by a tool, but for the keys of endpoints", () => {
  const ofEndpoints = /^(?:OPENROUTER|BATCH_RUNNER|OPENAI)_API_KEY$|^NOUS_API_/
  expect(names.filter((name) => !quoted.has(name) && !ofEndpoints.test(name))).toEqual([])
})

test("The search backends that the command tells are those that there are, each open with any of its variables", () => {
  const api = Effect.runSync(Effect.scoped(Api.make()))
  expect(Known.searchBackends.map(({ name }) => name)).toEqual(services.map(({ name }) => name))
  for (const [at, { name, needs }] of Known.searchBackends.entries()) {
    expect(needs).toEqual(expect.arrayContaining([...(services[at]?.needs ?? [])]))
    for (const need of needs) {
      expect(services[at]?.open(Variables.from({ [need]: "http://h" }), api)?.name).toBe(name)
    }
  }
})
