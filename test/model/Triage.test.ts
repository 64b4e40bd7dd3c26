/** A prompt that is forbidden fails alone, a key that is forbidden everything stops the run, and nobody waits for ever. */
import { Deferred, Effect, Fiber, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import type { Answer, ModelError, ModelService } from "../../src/model/Model.ts"
import * as Triage from "../../src/model/Triage.ts"
import { answer, failure, word } from "./answers.ts"
import { ask } from "./asks.ts"
import { type Below, failures, plan, run, served, turns } from "./interleaving.ts"

const forbidden = failure("Forbidden", { status: 403 })

/** Calls that end when the test says. */
const made = () => {
  const gates = new Map<number, Deferred.Deferred<Answer, ModelError>>()
  const model = Triage.judging({
    complete: ({ place }) =>
      Effect.flatMap(Deferred.make<Answer, ModelError>(), (gate) => {
        gates.set(place, gate)
        return Deferred.await(gate)
      })
  })
  const settled = turns(50)
  const begin = (place: number) =>
    Effect.zipLeft(Effect.fork(Effect.map(Effect.either(model.complete(ask({ place }))), word)), settled)
  const end = (place: number, outcome: Answer | ModelError) => {
    const gate = gates.get(place)
    if (gate === undefined) return Effect.die("not begun")
    return Effect.zipRight(
      "reason" in outcome ? Deferred.fail(gate, outcome) : Deferred.succeed(gate, outcome),
      settled
    )
  }
  return { begin, end }
}

const isOver = (fiber: Fiber.Fiber<string>) => Effect.map(Fiber.poll(fiber), ({ _tag }) => _tag === "Some")

/** One after the other, each to its end. */
const inTurn = (ends: ReadonlyArray<Answer | ModelError>) =>
  Effect.gen(function* () {
    const { begin, end } = made()
    const words: Array<string> = []
    for (const [place, outcome] of ends.entries()) {
      const fiber = yield* begin(place)
      yield* end(place, outcome)
      words.push(yield* Fiber.join(fiber))
    }
    return words
  })

describe("A forbidden prompt", () => {
  it("waits for what becomes of the others, and fails alone when one is answered.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { begin, end } = made()
        const [first, second, third] = [yield* begin(0), yield* begin(1), yield* begin(2)]
        yield* end(0, forbidden)
        yield* end(1, forbidden)
        expect([yield* isOver(first), yield* isOver(second)]).toEqual([false, false])
        yield* end(2, answer())
        expect(yield* Fiber.join(Fiber.all([first, second, third]))).toEqual(["Forbidden", "Forbidden", "answered"])
      })
    ))
  it("fails at once after an answer, however many do.", async () => {
    expect(await Effect.runPromise(inTurn([answer(), ...Array(5).fill(forbidden)]))).toEqual([
      "answered",
      ...Array(5).fill("Forbidden")
    ])
  })
  it("does not wait when nothing else is asked.", async () => {
    expect(await Effect.runPromise(inTurn([forbidden, forbidden, answer(), forbidden]))).toEqual([
      "Forbidden",
      "Forbidden",
      "answered",
      "Forbidden"
    ])
  })
  it("does not wait for those that fail in other ways.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { begin, end } = made()
        const [first, second] = [yield* begin(0), yield* begin(1)]
        yield* end(0, forbidden)
        yield* end(1, failure("BadRequest"))
        expect(yield* Fiber.join(Fiber.all([first, second]))).toEqual(["Forbidden", "BadRequest"])
      })
    ))
})

describe("Three forbidden prompts and no answer", () => {
  it("mean that all are.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { begin, end } = made()
        const fibers = [yield* begin(0), yield* begin(1), yield* begin(2), yield* begin(3)]
        for (const place of [0, 1, 2]) yield* end(place, forbidden)
        yield* turns(20)
        // The fourth may know better.
        expect(yield* isOver(fibers[0] ?? (yield* begin(4)))).toBe(false)
        yield* end(3, forbidden)
        expect(yield* Fiber.join(Fiber.all(fibers))).toEqual(Array(4).fill("AllForbidden"))
      })
    ))
  it("do so with one worker too.", async () => {
    expect(await Effect.runPromise(inTurn(Array(4).fill(forbidden)))).toEqual([
      "Forbidden",
      "Forbidden",
      "AllForbidden",
      "AllForbidden"
    ])
  })
})

describe("A model that is not found", () => {
  it("stops the run, but not once it has answered: then it is the prompt's own.", async () => {
    const missing = failure("ModelMissing", { status: 404 })
    expect(await Effect.runPromise(inTurn([missing, answer(), missing]))).toEqual([
      "ModelMissing",
      "answered",
      "BadRequest"
    ])
  })
})

describe("A call that waits", () => {
  it("may be given up, and so may what it waits for.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { begin, end } = made()
        const [first, second, third] = [yield* begin(0), yield* begin(1), yield* begin(2)]
        yield* end(0, forbidden)
        yield* end(1, forbidden)
        yield* Fiber.interrupt(first)
        yield* turns(20)
        expect(yield* isOver(second)).toBe(false)
        yield* Fiber.interrupt(third)
        expect(yield* Fiber.join(second)).toBe("Forbidden")
      })
    ))
  it("never does so for ever, and all are forbidden only where none was answered before.", () =>
    fc.assert(
      fc.asyncProperty(plan, async (drawn) => {
        let answered = false
        let wrong = 0
        const below: Below = ({ end }) => {
          if (end === "answered") return Effect.succeed(answer())
          if (end === "defect") return Effect.die("broken")
          return end === "refused" ? forbidden : failure("BadRequest")
        }
        const around = (inner: ModelService): ModelService => {
          const judged = Triage.judging(inner)
          return {
            complete: (ask) =>
              Effect.suspend(() => {
                const before = answered
                return judged.complete(ask).pipe(
                  Effect.tap(() => {
                    answered = true
                  }),
                  Effect.tapError(({ reason }) =>
                    Effect.sync(() => {
                      if (before && reason === "AllForbidden") wrong++
                    })
                  )
                )
              })
          }
        }
        const { over, ends } = await Effect.runPromise(run(drawn, below, around))
        expect([over, served(drawn, ends), wrong]).toEqual([true, true, 0])
        const told = ends.flatMap(failures).filter(({ reason }) => reason === "Forbidden" || reason === "AllForbidden")
        expect(told.every(({ status }) => status === 403)).toBe(true)
      }),
      { numRuns: 200, endOnFailure: true }
    ))
})
