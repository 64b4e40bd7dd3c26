/** How the endpoint of a run is doing, for those who wait for it and those who watch. */
import { Context, Effect } from "effect"

export interface EndpointService {
  /** Milliseconds that it has been down in this run so far, the present outage included. */
  readonly downFor: Effect.Effect<number>
  /** In a few words for the progress line, such as `12 calls at once` or `endpoint down since 10:30:00`; empty when nothing is worth a word. */
  readonly told: Effect.Effect<string>
}

/** One that is always up. */
export const steady: EndpointService = { downFor: Effect.succeed(0), told: Effect.succeed("") }

export class Endpoint extends Context.Reference<Endpoint>()("batch-runner/Endpoint", {
  defaultValue: (): EndpointService => steady
}) {}
