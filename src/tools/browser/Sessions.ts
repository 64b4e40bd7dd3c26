/** Which session has which window, and how each call of a session gets at its own: one at a time, within a bound. */
import { Duration, Effect, Ref } from "effect"
import { ToolFailure } from "../Tool.ts"
import { perSession, type ToolSession } from "../ToolSession.ts"
import type { Source } from "./Source.ts"
import { Window } from "./Window.ts"

/** Seconds that a call may take, once the session has its browser. */
const callSeconds = 60

export interface Sessions {
  /** Runs a call in the session's window, which it opens first where there is none. */
  readonly enter: <A, E, R>(call: Call<A, E, R>) => Effect.Effect<A, E | ToolFailure, R | ToolSession>
  /** Runs a call in the window of a session that has opened a page. */
  readonly within: <A, E, R>(call: Call<A, E, R>) => Effect.Effect<A, E | ToolFailure, R | ToolSession>
  /** Closes the session's window; tells whether there was one. */
  readonly close: Effect.Effect<boolean, never, ToolSession>
}

type Call<A, E, R> = (window: Window) => Effect.Effect<A, E, R>

interface Entered {
  readonly window: Window
  readonly turn: Effect.Semaphore
}

const noPage = "no page is open: open one with browser_navigate"

/** Windows from a source, at most so many at once: a further session waits for its place. */
export const make = (source: Source, atMost: number): Sessions => {
  const places = Effect.unsafeMakeSemaphore(atMost)
  const place = Effect.uninterruptibleMask((restore) =>
    Effect.zipRight(
      restore(places.take(1)),
      Effect.addFinalizer(() => places.release(1))
    )
  )
  const windows = perSession(
    Effect.gen(function* () {
      yield* place
      const entered: Entered = { window: new Window(yield* source.open), turn: Effect.unsafeMakeSemaphore(1) }
      return entered
    })
  )
  // Looked at before a window is opened: a call that needs a page must not wait for a place to hear that there is none.
  const opened = perSession(Ref.make(false))

  const entered = Effect.gen(function* () {
    const now = yield* windows.get
    if (now.window.opened.alive()) return now
    yield* windows.drop
    const fresh = yield* windows.get
    fresh.window.note("the browser had ended and was started anew: its pages and cookies from before are gone")
    return fresh
  }).pipe(Effect.catchTag("BrowserError", ({ detail }) => new ToolFailure({ error: detail })))

  const bounded = <A, E, R>({ window, turn }: Entered, call: Call<A, E, R>) =>
    turn.withPermits(1)(
      Effect.timeoutFail(call(window), {
        duration: Duration.seconds(callSeconds),
        onTimeout: () => {
          window.stuck = true
          return new ToolFailure({
            error: `the browser was not done within ${callSeconds} seconds; browser_navigate opens a fresh page`
          })
        }
      })
    )

  return {
    enter: (call) =>
      Effect.gen(function* () {
        const now = yield* entered
        yield* Ref.set(yield* opened.get, true)
        return yield* bounded(now, call)
      }),
    within: (call) =>
      Effect.gen(function* () {
        if (!(yield* Ref.get(yield* opened.get))) return yield* new ToolFailure({ error: noPage })
        const now = yield* entered
        const { window } = now
        if (!window.visited || !window.usable) {
          const { notes } = window.told()
          const told = notes ?? (window.visited ? ["the page crashed, hangs or was closed"] : [])
          return yield* new ToolFailure({ error: [...told, noPage].join("; ") })
        }
        return yield* bounded(now, call)
      }),
    close: Effect.gen(function* () {
      const state = yield* opened.get
      yield* windows.drop
      return yield* Ref.getAndSet(state, false)
    })
  }
}
