/** How far a run is: counts as sessions start and end, told again and again while it works. */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import type { Outcome } from "../trajectory/Outcome.ts"
import { Screen } from "./Screen.ts"

/** Sessions of a run. */
export interface Counts {
  /** To do in this session of work. */
  readonly total: number
  /** Finished by earlier sessions of work. */
  readonly earlier: number
  readonly kept: number
  readonly discarded: number
  readonly failed: number
  readonly inFlight: number
}

export const none: Counts = { total: 0, earlier: 0, kept: 0, discarded: 0, failed: 0, inFlight: 0 }

/** What the line tells beside the counts: this session of work, prompts in flight included. */
export interface Vitals {
  readonly tokens: number
  /** US dollars, 0 where nothing is reported. */
  readonly costUsd: number
  /** How the endpoint is doing, in a few words; empty when it is well. */
  readonly endpoint: string
}

export const quiet: Vitals = { tokens: 0, costUsd: 0, endpoint: "" }

export interface ProgressService {
  readonly begin: (total: number, earlier: number) => Effect.Effect<void>
  readonly started: Effect.Effect<void>
  /** A session ended; `undefined` when it was interrupted. */
  readonly ended: (outcome: Outcome | undefined) => Effect.Effect<void>
  readonly counts: Effect.Effect<Counts>
}

export class Progress extends Context.Tag("batch-runner/Progress")<Progress, ProgressService>() {}

/** The counts after one more session. */
export const after = (counts: Counts, outcome: Outcome | undefined): Counts => {
  const rest = { ...counts, inFlight: counts.inFlight - 1 }
  switch (outcome?._tag) {
    case undefined:
      return rest
    case "Kept":
      return { ...rest, kept: rest.kept + 1 }
    case "Discarded":
      return { ...rest, discarded: rest.discarded + 1 }
    case "Failed":
      return { ...rest, failed: rest.failed + 1 }
  }
}

/** One line: counts, speed, the time left at that speed, and what is spent: a narrow terminal cuts its end. `elapsed` in milliseconds. */
export const line = (counts: Counts, elapsed: number, { tokens, costUsd, endpoint }: Vitals = quiet): string => {
  const { kept, discarded, failed, total, earlier } = counts
  const ended = kept + discarded + failed
  const perMinute = elapsed > 0 ? (ended / elapsed) * 60_000 : 0
  const left = perMinute > 0 ? duration(((total - ended) / perMinute) * 60) : "?"
  return [
    `done ${kept + discarded + earlier}/${total + earlier}`,
    `kept ${kept}`,
    `discarded ${discarded}`,
    `failed ${failed}`,
    `in flight ${counts.inFlight}`,
    `${perMinute.toFixed(perMinute < 10 ? 1 : 0)}/min`,
    ended < total ? `${left} left` : duration(elapsed / 1000),
    ...(tokens > 0 ? [`${short(tokens)} tokens`] : []),
    ...(costUsd > 0 ? [`$${costUsd.toFixed(2)}`] : []),
    ...(endpoint === "" ? [] : [endpoint])
  ].join("  ")
}

/** A large number in three digits: `950`, `12.3k`, `4.56M`. */
const short = (count: number): string => {
  const [size, unit] = count < 1000 ? [1, ""] : count < 1e6 ? [1e3, "k"] : count < 1e9 ? [1e6, "M"] : [1e9, "G"]
  const value = count / size
  return `${unit === "" ? count : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)}${unit}`
}

/** Seconds as people say them: `9.5s`, `3m20s`, `2h05m`. */
export const duration = (seconds: number): string => {
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)}s`
  const whole = Math.round(seconds)
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)]
  return hours > 0 ? `${hours}h${pad(minutes)}m` : `${minutes}m${pad(whole % 60)}s`
}

const pad = (value: number): string => String(value).padStart(2, "0")

const counting = Effect.sync(() => {
  let counts = none
  const service: ProgressService = {
    begin: (total, earlier) =>
      Effect.sync(() => {
        counts = { ...none, total, earlier }
      }),
    started: Effect.sync(() => {
      counts = { ...counts, inFlight: counts.inFlight + 1 }
    }),
    ended: (outcome) =>
      Effect.sync(() => {
        counts = after(counts, outcome)
      }),
    counts: Effect.sync(() => counts)
  }
  return service
})

/** Counts and says nothing. */
export const silent: Layer.Layer<Progress> = Layer.effect(Progress, counting)

/** Counts and tells: a live line on a terminal, a plain line now and then elsewhere. `vitals` is asked each time. */
export const live = (vitals: Effect.Effect<Vitals>): Layer.Layer<Progress, never, Screen> =>
  Layer.scoped(
    Progress,
    Effect.gen(function* () {
      const screen = yield* Screen
      const service = yield* counting
      let start = yield* Clock.currentTimeMillis
      let told = ""
      const tell = Effect.gen(function* () {
        const counts = yield* service.counts
        if (counts.total === 0) return
        const now = yield* vitals
        const text = line(counts, (yield* Clock.currentTimeMillis) - start, now)
        const state = JSON.stringify([counts, now])
        if (screen.live || state !== told) yield* screen.status(text)
        told = state
      })
      yield* Effect.forkScoped(Effect.repeat(tell, Schedule.spaced(screen.live ? "200 millis" : "10 seconds")))
      return {
        ...service,
        begin: (total, earlier) =>
          Effect.zipRight(
            Effect.map(Clock.currentTimeMillis, (now) => {
              start = now
            }),
            service.begin(total, earlier)
          )
      }
    })
  )
