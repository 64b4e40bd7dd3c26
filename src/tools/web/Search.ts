/** What searches the web: one interface, whichever service is behind it, and the choice between those that are configured. */
import type { Effect } from "effect"
import type * as Api from "../net/Api.ts"
import type { Setting } from "../Setting.ts"
import type { ToolFailure } from "../Tool.ts"
import type { Variables } from "../Variables.ts"
import { brave } from "./Brave.ts"
import { exa } from "./Exa.ts"
import { firecrawl } from "./Firecrawl.ts"
import { searxng } from "./Searxng.ts"
import { serper } from "./Serper.ts"
import { tavily } from "./Tavily.ts"

/** One page that was found; what its service does not tell is empty. */
export interface Hit {
  readonly url: string
  readonly title: string
  readonly description: string
}

export interface SearchBackend {
  readonly name: string
  /** The best pages first, perhaps more than `limit`. */
  readonly search: (query: string, limit: number) => Effect.Effect<ReadonlyArray<Hit>, ToolFailure>
}

/** A service, before it is known whether it is configured. */
export interface SearchService {
  readonly name: string
  /** The variables of which it needs one. */
  readonly needs: ReadonlyArray<string>
  /** Undefined when none of them is set. */
  readonly open: (variables: Variables, api: Api.Api) => SearchBackend | undefined
}

/** All of them, in the order in which the first that is configured is taken. */
export const services: ReadonlyArray<SearchService> = [searxng, brave, tavily, exa, serper, firecrawl]

const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`

/** The backend of a run, or what it lacks as a clause. */
export const choose = (
  { searchBackend, variables }: Pick<Setting, "searchBackend" | "variables">,
  api: Api.Api
): SearchBackend | string => {
  const candidates = searchBackend === null ? services : services.filter(({ name }) => name === searchBackend)
  for (const service of candidates) {
    const backend = service.open(variables, api)
    if (backend !== undefined) return backend
  }
  return candidates.length === 0
    ? `no search backend ${searchBackend}`
    : `no ${listed(candidates.flatMap(({ needs }) => needs))}`
}
