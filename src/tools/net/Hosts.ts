/** Politeness: how many calls of the run one host gets at once. */
import { Effect } from "effect"

/** Calls to one host at once. */
export const perHost = 3

/** Holds calls to a host back while as many as it gets are under way. */
export type Politely = <A, E, R>(host: string, call: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

interface Places {
  readonly semaphore: Effect.Semaphore
  users: number
}

/** A run may ask many hosts: one is remembered only while it is asked. */
export const make = (): Politely => {
  const hosts = new Map<string, Places>()
  const enter = (host: string): Places => {
    const places = hosts.get(host) ?? { semaphore: Effect.unsafeMakeSemaphore(perHost), users: 0 }
    hosts.set(host, places)
    places.users++
    return places
  }
  const leave = (host: string, places: Places): void => {
    places.users--
    if (places.users === 0) hosts.delete(host)
  }
  return (host, call) =>
    Effect.acquireUseRelease(
      Effect.sync(() => enter(host)),
      ({ semaphore }) => semaphore.withPermits(1)(call),
      (places) => Effect.sync(() => leave(host, places))
    )
}
