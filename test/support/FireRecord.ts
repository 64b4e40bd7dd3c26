/** What a server under fire wrote down: each call with its moments and its end, what it charged, and figures of them. */
import type { Body } from "./ModelServer.ts"

/** How a call ended; `lost`: the client went away, `killed`: the server did, before there was an answer. */
export type Outcome =
  | "answered"
  /** 429, as more are in work than may be. */
  | "busy"
  /** 429, as the limit of this window is used up. */
  | "limited"
  | Fault
  /** Another HTTP status, as the test wanted it. */
  | "refused"
  | "lost"
  | "killed"

/** `wait`: 429 with Retry-After; `error`: HTTP 200 with an error body. A slow call is answered in the end. */
export type Fault = "wait" | "500" | "503" | "reset" | "garbage" | "slow" | "error"

export const faults: ReadonlyArray<Fault> = ["wait", "500", "503", "reset", "garbage", "slow", "error"]

/** A call as it came; moments are milliseconds of `performance.now()`. */
export interface Call {
  /** Its place among all calls, from 0. */
  readonly place: number
  readonly prompt: string
  /** Answers that the conversation already had. */
  readonly turn: number
  /** How often this turn of this prompt was taken into work before; what was sent away at once does not count. */
  readonly earlier: number
  readonly body: Body
  readonly at: number
  /** Whether it was taken into work, rather than sent away at once. */
  readonly taken: boolean
  ended: number | undefined
  outcome: Outcome | undefined
}

/** What one call cost, in whole nano-dollars. */
export interface Charge {
  readonly prompt: string
  readonly turn: number
  readonly nano: number
  readonly tokens: number
}

/** A call that came back sooner than it was told to. */
export interface Broken {
  readonly prompt: string
  readonly turn: number
  /** Milliseconds too early. */
  readonly early: number
}

/** The server's own books. Only what was answered is charged. */
export class Ledger {
  readonly charges: Array<Charge> = []

  get nano(): number {
    return this.charges.reduce((sum, { nano }) => sum + nano, 0)
  }
  get tokens(): number {
    return this.charges.reduce((sum, { tokens }) => sum + tokens, 0)
  }
  /** What a prompt cost, in nano-dollars. */
  of(prompt: string): number {
    return this.charges.reduce((sum, charge) => (charge.prompt === prompt ? sum + charge.nano : sum), 0)
  }
  /** Charges beyond the first for the same turn of the same prompt. */
  get duplicates(): number {
    return this.charges.length - new Set(this.charges.map(({ prompt, turn }) => `${turn} ${prompt}`)).size
  }
}

/** Dollars as a file of the run says them, in whole nano-dollars. */
export const nanoOf = (dollars: unknown): number => (typeof dollars === "number" ? Math.round(dollars * 1e9) : 0)

/** Calls in work on average between two moments. */
export const meanInWork = (calls: ReadonlyArray<Call>, from: number, to: number): number =>
  calls
    .filter(({ taken }) => taken)
    .reduce((sum, { at, ended = to }) => sum + Math.max(0, Math.min(ended, to) - Math.max(at, from)), 0) /
  (to - from)

/** Milliseconds that calls were in work, all together. */
export const workOf = (calls: ReadonlyArray<Call>): number =>
  calls.reduce((sum, { taken, at, ended = at }) => (taken ? sum + ended - at : sum), 0)

export const between = (calls: ReadonlyArray<Call>, from: number, to: number): ReadonlyArray<Call> =>
  calls.filter(({ at }) => at >= from && at < to)

export const ended = (calls: ReadonlyArray<Call>, ...outcomes: ReadonlyArray<Outcome>): ReadonlyArray<Call> =>
  calls.filter(({ outcome }) => outcome !== undefined && outcomes.includes(outcome))
