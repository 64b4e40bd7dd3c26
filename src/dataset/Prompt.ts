/** One row of a data set: the prompt, what it asks of its sandbox, and the fields that only travel along. */
import { Either, Schema } from "effect"

export interface Prompt {
  /** Well-formed Unicode, never blank. */
  readonly text: string
  /** Container image; empty for none. */
  readonly image: string
  /** Working directory of the tools; empty for the sandbox's own. */
  readonly cwd: string
  /** All other fields, letter for letter, as the text of one JSON object. */
  readonly source: string
}

const OptionalText = Schema.optional(Schema.NullOr(Schema.String))

const Row = Schema.Struct({
  prompt: Schema.String,
  image: OptionalText,
  docker_image: OptionalText,
  cwd: OptionalText
})

const own = new Set(["prompt", "image", "docker_image", "cwd"])
const decodeRow = Schema.decodeUnknownEither(Row)

/** A line of a data set, or why it cannot be used. */
export const parse = (line: string): Either.Either<Prompt, string> => {
  const json = Either.try((): unknown => JSON.parse(line))
  if (Either.isLeft(json)) return Either.left("not JSON")
  const value = json.right
  if (typeof value !== "object" || value === null || Array.isArray(value)) return Either.left("not a JSON object")
  const row = decodeRow(value)
  if (Either.isLeft(row)) return Either.left(complaint(value))
  const { prompt, image, docker_image, cwd } = row.right
  if (prompt.trim() === "") return Either.left('"prompt" is blank')
  return Either.right({
    text: prompt.toWellFormed(),
    image: (image?.trim() || docker_image?.trim() || "").toWellFormed(),
    cwd: (cwd ?? "").trim().toWellFormed(),
    source: Object.keys(value).every((key) => own.has(key)) ? "{}" : others(line)
  })
}

const complaint = (row: object): string => {
  const fields = new Map(Object.entries(row))
  if (!fields.has("prompt")) return 'no "prompt"'
  for (const name of own) {
    const value = fields.get(name)
    if (value !== undefined && typeof value !== "string" && (name === "prompt" || value !== null)) {
      return `"${name}" is not a string`
    }
  }
  return 'no usable "prompt"'
}

/** The members of a valid JSON object other than our own, cut out of its text: numbers keep every digit. */
const others = (line: string): string => {
  const members: Array<string> = []
  let depth = 0
  let start = line.indexOf("{") + 1
  for (let at = start; at < line.length; at++) {
    const char = line[at]
    if (char === '"') at = endOfString(line, at)
    else if (char === "[" || char === "{") depth++
    else if (depth > 0 && (char === "]" || char === "}")) depth--
    else if (depth === 0 && (char === "," || char === "}")) {
      members.push(line.slice(start, at).trim())
      start = at + 1
    }
  }
  return `{${members.filter((member) => !own.has(nameOf(member))).join(", ")}}`
}

const endOfString = (line: string, quote: number): number => {
  let at = quote + 1
  while (line[at] !== '"') at += line[at] === "\\" ? 2 : 1
  return at
}

const decodeName = Schema.decodeUnknownSync(Schema.parseJson(Schema.String))
const nameOf = (member: string): string => decodeName(member.slice(0, endOfString(member, 0) + 1))
