/** What is done is found by content, counted, whatever became of the data set; what is left makes new batches. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { ContentIndex } from "../../src/dataset/ContentIndex.ts"
import * as ContentKey from "../../src/dataset/ContentKey.ts"
import { type Fate, Ledger, unmatched } from "../../src/store/Ledger.ts"
import * as Merge from "../../src/store/Merge.ts"
import * as Resume from "../../src/store/Resume.ts"

const key = (text: string) => ContentKey.of({ text, image: "", cwd: "" })

const indexOf = (texts: ReadonlyArray<string>): ContentIndex => {
  const index = new ContentIndex()
  for (const [place, text] of texts.entries()) index.add(key(text), place, 1)
  return index
}

interface Finished {
  readonly text: string
  readonly occurrence: number
  readonly sample: number
  readonly fate: Fate
}

const ledgerOf = (rows: ReadonlyArray<Finished>): Ledger => {
  const ledger = new Ledger()
  for (const { text, ...row } of rows) {
    ledger.add({ key: key(text), ...row, batch: 0, offset: 0, length: 0, place: unmatched, foreign: false })
  }
  return ledger
}

const kept = (text: string, occurrence = 0, sample = 0): Finished => ({ text, occurrence, sample, fate: "kept" })

const places = (ledger: Ledger) => Array.from({ length: ledger.size }, (_, at) => ledger.place(at))

const tally = <A>(items: ReadonlyArray<A>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(String(item), (counts.get(String(item)) ?? 0) + 1)
  return counts
}

/** A data set, samples a prompt, some sessions of it done in any order, and the data set of the next session. */
const history = fc
  .record({
    texts: fc.array(fc.constantFrom("a", "b", "c", "d", "e"), { minLength: 1, maxLength: 25 }),
    added: fc.array(fc.constantFrom("a", "b", "x"), { maxLength: 5 }),
    removed: fc.nat(5),
    samples: fc.integer({ min: 1, max: 3 }),
    now: fc.integer({ min: 1, max: 3 })
  })
  .chain(({ texts, added, removed, samples, now }) => {
    const seen = new Map<string, number>()
    const units = texts.flatMap((text) => {
      const occurrence = seen.get(text) ?? 0
      seen.set(text, occurrence + 1)
      return Array.from({ length: samples }, (_, sample) => ({ text, occurrence, sample }))
    })
    const next = [...texts.slice(removed), ...added]
    return fc.record({
      texts: fc.constant(texts),
      samples: fc.constant(samples),
      now: fc.constant(now),
      done: fc
        .shuffledSubarray(units)
        .chain((some) =>
          fc.tuple(...some.map((unit) => fc.record({ ...constants(unit), fate: fc.constantFrom(...fates) })))
        ),
      next: fc.shuffledSubarray(next, { minLength: next.length, maxLength: next.length })
    })
  })

const fates: ReadonlyArray<Fate> = ["kept", "no_reasoning", "invalid_tools"]
const constants = ({ text, occurrence, sample }: Omit<Finished, "fate">) => ({
  text: fc.constant(text),
  occurrence: fc.constant(occurrence),
  sample: fc.constant(sample)
})

