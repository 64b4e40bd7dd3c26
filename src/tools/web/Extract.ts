/** What reads pages: one interface for what is built in and for services, and how much of each page a result holds. Pure but for the choice. */
import { Effect, type Scope } from "effect"
import type * as Api from "../net/Api.ts"
import type * as Guard from "../net/Guard.ts"
import type { Setting } from "../Setting.ts"
import * as Text from "../Text.ts"
import type { ToolFailure } from "../Tool.ts"
import * as Builtin from "./Builtin.ts"
import * as Firecrawl from "./Firecrawl.ts"
import * as Jina from "./Jina.ts"
import type { Page } from "./Reading.ts"

export interface ExtractBackend {
  readonly name: string
  /** Gives the beginning of a page as Markdown. The URL is one that the guard let pass. */
  readonly read: (url: URL) => Effect.Effect<Page, ToolFailure>
}

/** The backend of a run, or what it lacks as a clause. */
export const choose = (
  { extractBackend, variables }: Pick<Setting, "extractBackend" | "variables">,
  guard: Guard.Guard,
  api: Api.Api
): Effect.Effect<ExtractBackend | string, never, Scope.Scope> => {
  switch (extractBackend) {
    case "firecrawl":
      return Effect.succeed(Firecrawl.reader(variables, api))
    case "jina":
      return Effect.succeed(Jina.reader(variables, api))
    case "builtin":
      return Builtin.make(guard)
    default:
      return Effect.succeed(`no extract backend ${extractBackend}`)
  }
}

/** What each may take of `whole`, given what each needs: equal shares, and what small ones leave goes to the large. */
export const shares = (needs: ReadonlyArray<number>, whole: number): ReadonlyArray<number> => {
  const out = needs.map(() => 0)
  let left = whole
  const rising = needs.map((need, place) => ({ need, place })).toSorted((a, b) => a.need - b.need)
  for (const [at, { need, place }] of rising.entries()) {
    const share = Math.min(need, Math.floor(left / (rising.length - at)))
    out[place] = share
    left -= share
  }
  return out
}

/** The beginning of a page that costs at most `budget`, and how much is missing. */
export const cut = ({ text, left }: Page, budget: number): string => {
  const shown = Text.head(text, budget)
  const missing = left + text.length - shown.length
  return missing === 0 ? shown : `${shown}\n\n[… cut here: about ${missing} characters more …]`
}
