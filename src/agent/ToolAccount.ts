/** What a session's tools know of it: whose it is, how long their resources live, and its account of what they spend. */
import type { Scope } from "effect"
import type { ToolSessionService, Whose } from "../tools/ToolSession.ts"
import { affords, type Limits } from "./Allowance.ts"
import type { Transcript } from "./Transcript.ts"

/** Resources of the tools end with `scope`, the later ones first. */
export const make = (whose: Whose, limits: Limits, transcript: Transcript, scope: Scope.Scope): ToolSessionService => ({
  whose,
  scope,
  spent: (usage) => transcript.spent(usage),
  affords: (questions, beside) => affords(limits, transcript, questions, beside)
})
