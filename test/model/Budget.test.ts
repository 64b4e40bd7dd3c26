/** A run's budget is kept to whatever the interleaving, and what calls spend is counted however they end. */
import { Deferred, Effect, Either, Fiber, FiberId, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import type * as Events from "../../src/events/Events.ts"
import * as Budget from "../../src/model/Budget.ts"
import { type Answer, type ModelError, type ModelService, noUsage } from "../../src/model/Model.ts"
import { answer, failure, heard, usage, word } from "./answers.ts"
import { ask } from "./asks.ts"
import { type Below, failures, plan, run, served, turns } from "./interleaving.ts"

const limits = (more: Partial<Budget.Limits>): Budget.Limits => ({ cost: null, tokens: null, priced: false, ...more })

/** A budget over a model that gives these ends one after the other, the last again and again. */
const over = (more: Partial<Budget.Limits>, ends: ReadonlyArray<Answer | ModelError>) => {
  let asked = 0
  const inner: ModelService = {
    complete: () =>
      Effect.suspend(() => {
        const end = ends[Math.min(asked++, ends.length - 1)] ?? answer()
        return "reason" in end ? end : Effect.succeed(end)
      })
  }
  const { model, budget } = Budget.within(inner, limits(more))
  const call = (content = "Hi") =>
    Effect.map(Effect.either(model.complete(ask({ messages: [{ role: "user", content }] }))), word)
  return { call, budget, calls: (count: number) => Effect.replicateEffect(call(), count), asked: () => asked }
}

const costing = (cost: number, total = 10) => answer({ usage: usage(total, cost) })

describe("A budget in money", () => {
  it("is used up to the last cent, and no further.", async () => {
    const { calls, budget, asked } = over({ cost: 1 }, [costing(0.1)])
    const ends = await Effect.runPromise(calls(12))
    expect(ends).toEqual([...Array.from({ length: 10 }, () => "answered"), "BudgetReached", "BudgetReached"])
    const { usage, calls: answered } = Effect.runSync(budget.spent)
    expect([usage.cost_usd.toFixed(9), answered, asked()]).toEqual(["1.000000000", 10, 10])
    expect(Effect.runSync(budget.reached)).toBe(
      "the budget is reached: $1.0000 spent, and the next call could pass --max_cost=1; raise it to go on"
    )
  })
  it("counts what was spent before.", async () => {
    const { calls, budget } = over({ cost: 1 }, [costing(0.1)])
    await Effect.runPromise(budget.begin({ cost: 0.75, tokens: 0, calls: 0 }))
    expect((await Effect.runPromise(calls(4))).filter((each) => each === "answered").length).toBe(2)
    const used = over({ cost: 1 }, [costing(0.1)])
    await Effect.runPromise(used.budget.begin({ cost: 1.1, tokens: 0, calls: 0 }))
    expect(await Effect.runPromise(used.calls(2))).toEqual(["BudgetReached", "BudgetReached"])
    expect(used.asked()).toBe(0)
    // What calls cost then, the first one now may cost too.
    const nearly = over({ cost: 1 }, [costing(0.1)])
    await Effect.runPromise(nearly.budget.begin({ cost: 0.95, tokens: 0, calls: 9 }))
    expect([await Effect.runPromise(nearly.calls(1)), nearly.asked()]).toEqual([["BudgetReached"], 0])
  })
  it("expects of a call the most that one has spent so far, and more of one that is larger than all.", async () => {
    const dear = over({ cost: 1 }, [costing(0.4), costing(0.01)])
    expect(await Effect.runPromise(dear.calls(62))).toEqual([
      ...Array(22).fill("answered"),
      ...Array(40).fill("BudgetReached")
    ])
    const growing = over({ cost: 10 }, [costing(1), costing(2), costing(3)])
    const sizes = [100, 200, 300]
    expect(await Effect.runPromise(Effect.forEach(sizes, (size) => growing.call("x".repeat(size))))).toEqual(
      sizes.map(() => "answered")
    )
    // 6 are spent, and 3 more were seen; a hundred characters cost one more.
    expect(await Effect.runPromise(growing.call("x".repeat(410)))).toBe("BudgetReached")
  })
  it("counts what failed calls spent, and no call of them.", async () => {
    const { calls, budget } = over({ cost: 1 }, [failure("BadAnswer", { usage: usage(5, 0.3) })])
    expect(await Effect.runPromise(calls(5))).toEqual([
      "BadAnswer",
      "BadAnswer",
      "BadAnswer",
      "BudgetReached",
      "BudgetReached"
    ])
    const { usage: spent, calls: answered } = Effect.runSync(budget.spent)
    expect([spent.total, answered]).toEqual([15, 0])
  })
  it("stops the run when nothing tells what calls cost.", async () => {
    const unpriced = { ...costing(0), priced: false }
    for (const more of [{ cost: 1 }, { priced: true }]) {
      const { calls, budget } = over(more, [unpriced])
      expect(await Effect.runPromise(calls(1))).toEqual(["CostUnknown"])
      expect(Effect.runSync(budget.spent).usage.total).toBe(10)
    }
    expect(await Effect.runPromise(over({}, [unpriced]).calls(1))).toEqual(["answered"])
    const untold = answer()
    expect(await Effect.runPromise(over({ tokens: 10 }, [untold]).calls(1))).toEqual(["CostUnknown"])
    expect(await Effect.runPromise(over({ cost: 10 }, [untold]).calls(1))).toEqual(["answered"])
  })
  it("counts an answer without a price as the largest that had one.", async () => {
    const unpriced = { ...costing(0), priced: false }
    const { calls, budget } = over({ cost: 1 }, [costing(0.25), unpriced, costing(0.25), costing(0.25), costing(0.25)])
    expect(await Effect.runPromise(calls(5))).toEqual([...Array(4).fill("answered"), "BudgetReached"])
    expect(Effect.runSync(budget.spent).usage.cost_usd).toBe(1)
  })
  it("once reached stays so, and is told once.", async () => {
    const events: Array<Events.Event> = []
    const { call } = over({ cost: 1 }, [costing(0.6)])
    const all = Effect.forEach(["xx", "xx", "x", ""], call)
    expect(await Effect.runPromise(heard(events)(all))).toEqual(["answered", ...Array(3).fill("BudgetReached")])
    expect(events).toEqual([{ event: "budget_reached" }])
  })
})

/** Why no call beside the model's own is made that could cost so much. */
const refusal = ({ hold }: Budget.BudgetService, cost_usd: number) =>
  Effect.flatMap(
    hold({ cost_usd, total: 0 }),
    Either.match({ onLeft: (why) => Effect.succeed(why), onRight: (settle) => Effect.as(settle(noUsage), "") })
  )

describe("What tools spend beside the model", () => {
  it("counts to the budget, for their own calls and for the model's.", async () => {
    const { call, calls, budget, asked } = over({ cost: 1 }, [costing(0.1)])
    const refused = (cost_usd: number) => Effect.runSync(refusal(budget, cost_usd))
    await Effect.runPromise(call())
    Effect.runSync(
      Effect.flatMap(Effect.flatten(budget.hold({ cost_usd: 0.1, total: 0 })), (settle) => settle(usage(7, 0.6)))
    )
    expect(Effect.runSync(budget.spent)).toMatchObject({ usage: { total: 17, cost_usd: 0.7 }, calls: 1 })
    expect(refused(0.3)).toBe("")
    expect(refused(0.31)).toBe(
      "the budget is reached: $0.7000 spent, and the next call could pass --max_cost=1; raise it to go on"
    )
    expect(Effect.runSync(budget.reached)).toBe("")
    expect(await Effect.runPromise(calls(4))).toEqual([...Array(3).fill("answered"), "BudgetReached"])
    expect([asked(), refused(0)]).toEqual([4, Effect.runSync(budget.reached)])
  })
  it("leaves room for what the model's calls under way may spend.", async () => {
    const gate = Deferred.unsafeMake<Answer>(FiberId.none)
    let asked = 0
    const complete = () => (asked++ === 0 ? Effect.succeed(costing(0.4)) : Deferred.await(gate))
    const { model, budget } = Budget.within({ complete }, limits({ cost: 1 }))
    const refused = refusal(budget, 0.3)
    const program = Effect.gen(function* () {
      yield* model.complete(ask({}))
      const fiber = yield* Effect.fork(model.complete(ask({})))
      yield* turns(50)
      const during = yield* refused
      yield* Deferred.succeed(gate, costing(0.1))
      yield* Fiber.join(fiber)
      return [during, yield* refused]
    })
    expect(await Effect.runPromise(program)).toEqual([expect.stringContaining("--max_cost=1"), ""])
  })
})

describe("A call of a tool under way", () => {
  it("is left room for by the model's own, which wait for what it comes to.", async () => {
    const { call, budget, asked } = over({ cost: 1 }, [costing(0.3)])
    const program = Effect.gen(function* () {
      yield* call()
      const settle = yield* Effect.flatten(budget.hold({ cost_usd: 0.5, total: 0 }))
      const fiber = yield* Effect.fork(call())
      yield* turns(50)
      const during = asked()
      yield* settle(usage(1, 0.4))
      return [during, yield* Fiber.join(fiber), asked()]
    })
    expect(await Effect.runPromise(program)).toEqual([1, "answered", 2])
    expect(Effect.runSync(budget.spent).usage.cost_usd).toBeCloseTo(1)
  })
})

describe("A budget in tokens", () => {
  it("is used up to the last one.", async () => {
    const { calls, budget } = over({ tokens: 100 }, [costing(0, 25)])
    await Effect.runPromise(budget.begin({ cost: 9, tokens: 25, calls: 0 }))
    expect(await Effect.runPromise(calls(5))).toEqual([...Array(3).fill("answered"), "BudgetReached", "BudgetReached"])
    expect(Effect.runSync(budget.reached)).toBe(
      "the budget is reached: 100 tokens used, and the next call could pass --max_total_tokens=100; raise it to go on"
    )
  })
})

describe("Calls at once", () => {
  /** A budget over calls that last until the test says, each with its cost. */
  const held = (more: Partial<Budget.Limits>) => {
    const gates: Array<Deferred.Deferred<Answer>> = []
    const { model, budget } = Budget.within(
      {
        complete: () =>
          Effect.flatMap(Deferred.make<Answer>(), (gate) => {
            gates.push(gate)
            return Deferred.await(gate)
          })
      },
      limits(more)
    )
    const settled = turns(50)
    const end = (call: number, cost: number) => {
      const gate = gates[call]
      return gate === undefined
        ? Effect.die("not begun")
        : Effect.zipRight(Deferred.succeed(gate, costing(cost)), settled)
    }
    const begin = (count: number) =>
      Effect.zipLeft(
        Effect.forEach(Array(count).fill(0), () => Effect.fork(Effect.either(model.complete(ask())))),
        settled
      )
    return { gates, begin, end, budget, settled }
  }
  it("are one until something is known of what a call spends.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { gates, begin, end } = held({ cost: 10 })
        yield* begin(5)
        expect(gates.length).toBe(1)
        yield* end(0, 1)
        expect(gates.length).toBe(5)
      })
    ))
  it("are as many as fit together, and an interrupted one makes room.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { gates, begin, end, settled } = held({ cost: 3 })
        yield* begin(1)
        yield* end(0, 1)
        const [given] = yield* begin(1)
        yield* begin(1)
        const [waits] = yield* begin(1)
        expect(gates.length).toBe(3)
        if (given !== undefined) yield* Fiber.interrupt(given)
        yield* settled
        expect(gates.length).toBe(4)
        yield* end(2, 1)
        yield* end(3, 1)
        expect(waits === undefined ? "" : word(yield* Fiber.join(waits))).toBe("answered")
      })
    ))
  it("are free of each other where there is no limit, and counted.", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { gates, begin, end, budget } = held({})
        yield* begin(5)
        expect(gates.length).toBe(5)
        yield* end(3, 2)
        expect(yield* budget.spent).toEqual({ usage: usage(10, 2), calls: 1 })
        expect(yield* budget.reached).toBe("")
      })
    ))
})

