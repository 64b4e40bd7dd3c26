/** Spans of a run: what is worth one, and none of its costs where nobody takes them. */
import { Cause, Effect, type Exit, FiberRef, Option, type Tracer } from "effect"

/** Names, figures and switches: nothing of what prompts, answers and tools say. */
export type Attributes = Readonly<Record<string, string | number | boolean | ReadonlyArray<string>>>

export interface Options<A, E> {
  readonly attributes: Attributes
  readonly kind?: Tracer.SpanKind
  /** Of no other span, even inside one. */
  readonly root?: boolean
  /** What is known at the end, `error.type` of a failure among it. */
  readonly ended: (exit: Exit.Exit<A, E>) => Attributes
}

/** `effect` as a span of its own. */
export const within = <A, E, R>(
  name: string,
  { attributes, kind = "internal", root = false, ended }: Options<A, E>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((fiber) => {
    if (!fiber.getFiberRef(FiberRef.currentTracerEnabled)) return effect
    const inside = Effect.onExit(effect, (exit) => Effect.annotateCurrentSpan(ended(exit)))
    return Effect.withSpan(inside, name, { attributes, kind, root, captureStackTrace: false })
  })

/** More that is known of the span of this fiber. Looking for one where there is none makes an error, stack and all. */
export const annotate = (attributes: Attributes): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) =>
    fiber.getFiberRef(FiberRef.currentTracerEnabled) ? Effect.annotateCurrentSpan(attributes) : Effect.void
  )

/** The end of what did not succeed: by an error, by a stop from outside, or by a defect of ours. */
export const failure =
  <E>(of: (error: E) => Attributes, stopped: Attributes = {}) =>
  (cause: Cause.Cause<E>): Attributes =>
    Option.match(Cause.failureOption(cause), {
      onSome: of,
      onNone: (): Attributes =>
        Cause.isInterrupted(cause) ? { "error.type": released, ...stopped } : { "error.type": "defect" }
    })

/** The `error.type` of what was stopped from outside. */
export const released = "released"
