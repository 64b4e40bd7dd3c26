/** What is done is found by content, counted, whatever became of the data set; what is left makes new batches. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { ContentIndex } from "../../src/dataset/ContentIndex.ts"
import * as ContentKey from "../../src/dataset/ContentKey.ts"
import { Failures } from "../../src/store/Failures.ts"
import { type Fate, Ledger, unmatched } from "../../src/store/Ledger.ts"
import * as Merge from "../../src/store/Merge.ts"
import * as Resume from "../../src/store/Resume.ts"
import { runsAgain } from "../../src/trajectory/Outcome.ts"

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

/** What remains of a run in which nothing failed. */
const remaining = (done: Resume.Done, batchSize: number, firstBatch: number) =>
  Resume.remaining(done, Resume.failed(new Failures(), new ContentIndex(), done), null, batchSize, firstBatch)

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
        const todo = [...remaining(found, 3, 0)]
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
    expect([...remaining(done, 10, 0)].map(({ place }) => place)).toEqual([0, 1, 2])
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
    expect([...remaining(done, 1, 7)]).toEqual([
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
          const units = [...remaining(done, size, first)]
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
    const units = remaining(new Resume.Done(1_000_000, 1), 10, 0)
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

interface Lost {
  readonly text: string
  readonly occurrence: number
  readonly sample: number
  readonly kind: string
}

const failuresOf = (all: ReadonlyArray<Lost>): Failures => {
  const failures = new Failures()
  for (const { text, ...lost } of all) failures.add({ key: key(text), ...lost })
  return failures
}

const sayings = [
  "overloaded",
  "content_refused",
  "context_too_long",
  "session_timed_out",
  "of_a_later_version"
] as const
const choice = fc.option(
  fc.oneof(fc.subarray([...sayings], { minLength: 1 }), fc.constant<ReadonlyArray<string>>(["all"])),
  { nil: null }
)

/** A data set of the next session of work, and what became of sessions so far, in order of time: a kind, or `done`. */
const past = fc.record({
  next: fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 15 }),
  samples: fc.integer({ min: 1, max: 3 }),
  events: fc.array(
    fc.record({
      text: fc.constantFrom("a", "b", "c", "d", "gone"),
      occurrence: fc.nat(4),
      sample: fc.nat(3),
      kind: fc.constantFrom(...sayings, "done")
    }),
    { maxLength: 60 }
  ),
  chosen: choice,
  size: fc.integer({ min: 1, max: 4 })
})

/** What a session of work finds. */
const begun = ({
  next,
  samples,
  events
}: {
  readonly next: ReadonlyArray<string>
  readonly samples: number
  readonly events: ReadonlyArray<Lost>
}) => {
  const index = indexOf(next)
  const rows = events.flatMap(({ kind, ...whose }) => (kind === "done" ? [{ ...whose, fate: "kept" as const }] : []))
  const done = Resume.match(ledgerOf(rows), index, samples)
  const failures = failuresOf(events.filter(({ kind }) => kind !== "done"))
  return { index, done, failures, failed: Resume.failed(failures, index, done) }
}

