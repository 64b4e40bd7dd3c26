/** One browser for many sessions: started when the first asks, and again when it has ended. */
import { Effect, ExecutionStrategy, Exit, Option, Scope, SynchronizedRef } from "effect"
import type { Browser } from "playwright-core"
import type { BrowserError } from "./Source.ts"

interface Held<A> {
  readonly value: A
  readonly scope: Scope.CloseableScope
}

/** Gives the browser that lives; the last one ends with the scope. */
export const make = <A extends { readonly browser: Browser }>(
  start: Effect.Effect<A, BrowserError, Scope.Scope>
): Effect.Effect<Effect.Effect<A, BrowserError>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const cell = yield* SynchronizedRef.make(Option.none<Held<A>>())
    const started = Effect.gen(function* () {
      const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const value = yield* Effect.onError(Scope.extend(start, own), (cause) => Scope.close(own, Exit.failCause(cause)))
      const held: Held<A> = { value, scope: own }
      return held
    })
    return SynchronizedRef.modifyEffect(cell, (now) =>
      Effect.gen(function* () {
        if (Option.isSome(now) && now.value.value.browser.isConnected()) return [now.value.value, now] as const
        if (Option.isSome(now)) yield* Scope.close(now.value.scope, Exit.void)
        const fresh = yield* started
        return [fresh.value, Option.some(fresh)] as const
      })
    )
  })
