/** Reads pages by itself: fetched from here, and read in a thread beside the program. */
import { Effect, type Scope } from "effect"
import * as Fetch from "../net/Fetch.ts"
import type { Guard } from "../net/Guard.ts"
import { ToolFailure } from "../Tool.ts"
import type { ExtractBackend } from "./Extract.ts"
import * as PageReader from "./PageReader.ts"

const limits: Fetch.Limits = {
  maxBytes: 10_000_000,
  timeout: 30,
  accept: "text/html,application/xhtml+xml,text/markdown,text/plain,application/pdf,application/json;q=0.9,*/*;q=0.8"
}

export const make = (guard: Guard): Effect.Effect<ExtractBackend, never, Scope.Scope> =>
  Effect.gen(function* () {
    const fetcher = yield* Fetch.make(guard)
    const reader = yield* PageReader.make()
    return {
      name: "builtin",
      read: Effect.fn("Builtin.read")(
        function* (url: URL) {
          const { contentType, charset, bytes, cut, url: found } = yield* fetcher.get(url.href, limits)
          return yield* reader.read({ url: found.href, contentType, charset, bytes, cut })
        },
        Effect.mapError(({ message }) => new ToolFailure({ error: message }))
      )
    }
  })
