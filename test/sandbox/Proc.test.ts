import { Effect, Exit, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import * as Proc from "../../src/sandbox/Proc.ts"

describe("A bounded wait", () => {
  const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)

  it("gives what came in time, and nothing when it did not", async () => {
    expect(await run(Proc.atMost(Effect.succeed(1), 1000))).toBe(1)
    expect(await run(Proc.atMost(Effect.as(Proc.pause(5), 2), 1000))).toBe(2)
    expect(await run(Proc.atMost(Effect.never, 5))).toBe(undefined)
    // What cannot be interrupted is not waited for.
    expect(await run(Proc.atMost(Effect.uninterruptible(Proc.pause(300)), 5))).toBe(undefined)
    expect(await run(Effect.uninterruptible(Proc.atMost(Effect.never, 5)))).toBe(undefined)
  })

  it("is not cut short where interruption is held off", async () => {
    let done = false
    const work = Effect.map(Proc.atMost(Effect.as(Proc.pause(60), "made"), 5000), (made) => {
      done = made === "made"
    })
    const fiber = Effect.runFork(Effect.uninterruptible(work))
    await run(Proc.pause(10))
    await run(Fiber.interrupt(fiber))
    expect(done).toBe(true)
  })

  it("ends what it waits for when it is interrupted itself", async () => {
    let ended = false
    const never = Effect.onInterrupt(Effect.never, () =>
      Effect.map(Proc.pause(10), () => {
        ended = true
      })
    )
    const fiber = Effect.runFork(Proc.atMost(never, 5000))
    await run(Proc.pause(10))
    expect(Exit.isInterrupted(await run(Fiber.interrupt(fiber)))).toBe(true)
    expect(ended).toBe(true)
  })
})
