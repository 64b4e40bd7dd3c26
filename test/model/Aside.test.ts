/** What tools ask beside the sessions' own calls: counted and held back with them, and no judgement of them. */
import { Deferred, Duration, Effect, Fiber, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Budget from "../../src/model/Budget.ts"
import { steady } from "../../src/model/Endpoint.ts"
import type { Answer, Ask, ModelError, ModelService } from "../../src/model/Model.ts"
import * as Outage from "../../src/model/Outage.ts"
import * as Triage from "../../src/model/Triage.ts"
import { answer, failure, usage, word } from "./answers.ts"
import { ask } from "./asks.ts"
import { silent, test } from "./downtime.ts"
import { turns } from "./interleaving.ts"

const aside = (model: string | undefined = "other", more: Partial<Ask> = {}) =>
  ask({ aside: { tool: "t", model }, ...more })
const ended = (end: () => Answer | ModelError): Effect.Effect<Answer, ModelError> =>
  Effect.suspend(() => {
    const it = end()
    return "reason" in it ? it : Effect.succeed(it)
  })
const costing = (cost: number, total = 10) => answer({ usage: usage(total, cost) })

/** A budget over a model whose answers a test gives by the ask. */
const within = (limits: Partial<Budget.Limits>, end: (asked: Ask) => Answer | ModelError) => {
  const asked: Array<Ask> = []
  const inner: ModelService = {
    complete: (one) =>
      Effect.suspend(() => {
        asked.push(one)
        return ended(() => end(one))
      })
  }
  const made = Budget.within(inner, { cost: null, tokens: null, priced: false, ...limits })
  const call = (one: Ask) =>
    Effect.runPromise(Effect.provide(Effect.map(Effect.either(made.model.complete(one)), word), silent))
  return { ...made, call, asked }
}

describe("The budget", () => {
  it("expects of the session's calls no more for what a tool's have cost, nor less.", async () => {
    const { call, budget } = within({ cost: 1 }, ({ aside }) => costing(aside === undefined ? 0.01 : 0.4))
    const ends: Array<string> = []
    ends.push(await call(ask()), await call(aside()))
    for (let n = 0; n < 59; n++) ends.push(await call(ask()))
    expect(ends).toEqual(Array(61).fill("answered"))
    // The session's next would pass it too, but a tool's is told by itself.
    expect(await call(aside())).toBe("BudgetReached")
    expect(Effect.runSync(budget.spent)).toMatchObject({ calls: 60 })
    expect(Effect.runSync(budget.spent).usage.cost_usd).toBeCloseTo(1)
    const other = within({ cost: 1 }, ({ aside }) => costing(aside === undefined ? 0.01 : 0.4))
    expect([await other.call(ask()), await other.call(aside()), await other.call(aside())]).toEqual([
      "answered",
      "answered",
      "answered"
    ])
    // 0.81 are spent.
    expect(await other.call(aside())).toBe("BudgetReached")
    expect(other.asked).toHaveLength(3)
  })
  it("lets the first question of a kind find out for the others, beside whatever else is under way.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const gates: Array<Deferred.Deferred<Answer>> = []
        const { model } = Budget.within(
          {
            complete: () =>
              Effect.flatMap(Deferred.make<Answer>(), (gate) => {
                gates.push(gate)
                return Deferred.await(gate)
              })
          },
          { cost: 100, tokens: null, priced: false }
        )
        const begin = (one: Ask) => Effect.zipLeft(Effect.fork(model.complete(one)), turns(50))
        const end = (at: number) => {
          const gate = gates[at]
          return gate === undefined
            ? Effect.die("not begun")
            : Effect.zipRight(Deferred.succeed(gate, costing(1)), turns(50))
        }
        const first = yield* begin(ask())
        yield* end(0)
        yield* begin(ask())
        const questions = [yield* begin(aside()), yield* begin(aside()), yield* begin(aside("third"))]
        // The session's, and one to each of the two models.
        expect(gates.length).toBe(4)
        yield* end(2)
        expect(gates.length).toBe(5)
        yield* Effect.forEach([first, ...questions], Fiber.interrupt)
      })
    ))
  it("that needs a price takes none of a tool's answers without one, asks no more, and goes on.", async () => {
    for (const limits of [{ cost: 1 }, { priced: true }]) {
      const { call, asked, budget } = within(limits, ({ aside }) =>
        aside === undefined ? costing(0.1) : { ...costing(0), priced: false }
      )
      expect([await call(ask()), await call(aside()), await call(aside())]).toEqual([
        "answered",
        "BadRequest",
        "BadRequest"
      ])
      expect(asked).toHaveLength(2)
      expect(await call(ask())).toBe("answered")
      expect(Effect.runSync(budget.spent).usage.total).toBe(30)
    }
    const untold = within({ tokens: 1000 }, ({ aside }) => (aside === undefined ? costing(0) : answer()))
    expect([await untold.call(ask()), await untold.call(aside()), await untold.call(ask())]).toEqual([
      "answered",
      "BadRequest",
      "answered"
    ])
  })
  it("takes a picture for about as large as models do.", async () => {
    const sized = ({ messages }: Ask) => costing(messages[0]?.role === "user" && messages[0].images ? 0.02 : 0.01)
    const { call } = within({ cost: 1 }, sized)
    const image = "x".repeat(3_000_000)
    const shown = (images: ReadonlyArray<string>) => ({ messages: [{ role: "user", content: "?", images }] as const })
    // By their characters alone a third picture would be taken for as dear as a book.
    for (const images of [[], ["x".repeat(6000)], [image], [image, image]]) {
      expect(await call(aside("other", shown(images)))).toBe("answered")
    }
  })
  it("is not passed by any mixture of calls that cost the same.", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(undefined, "a", "b"), { maxLength: 40 }), async (models) => {
        const { call, budget } = within({ cost: 1 }, () => costing(0.1))
        await Promise.all(models.map((model) => call(model === undefined ? ask() : aside(model))))
        expect(Effect.runSync(budget.spent).usage.cost_usd).toBeLessThan(1 + 1e-9)
      }),
      { numRuns: 50 }
    ))
})

