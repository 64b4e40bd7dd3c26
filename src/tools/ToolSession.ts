/** What the tools of one session share: resources that live as long as it does, and the account of what they spend. */
import { Context, Effect, ExecutionStrategy, Exit, Layer, Option, Scope, SynchronizedRef } from "effect"
import type { Ask, Usage } from "../model/Model.ts"

/** Whose session it is: what an offline model answers by, and what a log line is marked with. */
export type Whose = Pick<Ask, "prompt" | "place" | "sample" | "occurrence">

export interface ToolSessionService {
  readonly whose: Whose
  /** Ends with the session, before its sandbox does. */
  readonly scope: Scope.Scope
  /** Counts what a tool spent as the session's own. */
  readonly spent: (usage: Usage) => void
  /** Whether the budget of the prompt allows so many more questions to a model, and to spend so much beside them. */
  readonly affords: (questions: number, beside?: Pick<Usage, "total" | "cost_usd">) => boolean
}

/** One prompt's session, as its tools see it. */
export class ToolSession extends Context.Tag("batch-runner/ToolSession")<ToolSession, ToolSessionService>() {}

/** A session that belongs to no prompt, for tools that are used by themselves. */
export const layer: Layer.Layer<ToolSession> = Layer.scoped(
  ToolSession,
  Effect.map(Effect.scope, (scope) => ({
    whose: { prompt: "", place: 0, sample: 0, occurrence: 0 },
    scope,
    spent: () => {},
    affords: () => true
  }))
)

/** A resource of a session. */
export interface PerSession<A, E, R> {
  /** Makes it with the session's first call, and gives the same from then on; one that could not be made is tried again. */
  readonly get: Effect.Effect<A, E, R | ToolSession>
  /** Releases it, if there is one: the next `get` makes another. */
  readonly drop: Effect.Effect<void, never, ToolSession>
}

interface Held<A> {
  readonly value: A
  readonly scope: Scope.CloseableScope
}

/** A resource that each session has of its own, made when it first asks and released with the session at the latest. */
export const perSession = <A, E, R>(make: Effect.Effect<A, E, R>): PerSession<A, E, Exclude<R, Scope.Scope>> => {
  type Cell = SynchronizedRef.SynchronizedRef<Option.Option<Held<A>>>
  const cells = new WeakMap<ToolSessionService, Cell>()
  const cellOf = Effect.map(ToolSession, (session) => {
    const cell = cells.get(session) ?? SynchronizedRef.unsafeMake<Option.Option<Held<A>>>(Option.none())
    cells.set(session, cell)
    return { cell, session }
  })
  const made = Effect.fnUntraced(function* (session: ToolSessionService) {
    const scope = yield* Scope.fork(session.scope, ExecutionStrategy.sequential)
    const value = yield* Effect.onError(Scope.extend(make, scope), (cause) => Scope.close(scope, Exit.failCause(cause)))
    const held: Held<A> = { value, scope }
    return held
  })
  return {
    get: Effect.flatMap(cellOf, ({ cell, session }) =>
      SynchronizedRef.modifyEffect(cell, (now) =>
        Option.isSome(now)
          ? Effect.succeed([now.value.value, now] as const)
          : Effect.map(made(session), (held) => [held.value, Option.some(held)] as const)
      )
    ),
    drop: Effect.flatMap(cellOf, ({ cell }) =>
      SynchronizedRef.updateEffect(cell, (now) =>
        Option.isSome(now) ? Effect.as(Scope.close(now.value.scope, Exit.void), Option.none()) : Effect.succeed(now)
      )
    )
  }
}
