/** The tool vision_analyze: a question about an image, answered by a model that sees. */
import { Effect, type Scope } from "effect"
import type { Setting } from "./Setting.ts"
import { type Built, lacking } from "./Toolset.ts"

/** Looks once at what there is of it here. */
export const make = (_: Setting): Effect.Effect<Built, never, Scope.Scope> =>
  Effect.succeed(lacking("not part of this version yet", "vision_analyze"))