describe("A budget in any interleaving", () => {
  it("is never passed, hangs nobody, and counts all that was told.", () =>
    fc.assert(
      fc.asyncProperty(plan, fc.integer({ min: 10, max: 120 }), fc.boolean(), async (drawn, most, inTokens) => {
        // The first may be the dearest: what comes later costs at most what an earlier one did.
        let dearest = 10
        let told = 0
        let ended = false
        let answered = 0
        const below: Below = (lot) =>
          Effect.suspend(() => {
            const size = told === 0 && lot.end !== "defect" ? dearest : Math.min(lot.size, dearest)
            if (lot.end === "defect" && !ended) return Effect.die("broken")
            dearest = Math.max(size, 1)
            told += size
            const spent = usage(size, size / 10)
            if (lot.end !== "answered" && !ended) return failure("BadAnswer", { usage: spent })
            answered++
            return Effect.succeed(answer({ usage: spent }))
          })
        let budget = Budget.none
        const around = (inner: ModelService) => {
          const made = Budget.within(inner, limits(inTokens ? { tokens: most } : { cost: most / 10 }))
          budget = made.budget
          return made.model
        }
        const { over, ends, model } = await Effect.runPromise(run(drawn, below, around))
        expect([over, served(drawn, ends)]).toEqual([true, true])
        const { usage: spent, calls } = Effect.runSync(budget.spent)
        expect(told).toBeLessThanOrEqual(most)
        expect(spent.total).toBeLessThanOrEqual(told)
        expect(calls).toBeLessThanOrEqual(answered)
        const interrupted = drawn.callers.some((caller) => caller.interrupted !== undefined)
        if (!interrupted) expect([spent.total, calls]).toEqual([told, answered])
        const refused = ends.flatMap(failures).filter(({ reason }) => reason === "BudgetReached").length
        if (refused > 0) expect(Effect.runSync(budget.reached)).not.toBe("")
        // Nothing is kept back for calls that are over: the rest can be spent, and then the end is told.
        ended = true
        const rest = Effect.either(model.complete(ask())).pipe(
          Effect.repeat({ until: Either.isLeft }),
          Effect.map(word)
        )
        expect(await Effect.runPromise(Effect.timeout(rest, "1 second"))).toBe("BudgetReached")
      }),
      { numRuns: 300, endOnFailure: true }
    ))
})
