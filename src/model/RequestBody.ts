/** The body of a chat-completions request: an ask as the JSON that goes to an endpoint. Pure. */
import type { Ask, Message, Request } from "./Model.ts"

type Json = Readonly<Record<string, unknown>>

/** Makes the request body of each ask of a run. */
export const encoder = (request: Request): ((ask: Ask) => Json) => {
  const rest = {
    ...(request.maxTokens === undefined ? {} : { max_tokens: request.maxTokens }),
    ...(request.provider === undefined ? {} : { provider: request.provider }),
    ...(request.reasoning === undefined ? {} : { reasoning: request.reasoning }),
    // Other endpoints may refuse a field they do not know.
    ...(isOpenRouter(request.baseUrl) ? { usage: { include: true } } : {})
  }
  return (ask) => ({
    model: request.model,
    messages: ask.messages.map(encodeMessage),
    ...(ask.tools.length === 0 ? {} : { tools: ask.tools }),
    ...rest
  })
}

/** Makes the text of each ask's body; the tools of a run are few sets and long, so each set is written once. */
export const textEncoder = (request: Request): ((ask: Ask) => string) => {
  const encode = encoder(request)
  const written = new WeakMap<Ask["tools"], string>()
  const toolsText = (tools: Ask["tools"]): string => {
    const text = written.get(tools) ?? JSON.stringify(tools)
    written.set(tools, text)
    return text
  }
  return (ask) => {
    const body = JSON.stringify(encode({ ...ask, tools: [] }))
    return ask.tools.length === 0 ? body : `${body.slice(0, -1)},"tools":${toolsText(ask.tools)}}`
  }
}

const isOpenRouter = (baseUrl: string): boolean => {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ""
  return host === "openrouter.ai" || host.endsWith(".openrouter.ai")
}

const encodeMessage = (message: Message): Json => {
  switch (message.role) {
    case "answer":
      return message.answer.echo
    case "tool":
      return { role: "tool", tool_call_id: message.callId, content: message.content.toWellFormed() }
    default:
      return { role: message.role, content: message.content.toWellFormed() }
  }
}
