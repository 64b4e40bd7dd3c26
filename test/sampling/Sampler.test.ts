/** Toolsets are drawn as the distribution says, each by itself, and the same way for the same seed and content. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import * as ContentKey from "../../src/dataset/ContentKey.ts"
import { builtIn, type Distribution } from "../../src/sampling/Distribution.ts"
import * as Sampler from "../../src/sampling/Sampler.ts"

const key = (text: string) => ContentKey.of({ text, image: "", cwd: "" })
const draw = (text: string, occurrence = 0, sample = 0): Sampler.Draw => ({ key: key(text), occurrence, sample })
const distribution = (toolsets: Distribution["toolsets"]): Distribution => ({ name: "own", description: "", toolsets })

describe("Sampling", () => {
  const draws = 20_000
  const some = distribution([
    ["web", 94],
    ["terminal", 60],
    ["file", 50],
    ["vision", 15],
    ["moa", 0.5]
  ])
  const drawn = Array.from({ length: draws }, (_, n) => new Set(Sampler.sample(some, 7, draw(`prompt ${n}`))))
  const share = (fits: (on: Set<string>) => boolean) => (drawn.filter(fits).length / draws) * 100

  it("switches each toolset on as often as its percentage says.", () => {
    for (const [toolset, percent] of some.toolsets) {
      // Four standard deviations of 20,000 draws, and the few that fell back to the likeliest.
      const tolerance = 4 * Math.sqrt((percent * (100 - percent)) / draws) + (toolset === "web" ? 1.1 : 0)
      expect(Math.abs(share((on) => on.has(toolset)) - percent), toolset).toBeLessThan(tolerance)
    }
  })
  it("switches each on independently of the others.", () => {
    const names = some.toolsets.map(([name]) => name).slice(1, 4)
    for (const a of names) {
      for (const b of names.filter((name) => name !== a)) {
        const both = share((on) => on.has(a) && on.has(b))
        const apart = (share((on) => on.has(a)) * share((on) => on.has(b))) / 100
        expect(Math.abs(both - apart), `${a} and ${b}`).toBeLessThan(1.2)
      }
    }
  })
  it("puts the likeliest toolset on where none came up.", () => {
    const rare = distribution([
      ["terminal", 0.2],
      ["web", 0.1]
    ])
    const all = Array.from({ length: 500 }, (_, n) => Sampler.sample(rare, 1, draw(`${n}`)))
    expect(all.filter((on) => on.join() === "terminal").length).toBeGreaterThan(480)
    expect(all.every((on) => on.length > 0)).toBe(true)
  })
  it("is sure of what has 100 percent and never gives what has 0.", () => {
    const sure = distribution([
      ["terminal", 100],
      ["web", 0]
    ])
    for (let n = 0; n < 1000; n++) expect(Sampler.sample(sure, n, draw(`${n}`))).toEqual(["terminal"])
  })
  it("depends on seed, content, occurrence and sample, and on nothing else.", () => {
    fc.assert(
      fc.property(fc.string(), fc.integer(), fc.nat(9), fc.nat(9), (text, seed, occurrence, sample) => {
        const once = Sampler.sample(some, seed, draw(text, occurrence, sample))
        Sampler.sample(some, seed + 1, draw(`${text}!`))
        expect(Sampler.sample(some, seed, draw(text, occurrence, sample))).toEqual(once)
      })
    )
    const even = distribution(Array.from({ length: 40 }, (_, n) => [`t${n}`, 50] as const))
    const variants = [
      Sampler.sample(even, 1, draw("a")),
      Sampler.sample(even, 2, draw("a")),
      Sampler.sample(even, 1, draw("b")),
      Sampler.sample(even, 1, draw("a", 1)),
      Sampler.sample(even, 1, draw("a", 0, 1))
    ]
    expect(new Set(variants.map((on) => on.join())).size).toBe(variants.length)
  })
  it("draws a toolset the same way whatever other toolsets there are.", () => {
    const alone = distribution([["file", 50]])
    const more = distribution([
      ["web", 100],
      ["file", 50]
    ])
    for (let n = 0; n < 200; n++) {
      const on = Sampler.sample(more, 3, draw(`${n}`)).includes("file")
      // Alone it is on anyway, as the likeliest: what it drew shows beside one that is always on.
      expect(on).toBe(Sampler.sample(distribution([["moa", 100], ...alone.toolsets]), 3, draw(`${n}`)).includes("file"))
    }
  })
  it.effect("is a service that draws from one distribution with one seed.", () =>
    Effect.gen(function* () {
      const { sample } = yield* Sampler.Sampler
      expect(sample(draw("a", 2, 1))).toEqual(Sampler.sample(some, 11, draw("a", 2, 1)))
    }).pipe(Effect.provide(Sampler.layer({ distribution: some, seed: 11 })))
  )
})

describe("The distributions that come with the program", () => {
  const all = (percent: number) => ({
    web: percent,
    vision: percent,
    image_gen: percent,
    terminal: percent,
    file: percent,
    moa: percent,
    browser: percent
  })
  const table: Readonly<Record<string, Readonly<Record<string, number>>>> = {
    default: all(100),
    image_gen: { image_gen: 90, vision: 90, web: 55, terminal: 45, moa: 10 },
    research: { web: 90, browser: 70, vision: 50, moa: 40, terminal: 10 },
    science: { web: 94, terminal: 94, file: 94, vision: 65, browser: 50, image_gen: 15, moa: 10 },
    development: { terminal: 80, file: 80, moa: 60, web: 30, vision: 10 },
    safe: { web: 80, browser: 70, vision: 60, image_gen: 60, moa: 50 },
    balanced: all(50),
    minimal: { web: 100 },
    terminal_only: { terminal: 100, file: 100 },
    terminal_web: { terminal: 100, file: 100, web: 100 },
    creative: { image_gen: 90, vision: 90, web: 30 },
    reasoning: { moa: 90, web: 30, terminal: 20 },
    browser_use: { browser: 100, web: 80, vision: 70 },
    browser_only: { browser: 100 },
    browser_tasks: { browser: 97, vision: 12, terminal: 15 },
    terminal_tasks: { terminal: 97, file: 97, web: 97, browser: 75, vision: 50, image_gen: 10 },
    mixed_tasks: { browser: 92, terminal: 92, file: 92, web: 35, vision: 15, image_gen: 15 }
  }
  it("are those of the contract, with its percentages.", () => {
    expect(builtIn.map(({ name }) => name)).toEqual(Object.keys(table))
    for (const { name, toolsets } of builtIn) expect(Object.fromEntries(toolsets), name).toEqual(table[name])
  })
  it("list their toolsets from the likeliest to the rarest, and say what they are for.", () => {
    for (const { name, toolsets, description } of builtIn) {
      const percentages = toolsets.map(([, percent]) => percent)
      expect(percentages, name).toEqual(percentages.toSorted((a, b) => b - a))
      expect(description).not.toBe("")
    }
  })
})
