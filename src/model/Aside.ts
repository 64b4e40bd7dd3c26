/** What a question that a tool asks changes of the request that the calls of a run share. Pure. */
import type { Ask, Request } from "./Model.ts"

/** Whether a model is asked that a tool names, rather than the run's own. */
export const isElsewhere = ({ aside }: Pick<Ask, "aside">): boolean => aside?.model !== undefined

/** The request that an ask goes out with. */
export const requestOf = (request: Request, { aside }: Pick<Ask, "aside">): Request => {
  if (aside === undefined) return request
  const { model = request.model, picture = false } = aside
  const own = model === request.model
  return {
    ...request,
    model,
    // It bounds what any answer costs; but a picture takes more tokens than a text is worth.
    maxTokens: picture ? undefined : request.maxTokens,
    // Both are chosen for the run's own model: other providers serve another one, and it may refuse to be told how to think.
    provider: own ? request.provider : undefined,
    reasoning: own ? request.reasoning : undefined,
    // What is asked once is not worth the price of keeping it.
    promptCache: false
  }
}