describe("Failed sessions", () => {
  it("run again by their last kind, each once, numbered by their attempts; those that never failed all run, none that is done.", () => {
    fc.assert(
      fc.property(past, ({ next, samples, events, chosen, size }) => {
        const { index, done, failed } = begun({ next, samples, events })
        const expected: Array<Omit<Resume.Unit, "batch">> = []
        const left = new Map<string, number>()
        for (const [place, text] of next.entries()) {
          for (let sample = 0; sample < samples; sample++) {
            if (done.has(place, sample)) continue
            const kinds = events.flatMap((event) =>
              event.kind !== "done" &&
              event.text === text &&
              event.occurrence === index.occurrence(place) &&
              event.sample === sample
                ? [event.kind]
                : []
            )
            const last = kinds.at(-1)
            if (last === undefined || runsAgain(last, chosen)) {
              expected.push({ place, sample, attempt: kinds.length + 1 })
            } else {
              left.set(last, (left.get(last) ?? 0) + 1)
            }
          }
        }
        const units = [...Resume.remaining(done, failed, chosen, size, 7)]
        expect(units.map(({ batch: _, ...unit }) => unit)).toEqual(expected)
        expect(new Map(failed.leftOut(chosen))).toEqual(left)
        const out = [...left.values()].reduce((sum, count) => sum + count, 0)
        expect(done.count + units.length + out).toBe(next.length * samples)
        const running = [...new Set(units.map(({ place }) => place))]
        for (const { place, batch } of units) expect(batch).toBe(7 + Math.floor(running.indexOf(place) / size))
      }),
      { numRuns: 500 }
    )
  })
  it("are those that stood so when the work began: what fails or is done meanwhile changes nothing of what is still to come.", () => {
    fc.assert(
      fc.property(past, fc.infiniteStream(fc.constantFrom(...sayings, "done")), (given, fates) => {
        const { next, chosen, size } = given
        const { index, done, failures, failed } = begun(given)
        const expected = [...Resume.remaining(done, failed, chosen, size, 0)]
        const before = { count: failed.count, left: [...failed.leftOut(chosen)] }
        const drawn: Array<Resume.Unit> = []
        for (const unit of Resume.remaining(done, failed, chosen, size, 0)) {
          drawn.push(unit)
          const kind = fates.next().value ?? "done"
          // This one ends, and so does everything else of its content, before the next is drawn.
          for (let place = unit.place; place < next.length; place++) {
            failures.add({ key: index.key(place), occurrence: index.occurrence(place), sample: unit.sample, kind })
          }
          if (kind === "done") done.mark(unit.place, unit.sample)
        }
        expect(drawn).toEqual(expected)
        expect({ count: failed.count, left: [...failed.leftOut(chosen)] }).toEqual(before)
      }),
      { numRuns: 300 }
    )
  })
  it("are run through sessions of work until none fails: each is done once, and its attempts are counted without a gap.", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 2 }),
        fc.array(fc.array(fc.boolean(), { minLength: 24, maxLength: 24 }), { maxLength: 4 }),
        (prompts, samples, sessions) => {
          const index = indexOf(Array.from({ length: prompts }, (_, n) => `prompt ${n % 5}`))
          const [ledger, failures] = [new Ledger(), new Failures()]
          const attempts = new Map<string, number>()
          for (const fails of [...sessions, []]) {
            const done = Resume.match(ledger, index, samples)
            const failed = Resume.failed(failures, index, done)
            for (const { place, sample, attempt } of Resume.remaining(done, failed, null, 2, 0)) {
              const name = `${place}|${sample}`
              expect(attempt).toBe((attempts.get(name) ?? 0) + 1)
              attempts.set(name, attempt)
              const whose = { key: index.key(place), occurrence: index.occurrence(place), sample }
              if (fails[place * samples + sample] === true) failures.add({ ...whose, kind: "overloaded" })
              else ledger.add({ ...whose, fate: "kept", batch: 0, offset: 0, length: 0, place, foreign: false })
            }
          }
          expect(Resume.match(ledger, index, samples).count).toBe(prompts * samples)
          expect(ledger.size).toBe(prompts * samples)
        }
      )
    )
  })
  it("count once each, as long as they are in the data set and not done.", () => {
    const index = indexOf(["a", "b", "a", "c"])
    const done = new Resume.Done(4, 2)
    done.mark(1, 0)
    const lost = (text: string, occurrence: number, sample: number) => ({ text, occurrence, sample, kind: "lost" })
    const all = [lost("a", 0, 0), lost("a", 0, 0), lost("a", 1, 0), lost("b", 0, 0), lost("b", 0, 1)]
    const others = [lost("gone", 0, 0), lost("c", 1, 0), lost("c", 0, 2)]
    expect(Resume.failed(failuresOf([...all, ...others]), index, done).count).toBe(3)
  })
  it("keep their kinds as they are, however many kinds there are.", () => {
    const failures = failuresOf(
      Array.from({ length: 3000 }, (_, n) => ({ text: "a", occurrence: n, sample: 1, kind: `kind_${n % 700}` }))
    )
    expect(failures.size).toBe(3000)
    expect(failures.get(2999)).toEqual({ key: key("a"), occurrence: 2999, sample: 1, kind: "kind_199" })
    expect(failures.get(699).kind).toBe("kind_699")
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
