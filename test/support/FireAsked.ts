/** What a request body asks: whose prompt it is, and which turn of it. */
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
