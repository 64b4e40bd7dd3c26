/** How the endpoint of a run is doing, for those who wait for it and those who watch. */
import { Context, Effect, FiberRef, HashMap, type LogLevel } from "effect"

export interface EndpointService {
  /** Milliseconds in which this run could make no call so far, for an outage or a pause, the present one included. */
  readonly downFor: Effect.Effect<number>
  /** In a few words for the progress line, such as `12 calls at once` or `endpoint down since 10:30:00`; empty when nothing is worth a word. */
  readonly told: Effect.Effect<string>
}

/** One that is always up. */
export const steady: EndpointService = { downFor: Effect.succeed(0), told: Effect.succeed("") }

export class Endpoint extends Context.Reference<Endpoint>()("batch-runner/Endpoint", {
  defaultValue: (): EndpointService => steady
}) {}

/** A line of the log about the endpoint: it is of no prompt, whichever met it. */
export const tell = (level: LogLevel.LogLevel, text: string): Effect.Effect<void> =>
  Effect.locally(Effect.logWithLevel(level, text), FiberRef.currentLogAnnotations, HashMap.empty())

/** A moment as the log tells it: the time of day, UTC. `millis` since the epoch. */
export const timeOfDay = (millis: number): string => `${new Date(millis).toISOString().slice(11, 19)} UTC`
