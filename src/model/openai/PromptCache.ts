/** Marks in a request what an endpoint should keep of it for the next one, for models that want to be told. Pure. */
import type { Ask, Request } from "../Model.ts"

type Json = Readonly<Record<string, unknown>>

const ephemeral = { cache_control: { type: "ephemeral" } } as const

/** Whether the requests are marked: for Anthropic's models, which keep nothing of themselves. */
export const applies = ({ model, promptCache }: Request, openRouter: boolean): boolean =>
  promptCache && (/^~?anthropic\//.test(model) || (openRouter && model.startsWith("claude")))

/**
 * The places of the messages after which the endpoint should keep what it has read: the system prompt, the end of the last call's
 * conversation, where it will find it again, and the end of this one. With the tools these are the four that there may be.
 */
export const places = (messages: Ask["messages"]): ReadonlySet<number> => {
  const answered = messages.findLastIndex(({ role }) => role === "answer")
  return new Set([...(messages[0]?.role === "system" ? [0] : []), answered - 1, messages.length - 1])
}

/**
 * The content of a message, as a part that can hold the mark. All messages have this form, so that the bytes of each are the same
 * from call to call, but for the mark. Anthropic refuses empty parts.
 */
export const content = (text: string, marked: boolean): unknown =>
  text === "" ? text : [{ type: "text", text, ...(marked ? ephemeral : {}) }]

/** The tools with the mark on the last. */
export const tools = (definitions: Ask["tools"]): ReadonlyArray<Json> =>
  definitions.map((each, place) => ({ ...each, ...(place === definitions.length - 1 ? ephemeral : {}) }))
