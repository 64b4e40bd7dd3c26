/** Happenings as lines of a file, a pipe or a terminal: in order, in groups, and never at the cost of the run. */
import { Effect, FiberRef, HashMap } from "effect"
import type { Event, EventsService } from "./Events.ts"
import * as Target from "./Target.ts"

/** Bytes that wait to be written at most; what comes then is dropped. */
const most = 4 * 1024 * 1024
/** Milliseconds between two groups, so that what happens together shares one trip. */
const pace = 20
/** Milliseconds before a target that takes nothing is tried again. */
const pause = 25
/** Milliseconds that a run waits at its end for a target that takes nothing. */
const patience = 2000

const separators = /[\u0085\u2028\u2029]/g
/** As `JSON.stringify` writes half of a pair; a text that only looks so is no worse for being written the slower way. */
const loneSurrogate = /\\ud[89a-f]/i

const wellFormed = (_: string, value: unknown): unknown => (typeof value === "string" ? value.toWellFormed() : value)

/** One line with its end: well-formed Unicode, and no character that any reader takes for a line end. */
export const lineOf = (event: Event, now: number): string => {
  const told = { at: new Date(now).toISOString(), ...event }
  const json = JSON.stringify(told)
  const line = loneSurrogate.test(json) ? JSON.stringify(told, wellFormed) : json
  return `${line.replace(separators, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)}\n`
}

/** What waits to be written, and what did not find room. */
class Backlog {
  private lines: Array<string> = []
  private group = Buffer.alloc(0)
  private at = 0
  private inGroup = 0
  /** Length of all lines not yet written, and of those in the group. */
  private held = 0
  private grouped = 0
  dropped = 0

  /** False when there is no room. */
  add(line: string): boolean {
    if (this.held + line.length > most) {
      this.dropped++
      return false
    }
    this.held += line.length
    this.lines.push(line)
    return true
  }

  /** The bytes to write next; none when nothing waits. */
  get next(): Buffer {
    if (this.at === this.group.length && this.lines.length > 0) {
      this.group = Buffer.from(this.lines.join(""))
      this.inGroup = this.lines.length
      this.grouped = this.held
      this.at = 0
      this.lines = []
    }
    return this.group.subarray(this.at)
  }

  written(bytes: number): void {
    this.at += bytes
    if (this.at === this.group.length) this.over()
  }

  /** A reader went away in the middle of a line: the next one gets it whole. */
  again(): void {
    this.at = this.at === 0 ? 0 : this.group.lastIndexOf(10, this.at - 1) + 1
  }

  /** What cannot be written makes room for what comes. */
  drop(): void {
    const whole = this.group.subarray(0, this.at).filter((byte) => byte === 10).length
    this.dropped += this.inGroup - whole
    this.over()
  }

  dropAll(): void {
    this.drop()
    this.dropped += this.lines.length
    this.lines = []
    this.held = 0
  }

  private over(): void {
    this.group = Buffer.alloc(0)
    this.at = 0
    this.inGroup = 0
    this.held -= this.grouped
    this.grouped = 0
  }
}

/** Log lines of the file itself belong to no prompt. */
const apart = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.locally(effect, FiberRef.currentLogAnnotations, HashMap.empty())

/** Writes to `path` what happens, until the scope closes. A path that cannot be opened is an error. */
export const open = Effect.fn("EventFile.open")(function* (path: string) {
  const target = yield* Target.open(path)
  const backlog = new Backlog()
  let warned = false
  const warn = (why: string) =>
    Effect.suspend(() => {
      if (warned) return Effect.void
      warned = true
      return apart(Effect.logWarning(`--events: ${path} ${why}; the run goes on (said once)`))
    })

  /** One write; false when the target takes nothing just now. Never cut short: nothing would tell how far it came. */
  const step = Effect.uninterruptible(
    Effect.flatMap(
      Effect.suspend(() => target.write(backlog.next)),
      (result) => {
        switch (result._tag) {
          case "Wrote":
            backlog.written(result.bytes)
            return Effect.succeed(true)
          case "Moved":
            return Effect.as(warn("was moved or removed, and is begun anew"), true)
          case "Busy":
            return Effect.succeed(false)
          case "Readerless":
            backlog.again()
            return Effect.succeed(false)
          case "Failed":
            backlog.drop()
            return Effect.as(warn(`cannot be written (${result.why}), what happens meanwhile is not in it`), true)
        }
      }
    )
  )
  const drain = Effect.gen(function* () {
    while (backlog.next.length > 0) if (!(yield* step)) yield* Effect.sleep(pause)
  })

  const wake = yield* Effect.makeSemaphore(0)
  let asleep = true
  const group = Effect.gen(function* () {
    yield* wake.take(1)
    yield* Effect.sleep(pace)
    asleep = true
    yield* drain
  })
  // Closed last, so that it outlives what still has to be written.
  yield* Effect.addFinalizer(() => target.close)
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Effect.timeoutOption(Effect.interruptible(drain), patience)
      backlog.dropAll()
      if (backlog.dropped > 0) {
        yield* warn("was not read as fast as things happened")
        yield* Effect.logInfo(`--events: ${path} lacks ${backlog.dropped} lines`)
      }
    }).pipe(Effect.disconnect, Effect.timeoutOption(patience * 2))
  )
  yield* Effect.forkScoped(Effect.interruptible(Effect.forever(group)))

  const service: EventsService = {
    on: true,
    emit: (event) =>
      Effect.clockWith((clock) => {
        const room = backlog.add(lineOf(event, clock.unsafeCurrentTimeMillis()))
        if (!room) return warn("is not read as fast as things happen, and lines are dropped")
        if (!asleep) return Effect.void
        asleep = false
        return wake.release(1)
      })
  }
  return service
})
