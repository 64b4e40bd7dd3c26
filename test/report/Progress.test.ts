/** How far a run is, as counts and as one line, redrawn on a terminal and said now and then elsewhere. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as Progress from "../../src/report/Progress.ts"
import * as Screen from "../../src/report/Screen.ts"
import * as Rows from "../support/Rows.ts"

const [kept, discarded, failed] = [Rows.kept, Rows.discarded, Rows.failed].map((make) => make({ prompt: "x" }).outcome)

const counts: Progress.Counts = {
  ...Progress.none,
  total: 40,
  earlier: 60,
  kept: 8,
  discarded: 1,
  failed: 1,
  inFlight: 4
}

/** A stream that remembers what was written to it. */
const paper = (isTTY: boolean, columns = 80) => {
  const written: Array<string> = []
  return { isTTY, columns, written, write: (text: string) => written.push(text) }
}

describe("Counts", () => {
  it("go up with what a session came to, and down with every end.", () => {
    const ended = [kept, discarded, failed, undefined].reduce(Progress.after, { ...Progress.none, inFlight: 5 })
    expect(ended).toEqual({ ...Progress.none, inFlight: 1, kept: 1, discarded: 1, failed: 1 })
  })
})

describe("The line of progress", () => {
  it("says what is done, how fast it goes and how long it takes.", () => {
    expect(Progress.line(counts, 120_000)).toBe(
      "done 69/100  kept 8  discarded 1  failed 1  in flight 4  5.0/min  6m00s left"
    )
    expect(Progress.line(counts, 0, { tokens: 12_345, costUsd: 1.234, endpoint: "8 calls at once" })).toBe(
      "done 69/100  kept 8  discarded 1  failed 1  in flight 4  0.0/min  ? left  12.3k tokens  $1.23  8 calls at once"
    )
    expect(Progress.line({ ...counts, kept: 38, inFlight: 0 }, 30_000)).toMatch(/ 80\/min {2}30s$/)
  })
  it.each([
    [0, "0.0s"],
    [9.46, "9.5s"],
    [59.4, "59s"],
    [60, "1m00s"],
    [200, "3m20s"],
    [3599.6, "1h00m"],
    [7500, "2h05m"]
  ])("says %d seconds as %s.", (seconds, shown) => {
    expect(Progress.duration(seconds)).toBe(shown)
  })
})

const told = (stream: ReturnType<typeof paper>, seconds: number) =>
  Effect.gen(function* () {
    const progress = yield* Progress.Progress
    yield* progress.begin(3, 0)
    yield* progress.started
    yield* TestClock.adjust("10 seconds")
    yield* progress.ended(kept)
    yield* TestClock.adjust(`${seconds} seconds`)
    return stream.written.length
  }).pipe(Effect.provide(Progress.live(Effect.succeed(Progress.quiet)).pipe(Layer.provide(Screen.layer(stream)))))

describe("Progress", () => {
  it.effect("into a pipe is a plain line every ten seconds, when something changed.", () =>
    Effect.gen(function* () {
      const stream = paper(false)
      yield* told(stream, 120)
      expect(stream.written).toEqual([
        "done 0/3  kept 0  discarded 0  failed 0  in flight 1  0.0/min  ? left\n",
        expect.stringMatching(/^done 1\/3 {2}kept 1 .*left\n$/)
      ])
    })
  )
  it.effect("on a terminal is one live line, cut to its width and gone at the end.", () =>
    Effect.gen(function* () {
      const stream = paper(true, 30)
      yield* told(stream, 5)
      expect(stream.written.length).toBeGreaterThan(50)
      expect(stream.written.every((text) => text === "" || text.replace("\r\u001b[2K", "").length <= 29)).toBe(true)
      expect(stream.written.slice(2, -1).every((text) => text.startsWith("\r\u001b[2K"))).toBe(true)
      expect(stream.written.at(-1)).toBe("\r\u001b[2K")
    })
  )
})

describe("The screen", () => {
  const log = (stream: ReturnType<typeof paper>, verbose: boolean) =>
    Effect.gen(function* () {
      const screen = yield* Screen.Screen
      yield* screen.status("half way")
      yield* Effect.logInfo("hello").pipe(Effect.annotateLogs("at", "B2:P17"))
      yield* Effect.logWarning("careful")
      yield* Effect.logDebug("call ls")
    }).pipe(Effect.provide(Layer.provideMerge(Screen.logger(verbose), Screen.layer(stream))))

  const quiet = ["half way\n", "[B2:P17] hello\n", "warning: careful\n"]
  it.effect("shows log lines plain, with the place of the session.", () =>
    Effect.gen(function* () {
      const stream = paper(false)
      yield* log(stream, false)
      expect(stream.written).toEqual(quiet)
    })
  )
  it.effect("shows calls where they are asked for.", () =>
    Effect.gen(function* () {
      const stream = paper(false)
      yield* log(stream, true)
      expect(stream.written).toEqual([...quiet, "call ls\n"])
    })
  )
  it.effect("keeps the live line below the log.", () =>
    Effect.gen(function* () {
      const stream = paper(true)
      yield* log(stream, false)
      expect(stream.written.slice(0, 2)).toEqual(["half way", "\r\u001b[2K[B2:P17] hello\nhalf way"])
    })
  )
})