describe("Matching finished rows with a data set", () => {
  it("counts by content and sample: what is done and what is to do make the whole, and no more is done than was.", () => {
    fc.assert(
      fc.property(history, ({ done, next, now }) => {
        const index = indexOf(next)
        const ledger = ledgerOf(done)
        const found = Resume.match(ledger, index, now)
        const todo = [...Resume.remaining(found, 3, 0)]
        expect(found.count + todo.length).toBe(next.length * now)
        const inData = tally(next)
        for (let sample = 0; sample < now; sample++) {
          const finished = tally(done.filter((row) => row.sample === sample).map(({ text }) => text))
          const left = tally(todo.filter((unit) => unit.sample === sample).map(({ place }) => next[place]))
          for (const [text, count] of inData) {
            expect(left.get(text) ?? 0).toBe(count - Math.min(count, finished.get(text) ?? 0))
          }
        }
      }),
      { numRuns: 400 }
    )
  })
  it("gives each row a place of its own with its content, and -1 only to those that are too many.", () => {
    fc.assert(
      fc.property(history, ({ done, next, now }) => {
        const ledger = ledgerOf(done)
        Resume.match(ledger, indexOf(next), now)
        const taken = places(ledger)
        const matched = done.flatMap((row, at) => ((taken[at] ?? -1) < 0 ? [] : [`${taken[at]}|${row.sample}`]))
        expect(new Set(matched).size).toBe(matched.length)
        for (const [at, row] of done.entries()) {
          if ((taken[at] ?? -1) >= 0) expect(next[taken[at] ?? -1]).toBe(row.text)
        }
        for (const name of new Set(done.map(({ text, sample }) => `${text}|${sample}`))) {
          const rows = done.flatMap((row, at) => (`${row.text}|${row.sample}` === name ? [taken[at] ?? -1] : []))
          const wanted = next.filter((text) => name.startsWith(`${text}|`)).length
          expect(rows.filter((place) => place < 0).length).toBe(Math.max(0, rows.length - wanted))
        }
      }),
      { numRuns: 400 }
    )
  })
  it("is the same each time.", () => {
    fc.assert(
      fc.property(history, ({ done, next, now }) => {
        const [one, two] = [ledgerOf(done), ledgerOf(done)]
        const ranges = Resume.match(one, indexOf(next), now).ranges()
        expect(Resume.match(two, indexOf(next), now).ranges()).toEqual(ranges)
        expect(Resume.match(two, indexOf(next), now).ranges()).toEqual(ranges)
        expect(places(two)).toEqual(places(one))
      })
    )
  })
  it("of an unchanged data set gives every row the place that it was made for.", () => {
    fc.assert(
      fc.property(history, ({ texts, samples, done }) => {
        const index = indexOf(texts)
        const ledger = ledgerOf(done)
        Resume.match(ledger, index, samples)
        expect(places(ledger)).toEqual(done.map(({ text, occurrence }) => index.find(key(text), occurrence)))
      })
    )
  })
  it("leaves two to do of three equal prompts of which one is done.", () => {
    const done = Resume.match(ledgerOf([kept("a", 2)]), indexOf(["a", "b", "a", "a"]), 1)
    expect([...Resume.remaining(done, 10, 0)].map(({ place }) => place)).toEqual([0, 1, 2])
  })
  it("gives a row whose own occurrence is gone the first free one.", () => {
    const ledger = ledgerOf([kept("a", 2), kept("a", 5), kept("a", 0), kept("a", -1)])
    Resume.match(ledger, indexOf(["a", "b", "a", "a"]), 1)
    expect(places(ledger)).toEqual([3, 2, 0, -1])
  })
  it("knows the prompt of a sample that is no longer asked for, and does not count it.", () => {
    const ledger = ledgerOf([kept("a", 0, 4), kept("a", 0, 0)])
    const done = Resume.match(ledger, indexOf(["b", "a"]), 2)
    expect([places(ledger), done.count]).toEqual([[1, 1], 1])
    expect([...Resume.remaining(done, 1, 7)]).toEqual([
      { place: 0, sample: 0, batch: 7, attempt: 1 },
      { place: 0, sample: 1, batch: 7, attempt: 1 },
      { place: 1, sample: 1, batch: 8, attempt: 1 }
    ])
  })
})

describe("What remains", () => {
  it("comes in the order of the data set, in batches of so many prompts, numbered from the first free number.", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 7 }),
        fc.nat(20),
        fc.array(fc.tuple(fc.nat(59), fc.nat(2))),
        (prompts, samples, size, first, marks) => {
          const done = new Resume.Done(prompts, samples)
          for (const [place, sample] of marks.filter(([place]) => place < prompts)) done.mark(place, sample)
          const units = [...Resume.remaining(done, size, first)]
          const order = units.map(({ place, sample }) => place * samples + sample)
          expect(order).toEqual(order.toSorted((a, b) => a - b))
          const placesLeft = [...new Set(units.map(({ place }) => place))]
          for (const { place, batch } of units) expect(batch).toBe(first + Math.floor(placesLeft.indexOf(place) / size))
          expect(units.some(({ place, sample }) => done.has(place, sample))).toBe(false)
        }
      )
    )
  })
  it("is drawn one by one, so that a million prompts cost nothing in advance.", () => {
    const units = Resume.remaining(new Resume.Done(1_000_000, 1), 10, 0)
    expect(units.next().value).toEqual({ place: 0, sample: 0, batch: 0, attempt: 1 })
  })
})

