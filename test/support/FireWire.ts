/** Requests and answers of a server under fire: whose prompt is asked for, which turn of it, and what goes back. */
import type * as Http from "node:http"
import type { Conduct } from "./FireConduct.ts"
import type { Body } from "./ModelServer.ts"

/** A body; an empty one where the text is no JSON. */
export const parsed = (text: string): Body => {
  try {
    return JSON.parse(text)
  } catch {
    return { model: "", messages: [] }
  }
}

/** The prompt, without what the last turn adds to it. */
export const promptOf = ({ messages }: Body): string =>
  textOf(messages.findLast(({ role }) => role === "user")?.content).replace(/\n\n\[This is your last turn.*$/s, "")

/** Answers that the conversation already has. */
export const turnOf = ({ messages }: Body): number => messages.filter(({ role }) => role === "assistant").length

/** A content may stand in parts, to carry marks of what is to be kept. */
const textOf = (content: unknown): string =>
  Array.isArray(content) ? content.map((part: { readonly text?: string }) => part.text ?? "").join("") : String(content)

export interface Reply {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

/** What is left of a window's limit and when the next begins, as OpenAI's headers say it; none without a limit. */
export const limitHeaders = (
  limit: Conduct["limit"],
  window: { readonly begun: number; readonly count: number },
  now: number
): Readonly<Record<string, string>> => {
  if (limit === undefined) return {}
  const left = Math.max(0, window.begun + limit.millis - now)
  return {
    "x-ratelimit-limit-requests": String(limit.calls),
    "x-ratelimit-remaining-requests": String(left === 0 ? limit.calls : limit.calls - window.count),
    "x-ratelimit-reset-requests": left < 1000 ? `${Math.ceil(left)}ms` : `${(left / 1000).toFixed(3)}s`
  }
}

/** Sends a byte every so many milliseconds, for ever. */
export const trickle = (response: Http.ServerResponse, every: number): void => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "1000000" })
  response.write("{")
  const timer = setInterval(() => response.write(" "), every)
  response.on("close", () => clearInterval(timer))
}
