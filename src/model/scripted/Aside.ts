/** What the offline model says to the question of a tool for which its script has no answer. Pure. */
import type { Aside, Ask } from "../Model.ts"

/** A picture of eight by eight grey dots. */
const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mNogAIGyhgAgIQgARDoahcAAAAASUVORK5CYII="

/** Characters of a question that are repeated. */
const repeated = 200

/** The answer: which model was asked, what it was shown, and what about. */
export const answer = (
  messages: Ask["messages"],
  { tool, model = "the run's own", picture: drawn = false }: Aside
): { readonly content: string; readonly images?: ReadonlyArray<string> } => {
  const question = messages.findLast((message) => message.role === "user")
  const shown = (question?.images ?? []).map(told)
  const text = question?.content ?? ""
  const about = text.length > repeated ? `${text.slice(0, repeated)}…` : text
  const content = [
    `The offline model answers ${tool} in the place of ${model}.`,
    ...(shown.length === 0 ? [] : [`It was shown ${shown.join(" and ")}.`]),
    `It was asked: ${about}`
  ].join(" ")
  return drawn ? { content, images: [picture] } : { content }
}

/** A picture in words: its type and its size. */
const told = (url: string): string => {
  const [, mime = "", data = ""] = /^data:([^;,]*)[^,]*,(.*)$/s.exec(url) ?? []
  return mime === "" ? "an image by its address" : `${mime} of ${Buffer.byteLength(data, "base64")} bytes`
}
