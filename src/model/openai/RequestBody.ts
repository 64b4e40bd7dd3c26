/** The body of a chat-completions request: an ask as the JSON that goes to an endpoint. Pure. */
import * as Aside from "../Aside.ts"
import type { Ask, Message, Request } from "../Model.ts"
import * as PromptCache from "./PromptCache.ts"

type Json = Readonly<Record<string, unknown>>

/** Makes the request body of each ask of a run. */
export const encoder = (request: Request): ((ask: Ask) => Json) => {
  const own = parts(request)
  return (ask) => {
    const { head, tools, messages } =
      ask.aside === undefined ? own : parts(Aside.requestOf(request, ask), fieldsOf(ask.aside))
    return {
      ...head,
      ...(ask.tools.length === 0 ? {} : { tools: tools(ask.tools) }),
      messages: messages(ask.messages)
    }
  }
}

/** What a question that a tool asks says besides. */
const fieldsOf = ({ picture = false, temperature }: NonNullable<Ask["aside"]>): Json => ({
  ...(picture ? { modalities: ["image", "text"] } : {}),
  ...(temperature === undefined ? {} : { temperature })
})

/**
 * Makes the text of each ask's body. The tools of a run are few sets and long, so each set is written once. The messages come last:
 * what a session asks begins with what it asked before. What a tool asks is rare, and written as a whole.
 */
export const textEncoder = (request: Request): ((ask: Ask) => string) => {
  const { head, tools, messages } = parts(request)
  const bare = opening(head)
  const aside = encoder(request)
  const written = new WeakMap<Ask["tools"], string>()
  const withTools = (given: Ask["tools"]): string => {
    const text = written.get(given) ?? opening({ ...head, tools: tools(given) })
    written.set(given, text)
    return text
  }
  return (ask) =>
    ask.aside !== undefined
      ? JSON.stringify(aside(ask))
      : `${ask.tools.length === 0 ? bare : withTools(ask.tools)}${JSON.stringify(messages(ask.messages))}}`
}

/** The text of the body's first fields, up to where the messages stand. */
const opening = (fields: Json): string => `${JSON.stringify(fields).slice(0, -1)},"messages":`

const parts = (request: Request, more: Json = {}) => {
  const openRouter = isOpenRouter(request.baseUrl)
  const kept = PromptCache.applies(request, openRouter)
  const head: Json = {
    model: request.model,
    ...(request.maxTokens === undefined ? {} : { max_tokens: request.maxTokens }),
    ...(request.provider === undefined ? {} : { provider: request.provider }),
    ...(request.reasoning === undefined ? {} : { reasoning: request.reasoning }),
    ...more,
    // Other endpoints may refuse a field they do not know.
    ...(openRouter ? { usage: { include: true } } : {})
  }
  const plain = (text: string): unknown => text
  return {
    head,
    tools: (tools: Ask["tools"]): Ask["tools"] | ReadonlyArray<Json> => (kept ? PromptCache.tools(tools) : tools),
    messages: (messages: Ask["messages"]): ReadonlyArray<Json> => {
      if (!kept) return messages.map((message) => encodeMessage(message, plain))
      const marked = PromptCache.places(messages)
      return messages.map((message, place) =>
        encodeMessage(message, (text) => PromptCache.content(text, marked.has(place)))
      )
    }
  }
}

const isOpenRouter = (baseUrl: string): boolean => {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ""
  return host === "openrouter.ai" || host.endsWith(".openrouter.ai")
}

const encodeMessage = (message: Message, content: (text: string) => unknown): Json => {
  switch (message.role) {
    case "answer":
      return message.answer.echo
    case "user":
      return { role: "user", content: withImages(content(message.content.toWellFormed()), message.images ?? []) }
    case "tool":
      return { role: "tool", tool_call_id: message.callId, content: content(message.content.toWellFormed()) }
    default:
      return { role: message.role, content: content(message.content.toWellFormed()) }
  }
}

/** Content with pictures behind it. Some endpoints refuse empty parts. */
const withImages = (content: unknown, images: ReadonlyArray<string>): unknown => {
  if (images.length === 0) return content
  const text: ReadonlyArray<unknown> = Array.isArray(content)
    ? content
    : content === ""
      ? []
      : [{ type: "text", text: content }]
  return [...text, ...images.map((url) => ({ type: "image_url", image_url: { url } }))]
}
