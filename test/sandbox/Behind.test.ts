/** A prompt does not wait for the release of its sandbox, so many exist at once, and none is forgotten. */
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import * as Proc from "../../src/sandbox/Proc.ts"
import { SandboxError, type Sandboxes } from "../../src/sandbox/Sandbox.ts"
import * as Startup from "../../src/sandbox/Startup.ts"
import { box, place, spec } from "./places.ts"

type Service = typeof Sandboxes.Service

/** Runs `use` with at most so many of the sandboxes at once, then closes their scope. */
const within = <A, E>(sandboxes: Service, most: number, use: (behind: Service) => Effect.Effect<A, E>) =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(Startup.behind(sandboxes, most), use)))

const prompt = (behind: Service, at = 0) => Effect.scoped(behind.open(spec(at)))

/** Lets every fiber do what it can without waiting for a time. */
const settle = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))

const error = new SandboxError({ reason: "StartFailed", detail: "bad luck" })

describe("A sandbox behind its prompt", () => {
  it("is released with the prompt's scope closed already, and the scope of all waits for that.", async () => {
    const gate = Deferred.unsafeMake<void>(Effect.runSync(Effect.fiberId))
    const { sandboxes, notes, count } = place(undefined, () => Deferred.await(gate))
    const scope = await Effect.runPromise(Scope.make())
    const behind = await Effect.runPromise(Scope.extend(Startup.behind(sandboxes, 2), scope))
    expect(await Effect.runPromise(prompt(behind))).toBe(box)
    expect(count.now).toBe(1)
    let closed = false
    const closing = Effect.runPromise(Scope.close(scope, Exit.void)).then(() => {
      closed = true
    })
    await Effect.runPromise(settle)
    expect(closed).toBe(false)
    await Effect.runPromise(Deferred.succeed(gate, undefined))
    await closing
    expect(notes).toEqual(["made t0", "gone t0"])
  })

  it("counts until it is gone: so many exist at once, and never more.", async () => {
    const { sandboxes, count, notes } = place(
      () => Effect.sleep(2),
      () => Effect.sleep(10)
    )
    await within(sandboxes, 3, (behind) =>
      Effect.forEach(
        Array.from({ length: 30 }, (_, at) => at),
        (at) => prompt(behind, at),
        { concurrency: 8 }
      )
    )
    expect(count).toEqual({ now: 0, most: 3 })
    expect(notes).toHaveLength(60)
  })

  it("is released to its end, whatever that starts, when the work it was part of is over or interrupted.", async () => {
    for (const stopped of [false, true]) {
      let ends = 0
      const { sandboxes } = place(undefined, () =>
        Effect.map(Proc.atMost(Proc.pause(60), 5000), () => {
          ends++
        })
      )
      await within(sandboxes, 8, (behind) => {
        const one = (at: number) =>
          Effect.scoped(Effect.zipRight(behind.open(spec(at)), stopped ? Effect.never : Effect.void))
        const work = Effect.forEach([1, 2, 3, 4], one, { concurrency: 4, discard: true })
        return Effect.timeoutOption(work, 30)
      })
      expect(ends).toBe(4)
    }
  })

  it("makes the next prompt wait for its place only where all are taken.", async () => {
    const gate = Deferred.unsafeMake<void>(Effect.runSync(Effect.fiberId))
    const { sandboxes, notes } = place(undefined, () => Deferred.await(gate))
    await within(sandboxes, 2, (behind) =>
      Effect.gen(function* () {
        yield* prompt(behind, 0)
        yield* prompt(behind, 1)
        const third = yield* Effect.fork(prompt(behind, 2))
        yield* settle
        expect(notes).toEqual(["made t0", "made t1"])
        yield* Deferred.succeed(gate, undefined)
        expect(yield* Fiber.join(third)).toBe(box)
      })
    )
    expect(notes.toSorted()).toEqual(["gone t0", "gone t1", "gone t2", "made t0", "made t1", "made t2"])
  })

  it("leaves its place when it could not be opened, and is cleared away.", async () => {
    const { sandboxes, count, notes } = place((id) => (id === "t9" ? Effect.void : error))
    await within(sandboxes, 1, (behind) =>
      Effect.gen(function* () {
        for (let at = 0; at < 5; at++) expect(yield* Effect.flip(prompt(behind, at))).toBe(error)
        expect(yield* prompt(behind, 9)).toBe(box)
      })
    )
    expect(count).toEqual({ now: 0, most: 1 })
    expect(notes).toHaveLength(12)
  })

  it("that is made with its first call is released behind its prompt once it was used, and else with it, at once.", async () => {
    const gate = Deferred.unsafeMake<void>(Effect.runSync(Effect.fiberId))
    const { sandboxes, notes, count } = place(undefined, () => Deferred.await(gate))
    const lazy: Service = {
      lazy: () => true,
      open: (one) =>
        Effect.map(Effect.scope, (scope) => {
          let made = false
          const make = Effect.suspend(() => {
            made = true
            return Scope.extend(sandboxes.open(one), scope)
          })
          return { ...box, exec: () => Effect.flatMap(make, ({ exec }) => exec("", { timeout: 1 })), idle: () => !made }
        })
    }
    await within(lazy, 1, (behind) =>
      Effect.gen(function* () {
        for (let at = 0; at < 3; at++) yield* prompt(behind, at)
        expect(notes).toEqual([])
        yield* Effect.scoped(
          Effect.flatMap(behind.open(spec(3)), ({ exec }) => Effect.flip(exec("true", { timeout: 1 })))
        )
        const next = yield* Effect.fork(prompt(behind, 4))
        yield* settle
        expect(notes).toEqual(["made t3"])
        expect(next.unsafePoll()).toBeNull()
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(next)
      })
    )
    expect(notes).toEqual(["made t3", "gone t3"])
    expect(count.now).toBe(0)
  })

  it("does not hide the prompt's own result when its release breaks.", async () => {
    const { sandboxes } = place(undefined, () => Effect.die(new Error("the release broke")))
    const results = await within(sandboxes, 1, (behind) =>
      Effect.all([
        Effect.scoped(Effect.as(behind.open(spec()), "result")),
        Effect.flip(Effect.scoped(Effect.zipRight(behind.open(spec()), Effect.fail("own error"))))
      ])
    )
    expect(results).toEqual(["result", "own error"])
  })

  it("is released when its prompt is broken off, while it is opened too.", async () => {
    const { sandboxes, count, notes } = place((id) => (id === "t0" ? Effect.never : Effect.void))
    await within(sandboxes, 2, (behind) =>
      Effect.gen(function* () {
        const opening = yield* Effect.fork(prompt(behind, 0))
        const using = yield* Effect.fork(Effect.scoped(Effect.zipRight(behind.open(spec(1)), Effect.never)))
        yield* settle
        expect(count.now).toBe(2)
        yield* Fiber.interrupt(opening)
        yield* Fiber.interrupt(using)
      })
    )
    expect(count.now).toBe(0)
    expect(notes.toSorted()).toEqual(["gone t0", "gone t1", "made t0", "made t1"])
  })

  it("is never made for a prompt that is broken off while it waits for its place.", async () => {
    const { sandboxes, notes } = place()
    await within(sandboxes, 1, (behind) =>
      Effect.gen(function* () {
        const first = yield* Effect.fork(Effect.scoped(Effect.zipRight(behind.open(spec(0)), Effect.never)))
        yield* settle
        const second = yield* Effect.fork(prompt(behind, 1))
        yield* settle
        yield* Fiber.interrupt(second)
        yield* Fiber.interrupt(first)
        expect(yield* prompt(behind, 2)).toBe(box)
      })
    )
    expect(notes).toEqual(["made t0", "gone t0", "made t2", "gone t2"])
  })

  it("never costs a place, however prompts are broken off.", async () => {
    const { sandboxes, count } = place(
      () => Effect.yieldNow(),
      () => Effect.yieldNow()
    )
    await within(sandboxes, 2, (behind) =>
      Effect.gen(function* () {
        for (let round = 0; round < 300; round++) {
          const fibers = yield* Effect.forEach([0, 1, 2, 3, 4], (at) => Effect.fork(prompt(behind, at)))
          for (let wait = round % 7; wait > 0; wait--) yield* Effect.yieldNow()
          yield* Fiber.interruptAll(fibers.filter((_, at) => (round + at) % 2 === 0))
          yield* Fiber.awaitAll(fibers)
        }
        // Both places are still there.
        yield* Effect.scoped(Effect.zipRight(behind.open(spec(1)), behind.open(spec(2))))
      }).pipe(Effect.timeout("20 seconds"))
    )
    expect(count).toEqual({ now: 0, most: 2 })
  })

  it("whose release hangs holds its place for a minute, and the end of all for no longer.", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    const { sandboxes, notes } = place(undefined, (id) => (id === "t0" ? Effect.never : Effect.void))
    const ended = within(sandboxes, 1, (behind) => Effect.zipRight(prompt(behind, 0), prompt(behind, 1)))
    await vi.advanceTimersByTimeAsync(59_000)
    expect(notes).toEqual(["made t0"])
    await vi.advanceTimersByTimeAsync(2000)
    expect(await ended).toBe(box)
    expect(notes).toEqual(["made t0", "made t1", "gone t1"])
  })
})
