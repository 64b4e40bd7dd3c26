/**
 * A note on this machine that a run has sandboxes of some engine. It goes with the run; when the run is killed it stays, and tells
 * the next one to look there, which would otherwise have no reason to.
 */
import { readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Either, type Scope } from "effect"
import * as Owner from "./Owner.ts"
import type { Cleaned } from "./Sandbox.ts"

const prefix = "batch-runner."

const pathOf = (name: string) => join(tmpdir(), name)

const remove = (name: string) => Effect.sync(() => void Either.try(() => rmSync(pathOf(name), { force: true })))

/** Leaves a note of `backend` while the scope is open. Where it cannot be written, `batch-runner clean` is left to find what it would tell. */
export const leave = (backend: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => {
        const name = `${prefix}${backend}.${Owner.here()}`
        Either.try(() => writeFileSync(pathOf(name), "", { mode: 0o600 }))
        return name
      }),
      remove
    )
  )

/** Cleans where dead runs had sandboxes of `backend`, if there were any; their notes go when that worked. */
export const follow = <E>(backend: string, clean: Effect.Effect<Cleaned, E>): Effect.Effect<Cleaned, E> =>
  Effect.suspend(() => {
    const names = Either.getOrElse(
      Either.try(() => readdirSync(tmpdir())),
      () => []
    )
    const start = `${prefix}${backend}.`
    const dead = names.filter((name) => name.startsWith(start) && Owner.isDead(name.slice(start.length)))
    if (dead.length === 0) return Effect.succeed([])
    return Effect.zipLeft(clean, Effect.forEach(dead, remove, { discard: true }))
  })