describe("The triage", () => {
  /** The session's calls are forbidden, missing or whatever; a tool's go as `beside` says. */
  const judged = (own: Answer | ModelError, beside: Answer | ModelError) => {
    const model = Triage.judging({
      complete: ({ aside }) => ended(() => (aside === undefined ? own : beside))
    })
    return (one: Ask) => Effect.runPromise(Effect.map(Effect.either(model.complete(one)), word))
  }

  it("takes what the endpoint says to a tool's question for that question's own affair.", async () => {
    for (const [reason, status] of [
      ["ModelMissing", 404],
      ["NoCredit", 402],
      ["Unauthorized", 401]
    ] as const) {
      const call = judged(answer(), failure(reason, { status }))
      expect([await call(aside()), await call(ask())]).toEqual(["BadRequest", "answered"])
      const same = judged(failure(reason, { status }), failure(reason, { status }))
      expect([await same(aside()), await same(aside(undefined)), await same(ask())]).toEqual([
        "BadRequest",
        "BadRequest",
        reason
      ])
    }
    const call = judged(answer(), failure("Forbidden", { status: 403 }))
    for (let n = 0; n < 5; n++) expect(await call(aside())).toBe("Forbidden")
    expect(await call(ask())).toBe("answered")
  })
  it("does not take another model's answer for a sign of the run's own.", async () => {
    const call = judged(failure("ModelMissing", { status: 404 }), answer())
    expect([await call(aside()), await call(ask())]).toEqual(["answered", "ModelMissing"])
  })
  it("still stops what nothing can get past.", async () => {
    expect(await judged(answer(), failure("DownTooLong"))(aside())).toBe("DownTooLong")
  })
})

describe("An outage", () => {
  const made = (end: (asked: Ask) => Answer | ModelError) => {
    const { model, endpoint } = Outage.waiting({ complete: (one) => ended(() => end(one)) }, steady, {
      maxWait: Duration.minutes(1),
      most: 4
    })
    const call = (one: Ask) => Effect.map(Effect.either(model.complete(one)), word)
    return { call, endpoint }
  }
  it("is none of a model that tools ask and that is away by itself, in whatever prompts.", () =>
    test(
      Effect.gen(function* () {
        const { call, endpoint } = made(({ aside }) =>
          aside === undefined ? answer() : failure("Overloaded", { status: 502 })
        )
        for (let place = 0; place < 40; place++) {
          expect(yield* call(aside("other", { place }))).toBe("Overloaded")
        }
        expect(yield* endpoint.told).toBe("")
        expect(yield* call(ask())).toBe("answered")
      })
    ))
})
