/** How a server under fire behaves, and what a test may want of a single call. */
import { type Call, type Fault, faults } from "./FireRecord.ts"

/** What a test wants of one call in the place of the usual. */
export type Reaction =
  /** A good answer that differs in these. */
  | { readonly kind: "answer"; readonly reasoning?: boolean; readonly final?: boolean; readonly nano?: number }
  | {
      readonly kind: "status"
      readonly status: number
      readonly error: object
      readonly headers?: Readonly<Record<string, string>>
    }
  /** HTTP 200 with an error that is charged. */
  | { readonly kind: "paidError" }
  | { readonly kind: "fault"; readonly fault: Fault }
  | { readonly kind: "hang" }
  /** One byte every so many milliseconds, for ever. */
  | { readonly kind: "trickle"; readonly every: number }

export interface Conduct {
  readonly seed: number
  /** Answers of a session, the last without a tool call. */
  readonly turns: number | ((prompt: string) => number)
  /** Milliseconds of work for a call, on average; single ones differ by up to `spread` of it. */
  readonly latency: number
  readonly spread: number
  /** Calls in work at once; what comes beyond is sent away at once. */
  readonly capacity: number
  /** Seconds of the Retry-After of those sent away; none when undefined. */
  readonly busyWait: number | undefined
  /** Calls taken a window. */
  readonly limit: { readonly calls: number; readonly millis: number } | undefined
  /** The share of calls taken that meet a fault, and which faults. */
  readonly faulty: number
  readonly faults: ReadonlyArray<Fault>
  readonly tool: "todo" | "terminal"
  readonly reasoning: boolean
  /** Nano-dollars of a call, and whether answers tell. */
  readonly nano: number
  readonly tellsCost: boolean
  readonly tokens: { readonly prompt: number; readonly completion: number }
  readonly react: (call: Call) => Reaction | undefined
}

export const defaults: Conduct = {
  seed: 1,
  turns: 3,
  latency: 100,
  spread: 0.2,
  capacity: Number.POSITIVE_INFINITY,
  busyWait: undefined,
  limit: undefined,
  faulty: 0,
  faults,
  tool: "todo",
  reasoning: true,
  // No binary fraction, and no whole cent either.
  nano: 12_345_670,
  tellsCost: true,
  tokens: { prompt: 100, completion: 50 },
  react: () => undefined
}