describe("The set of finished sessions", () => {
  it("is a set of pairs, counted, with its whole prompts as ranges.", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.tuple(fc.nat(39), fc.nat(5))),
        (prompts, samples, marks) => {
          const done = new Resume.Done(prompts, samples)
          const expected = new Set<string>()
          for (const [place, sample] of marks.filter(([place]) => place < prompts)) {
            done.mark(place, sample)
            if (sample < samples) expected.add(`${place}|${sample}`)
          }
          expect(done.count).toBe(expected.size)
          const whole: Array<number> = []
          for (let place = 0; place < prompts; place++) {
            const marked = Array.from({ length: samples }, (_, sample) => expected.has(`${place}|${sample}`))
            expect(marked.map((_, sample) => done.has(place, sample))).toEqual(marked)
            expect(done.hasAll(place)).toBe(marked.every((one) => one))
            if (done.hasAll(place)) whole.push(place)
          }
          const ranges = done.ranges()
          expect(ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at))).toEqual(
            whole
          )
          for (const [at, [from]] of ranges.entries()) {
            if (at > 0) expect(from).toBeGreaterThan((ranges[at - 1]?.[1] ?? 0) + 1)
          }
        }
      )
    )
  })
  it("of a million finished prompts is one range.", () => {
    const done = new Resume.Done(1_000_000, 1)
    for (let place = 0; place < 1_000_000; place++) done.mark(place, 0)
    expect(done.ranges()).toEqual([[0, 999_999]])
  })
})

describe("The order of the merged data set", () => {
  it("is by place, then by sample, each good row once, rows without a prompt last.", () => {
    fc.assert(
      fc.property(history, ({ done, next, now }) => {
        const ledger = ledgerOf(done)
        Resume.match(ledger, indexOf(next), now)
        const order = [...Merge.order(ledger)]
        expect(order.toSorted((a, b) => a - b)).toEqual(done.flatMap(({ fate }, at) => (fate === "kept" ? [at] : [])))
        const ranks = order.map((at) => {
          const place = ledger.place(at)
          return (place < 0 ? 1_000_000 : place) * 10 + ledger.sample(at)
        })
        expect(ranks).toEqual(ranks.toSorted((a, b) => a - b))
      }),
      { numRuns: 400 }
    )
  })
})

describe("Failed sessions", () => {
  const failures = (...names: ReadonlyArray<readonly [string, number, number]>) =>
    ledgerOf(names.map(([text, occurrence, sample]) => ({ text, occurrence, sample, fate: "no_reasoning" })))
  it("count once each, as long as they are in the data set and not done.", () => {
    const index = indexOf(["a", "b", "a", "c"])
    const done = new Resume.Done(4, 2)
    done.mark(1, 0)
    const all = failures(["a", 0, 0], ["a", 0, 0], ["a", 1, 0], ["b", 0, 0], ["b", 0, 1], ["gone", 0, 0], ["c", 1, 0])
    expect(Resume.stillFailed(all, index, done)).toBe(3)
  })
})

describe("The set of done sessions", () => {
  it("holds any number of them, however many samples a prompt has, in memory for those that are there.", () => {
    const done = new Resume.Done(100_000, 100_000)
    for (const place of [0, 42_949, 85_900, 99_999]) done.mark(place, 99_999)
    expect(done.count).toBe(4)
    expect([done.has(42_949, 99_999), done.has(42_950, 0), done.has(0, 0), done.has(85_900, 99_999)]).toEqual([
      true,
      false,
      false,
      true
    ])
  })
})
