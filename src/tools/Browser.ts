/** The tools browser_*: a real browser, one context for each session. */
import { Effect, type Scope } from "effect"
import type { Setting } from "./Setting.ts"
import { type Built, lacking } from "./Toolset.ts"

/** Looks once at what there is of it here. */
export const make = (_: Setting): Effect.Effect<Built, never, Scope.Scope> =>
  Effect.succeed(
    lacking(
      "not part of this version yet",
      "browser_navigate",
      "browser_snapshot",
      "browser_click",
      "browser_type",
      "browser_scroll",
      "browser_back",
      "browser_press",
      "browser_get_images",
      "browser_vision",
      "browser_close"
    )
  )
