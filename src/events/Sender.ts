/** Sends what a collector is to have: in the background, a request at a time, and for a bounded time at the end. */
import { Deferred, Duration, Effect, Either, Fiber } from "effect"
import type { Receiver } from "./Collector.ts"

export interface Source {
  readonly receiver: Receiver
  /** The body of the next request, of what was not in one before; undefined when there is nothing to say. */
  readonly next: Effect.Effect<string | undefined>
  /** Things that wait to be said. */
  readonly rest: () => number
}

/** Things that one request carries; when as many wait, it is sent at once. */
export const group = 500

/** Tries of a request, and the wait after the first; it doubles. */
const tries = 3
const wait = Duration.seconds(1)
/** The longest wait that a collector is granted. */
const longestWait = Duration.seconds(30)
/** How often it is looked whether a request is full. */
const look = Duration.millis(200)
/** How long a run waits at its end for all that is to be sent. */
const patience = Duration.seconds(4)
/** How long one request may take then. */
const lastLimit = Duration.seconds(2)

interface Refusal {
  readonly why: string
  /** Whether the same request may be taken later, and when the collector asks for it. */
  readonly passing: boolean
  readonly after: Duration.Duration
}

const passingStatus = new Set([408, 429, 502, 503, 504])

const refusalOf = (response: Response): Refusal => {
  const seconds = Number(response.headers.get("retry-after") ?? 0)
  return {
    why: `HTTP ${response.status}`,
    passing: passingStatus.has(response.status),
    after: Duration.seconds(Number.isFinite(seconds) ? Math.max(0, seconds) : 0)
  }
}

const lost = (cause: unknown): Refusal => {
  if (cause instanceof Error && cause.name === "TimeoutError") {
    return { why: "no answer in time", passing: true, after: Duration.zero }
  }
  const within = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const code = within instanceof Error ? ("code" in within ? String(within.code) : within.message) : String(within)
  return { why: code.slice(0, 100), passing: true, after: Duration.zero }
}

/** One request. Its limit is its own signal: an interrupt would have to wait for it as well. */
const post = ({ url, headers }: Receiver, body: string, limit: Duration.Duration) =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(Duration.toMillis(limit))
      })
      await response.body?.cancel()
      return response
    },
    catch: lost
  }).pipe(Effect.flatMap((response) => (response.ok ? Effect.void : Effect.fail(refusalOf(response)))))

/** Sends from these sources as long as the scope is open, and what is left of them when it closes. `refused` hears each request that was given up. */
export const run = Effect.fn("Sender.run")(function* (
  sources: ReadonlyArray<Source>,
  refused: (receiver: Receiver, why: string) => Effect.Effect<void>
) {
  const ending = yield* Deferred.make<void>()
  const isEnding = Deferred.isDone(ending)

  const deliver = (receiver: Receiver, body: string, made = 1): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      const limit = (yield* isEnding) ? Duration.min(lastLimit, receiver.limit) : receiver.limit
      const sent = yield* Effect.either(post(receiver, body, limit))
      if (Either.isRight(sent)) return true
      const { why, passing, after } = sent.left
      if (!passing || made >= tries || (yield* isEnding)) return yield* Effect.as(refused(receiver, why), false)
      const pause = Duration.min(longestWait, Duration.max(after, Duration.times(wait, 2 ** (made - 1))))
      yield* Effect.raceFirst(Effect.sleep(pause), Deferred.await(ending))
      return yield* deliver(receiver, body, made + 1)
    })

  /** What there is; a collector that does not take one request is not given the next at once. */
  const flush = ({ receiver, next, rest }: Source) =>
    Effect.gen(function* () {
      let more = true
      while (more) {
        const body = yield* next
        more = body !== undefined && (yield* deliver(receiver, body)) && rest() >= ((yield* isEnding) ? 1 : group)
      }
    })

  /** Until the run ends, then once more. */
  const work = (source: Source) =>
    Effect.gen(function* () {
      const { rest, receiver } = source
      let slept = 0
      while (!(yield* isEnding)) {
        yield* Effect.raceFirst(Effect.sleep(Duration.min(look, receiver.every)), Deferred.await(ending))
        slept += Duration.toMillis(look)
        if ((slept < Duration.toMillis(receiver.every) && rest() < group) || (yield* isEnding)) continue
        slept = 0
        yield* flush(source)
      }
      yield* flush(source)
    })
  const fibers = yield* Effect.forEach(sources, (source) => Effect.forkDaemon(Effect.interruptible(work(source))))
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Deferred.succeed(ending, undefined)
      yield* Effect.timeoutOption(Effect.interruptible(Fiber.awaitAll(fibers)), patience)
      yield* Effect.forEach(fibers, Fiber.interruptFork, { discard: true })
    })
  )
})
