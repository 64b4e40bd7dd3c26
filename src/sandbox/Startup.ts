/**
 * How sandboxes are started and released: at a steady pace, tried again when bad luck stopped them, so many at once, and
 * cleared away while the next prompt begins, as is what dead runs left while a run works.
 */
import { Clock, type Context, Effect, ExecutionStrategy, Exit, Fiber, Scope } from "effect"
import * as Proc from "./Proc.ts"
import {
  type Cleaned,
  type ContainerOptions,
  SandboxError,
  type Sandboxes,
  type SandboxService,
  type SandboxSpec
} from "./Sandbox.ts"

type Service = Context.Tag.Service<Sandboxes>

/** Starts are begun evenly, `perSecond` of them in a second, and no more than so many are under way. */
export const ramp = (perSecond: number): NonNullable<ContainerOptions["ramp"]> => {
  const gate = Effect.unsafeMakeSemaphore(perSecond)
  let next = 0
  const turn = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const at = Math.max(now, next)
    next = at + 1000 / perSecond
    return at > now ? Effect.sleep(at - now) : Effect.void
  })
  return (start) => gate.withPermits(1)(Effect.zipRight(turn, start))
}

/** Tries of one start. */
const tries = 4

/** Milliseconds before the second try; twice as many before each further one. */
const firstPause = 1000

/** Opens a sandbox in a scope of its own below `scope`, closed at once when that fails: the next try needs its room. */
const openIn = (sandboxes: Service, spec: SandboxSpec, scope: Scope.Scope) =>
  Effect.flatMap(Scope.fork(scope, ExecutionStrategy.sequential), (own) =>
    Effect.onExit(Scope.extend(sandboxes.open(spec), own), (exit) =>
      Exit.isSuccess(exit) ? Effect.void : Scope.close(own, exit)
    )
  )

/** Tries a start again, a bounded number of times, when it may go better. */
export const persistent = (sandboxes: Service): Service => {
  const attempt = (spec: SandboxSpec, scope: Scope.Scope, made: number): Effect.Effect<SandboxService, SandboxError> =>
    Effect.catchAll(openIn(sandboxes, spec, scope), (error) => {
      if (!error.passing) return error
      if (made >= tries) {
        return new SandboxError({ reason: error.reason, detail: `${error.detail} (tried ${made} times)` })
      }
      const pause = firstPause * 2 ** (made - 1)
      return Effect.logWarning(`${error.message}; trying again in ${pause / 1000} s`).pipe(
        Effect.zipRight(Effect.sleep(pause)),
        Effect.zipRight(attempt(spec, scope, made + 1))
      )
    })
  return { open: (spec) => Effect.flatMap(Effect.scope, (scope) => attempt(spec, scope, 1)) }
}

/** Milliseconds for a release, after which the next prompt no longer waits for it. */
const releaseLimit = 60_000

/**
 * At most `most` sandboxes exist at once, those that are being released included. A prompt's scope closes at once: its
 * sandbox is released behind it, and the scope of this effect waits for all of them.
 */
export const behind = (sandboxes: Service, most: number): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const gate = Effect.unsafeMakeSemaphore(most)
    yield* Effect.addFinalizer(() => Proc.atMost(gate.take(most), releaseLimit))
    const release = (own: Scope.CloseableScope) =>
      Proc.atMost(Scope.close(own, Exit.void), releaseLimit).pipe(Effect.ensuring(gate.release(1)))
    // The fibers of a release are most of what an idle session costs, so a sandbox that was never used is spared them.
    const lightly = (spec: SandboxSpec) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          yield* restore(gate.take(1))
          const own = yield* Scope.make()
          const box = yield* Effect.onError(Scope.extend(sandboxes.open(spec), own), () => gate.release(1))
          // Straight into the scope: `Effect.addFinalizer` compares all that a fiber holds, twice, when it runs.
          yield* Scope.addFinalizer(
            yield* Effect.scope,
            Effect.suspend(
              (): Effect.Effect<unknown> => (box.idle?.() ? gate.release(1) : Effect.forkDaemon(release(own)))
            )
          )
          return box
        })
      )
    const lazy = sandboxes.lazy ?? (() => false)
    return {
      lazy,
      open: (spec) => {
        if (lazy(spec)) return lightly(spec)
        return Effect.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            yield* restore(gate.take(1))
            const own = yield* Scope.make()
            yield* Effect.addFinalizer(() => Effect.forkDaemon(release(own)))
            // What it adds to its scope runs as the fiber that added it would: one of the prompt's would end it with the run's work.
            const opening = yield* Effect.forkDaemon(restore(Scope.extend(sandboxes.open(spec), own)))
            return yield* Effect.onInterrupt(restore(Fiber.join(opening)), () => Fiber.interrupt(opening))
          })
        )
      }
    }
  })

/** Milliseconds that a run waits at its end for what it began to clear away at its start. */
const sweepLimit = 20_000

const told = (removed: Cleaned) =>
  removed.length === 0 ? Effect.void : Effect.logInfo(`removed what dead runs left: ${removed.join(", ")}`)

/** Clears away what dead runs left while this one works. A run that is over sooner does not break that off. */
export const sweep = (clean: Effect.Effect<Cleaned, unknown>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(Effect.forkDaemon(Effect.ignore(Effect.tap(clean, told))), (cleaning) =>
    Effect.addFinalizer(() =>
      Effect.zipRight(Proc.atMost(Fiber.await(cleaning), sweepLimit), Fiber.interruptFork(cleaning))
    )
  )
