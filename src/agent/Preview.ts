/** Short, harmless views of what a model wrote, for the log. */
import type { Answer } from "../model/Model.ts"

/** The first `chars` characters on one line, without control characters. */
export const ofText = (text: string, chars: number): string => {
  const start = text
    .slice(0, chars * 2 + 64)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
  const characters = Array.from(start)
  return characters.length > chars || text.length > chars * 2 + 64 ? `${characters.slice(0, chars).join("")}…` : start
}

/** The text of an answer, or the calls it makes. */
export const ofAnswer = (answer: Answer, chars: number): string => {
  const calls = answer.toolCalls.map((call) => call.name).join(", ")
  const text = ofText(answer.content || answer.reasoning, chars)
  return calls === "" ? text : `${text} [calls ${ofText(calls, chars)}]`
}

/** A number of things: `1 call`, `2 calls`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? "" : "s"}`
