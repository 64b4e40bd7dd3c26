/** An endpoint and its callers in time that is only counted: what a window makes of them. */
import type { Call, Window } from "../../../src/model/throttle/Window.ts"

export interface World {
  readonly workers: number
  readonly seconds: number
  /** Calls that the endpoint has in work at most, by the second. */
  readonly capacity: (second: number) => number
  /** The part of the calls that it refuses whatever it has in work. */
  readonly refuses?: number
  /** Milliseconds that each answer and each refusal is on its way; a call comes in at once. */
  readonly transit?: number
  readonly seed?: number
}

/** An answer or a refusal as it came back. */
export interface End {
  /** Seconds since the beginning. */
  readonly at: number
  readonly refused: boolean
  /** The limit after it. */
  readonly limit: number
}

/** Chance that is the same in every run. */
export const dice = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let hash = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  hash = (hash + Math.imul(hash ^ (hash >>> 7), 61 | hash)) ^ hash
  return ((hash ^ (hash >>> 14)) >>> 0) / 2 ** 32
}

interface Happening {
  readonly at: number
  readonly run: () => void
}

/** Milliseconds that an answer takes, at least and at most, and that a worker waits after a refusal, doubled with each. */
const pace = { answer: [500, 1500], retry: 200, longest: 5000 } as const

/** Lets the workers call as the window allows until the time is over. */
export const live = (window: Window, world: World): ReadonlyArray<End> => {
  const { workers, seconds, capacity, refuses = 0, transit = 0 } = world
  const chance = dice(world.seed ?? 1)
  const ends: Array<End> = []
  const agenda: Array<Happening> = []
  const queue: Array<number> = []
  let now = 0
  let working = 0
  const after = (wait: number, run: () => void) => {
    const at = now + wait
    let place = agenda.length
    while (place > 0 && (agenda[place - 1]?.at ?? 0) < at) place--
    agenda.splice(place, 0, { at, run })
  }
  const between = ([least, most]: readonly [number, number]) => least + (most - least) * chance()

  const start = () => {
    while (window.inFlight < window.limit && queue.length > 0) begin(window.begin(), queue.shift() ?? 0)
  }
  const end = (refused: boolean) => ends.push({ at: now / 1000, refused, limit: window.limit })
  const begin = (call: Call, tries: number) => {
    if (working >= capacity(now / 1000) || chance() < refuses) {
      return after(transit, () => {
        window.refused(call)
        end(true)
        after(between([0.5, 1]) * Math.min(pace.longest, pace.retry * 2 ** tries), () => {
          queue.push(tries + 1)
          start()
        })
        start()
      })
    }
    working++
    after(between(pace.answer), () => {
      working--
      after(transit, () => {
        window.answered(call, queue.length > 0)
        end(false)
        queue.push(0)
        start()
      })
    })
  }
  for (let worker = 0; worker < workers; worker++) queue.push(0)
  start()
  for (let next = agenda.pop(); next !== undefined && next.at <= seconds * 1000; next = agenda.pop()) {
    now = next.at
    next.run()
  }
  return ends
}

/** The ends from one second to another: the part that was refused, answers a second, and the limits. */
export const between = (ends: ReadonlyArray<End>, from: number, to: number) => {
  const some = ends.filter(({ at }) => at >= from && at < to)
  const refused = some.filter((end) => end.refused).length
  const limits = some.map(({ limit }) => limit)
  return {
    refused: refused / some.length,
    rate: (some.length - refused) / (to - from),
    least: Math.min(...limits),
    most: Math.max(...limits),
    mean: limits.reduce((sum, limit) => sum + limit, 0) / limits.length
  }
}
