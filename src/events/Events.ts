/** What happens in a run, told as it happens to whoever wants to know; nobody by default. */
import { Clock, Context, Effect } from "effect"

/** One happening. Names and figures only: nothing of what prompts, answers and tools say. Times are milliseconds. */
export type Event =
  | { readonly event: "run_started"; readonly run_name: string; readonly prompts: number; readonly to_do: number }
  | (Whose & { readonly event: "prompt_started"; readonly batch_num: number; readonly attempt: number })
  | (Whose & {
      readonly event: "turn"
      /** From 0. */
      readonly turn: number
      readonly finish_reason: string
      readonly tool_calls: number
      readonly prompt_tokens: number
      readonly completion_tokens: number
      readonly cost_usd: number
      readonly took: number
    })
  /** A question that a tool asked a model; counted in no turn. */
  | (Whose & {
      readonly event: "aside"
      readonly tool: string
      /** Empty for the run's own. */
      readonly model: string
      readonly prompt_tokens: number
      readonly completion_tokens: number
      readonly cost_usd: number
      readonly took: number
    })
  | (Whose & { readonly event: "tool"; readonly tool: string; readonly ok: boolean; readonly took: number })
  | (Whose & {
      readonly event: "retry"
      /** Of the failure, such as `rate_limited`. */
      readonly kind: string
      /** The try that comes next, from 2. */
      readonly next_try: number
      readonly wait: number
    })
  /** Calls in flight at most, and what changed that: `refused` or `answered`. */
  | { readonly event: "throttle"; readonly before: number; readonly limit: number; readonly why: string }
  /** No call is begun for so long: `refused`, the endpoint asked all to wait; `quota`, its limit is used up. */
  | { readonly event: "pause"; readonly wait: number; readonly why: string }
  /** `why`: the kind of the failure that showed it. */
  | { readonly event: "endpoint_down"; readonly why: string }
  | { readonly event: "endpoint_up"; readonly down: number }
  | { readonly event: "budget_reached" }
  | (Whose & {
      readonly event: "prompt_done"
      readonly batch_num: number
      readonly outcome: "kept" | "discarded" | "failed" | "released"
      /** Of a failure, else empty. */
      readonly kind: string
      readonly api_calls: number
      readonly tokens: number
      readonly cost_usd: number
      readonly took: number
    })
  | {
      readonly event: "run_done"
      readonly done: number
      readonly to_do: number
      /** The kind of what it could not go on for, such as `unauthorized` or `budget_reached`; else empty. */
      readonly halted: string
      readonly took: number
    }

interface Whose {
  readonly prompt_index: number
  readonly sample: number
}

export interface EventsService {
  /** Whether anybody listens: what costs something to work out need not be. */
  readonly on: boolean
  readonly emit: (event: Event) => Effect.Effect<void>
}

/** Nobody listens. */
export const silent: EventsService = { on: false, emit: () => Effect.void }

/** The listener of a run. */
export class Events extends Context.Reference<Events>()("batch-runner/Events", {
  defaultValue: (): EventsService => silent
}) {}

/** All of them hear everything, in this order. */
export const together = (listeners: ReadonlyArray<EventsService>): EventsService => {
  const [only, ...more] = listeners.filter(({ on }) => on)
  if (only === undefined) return silent
  if (more.length === 0) return only
  return { on: true, emit: (event) => Effect.forEach([only, ...more], ({ emit }) => emit(event), { discard: true }) }
}

/** Tells the listener of this fiber. */
export const emit = (event: Event): Effect.Effect<void> => Effect.flatMap(Events, (events) => events.emit(event))

/** `effect`, and `tell` with the milliseconds that it took, where anybody listens. */
export const timed = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  tell: (value: A, took: number) => Event
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Events, (events) =>
    events.on
      ? Effect.flatMap(Clock.currentTimeMillis, (before) =>
          Effect.tap(effect, (value) =>
            Effect.flatMap(Clock.currentTimeMillis, (now) => events.emit(tell(value, now - before)))
          )
        )
      : effect
  )
