/** What a server's tool gives back, as a result that a model can read: text as it is, media as files of the sandbox. */
import { Effect, Either, Option, Predicate, Schema } from "effect"
import { Sandbox } from "../../sandbox/Sandbox.ts"
import * as Text from "../Text.ts"
import { ToolFailure } from "../Tool.ts"
import { masked, type Server } from "./ConfigFile.ts"

const words = Schema.optional(Schema.NullOr(Schema.String))

const decodeCalled = Schema.decodeUnknownOption(
  Schema.Struct({
    content: Schema.optionalWith(Schema.Array(Schema.Unknown), { default: () => [] }),
    structuredContent: Schema.optional(Schema.Unknown),
    isError: Schema.optional(Schema.NullOr(Schema.Boolean))
  })
)

const decodePart = Schema.decodeUnknownOption(
  Schema.Struct({
    type: Schema.String,
    text: words,
    data: words,
    mimeType: words,
    uri: words,
    name: words,
    resource: Schema.optional(Schema.Struct({ uri: words, text: words, blob: words, mimeType: words }))
  })
)

/** Files of one result, and bytes of each, at most. */
const limits = { files: 8, bytes: 8_000_000 }

const json = (value: unknown): string =>
  Either.getOrElse(
    Either.try(() => JSON.stringify(value) ?? ""),
    () => "[a value that is nested too deep]"
  )

const endings: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/gif": "gif",
  "image/webp": "webp",
  "image/svg+xml": "svg",
  "audio/wav": "wav",
  "audio/mpeg": "mp3",
  "audio/ogg": "ogg",
  "application/pdf": "pdf"
}

/** What is not text: a line that says what it is, and where it lies if it could be written. */
const media = Effect.fnUntraced(function* (kind: string, type: string, data: string, number: () => number | undefined) {
  const bytes = Buffer.from(data, "base64")
  const what = `${kind} ${type.replace(/[^\w/+.-]/g, "").slice(0, 100) || "of no type"}, ${bytes.length} bytes`
  const at = bytes.length === 0 || bytes.length > limits.bytes ? undefined : number()
  if (at === undefined) return `[${what}]`
  const path = `mcp/${at}.${endings[type] ?? "bin"}`
  const written = yield* Effect.either(
    Effect.flatMap(Sandbox, (sandbox) => sandbox.write(path, bytes)).pipe(
      Effect.catchTag("FileError", ({ message }) => new ToolFailure({ error: message }))
    )
  ).pipe(
    Effect.flatMap((one) => (Either.isLeft(one) && one.left._tag === "SandboxError" ? one.left : Effect.succeed(one)))
  )
  return Either.isRight(written) ? `[${what}: in the file ${path}]` : `[${what}]`
})

const partText = Effect.fnUntraced(function* (part: unknown, number: () => number | undefined) {
  const known = decodePart(part)
  if (Option.isNone(known)) return "[content of a kind that is not known]"
  const { type, text, data, mimeType, uri, name, resource } = known.value
  switch (type) {
    case "text":
      return text ?? ""
    case "image":
    case "audio":
      return yield* media(type, mimeType ?? "", data ?? "", number)
    case "resource":
      if (Predicate.isString(resource?.text)) return resource.text
      return yield* media("resource", resource?.mimeType ?? "", resource?.blob ?? "", number)
    case "resource_link":
      return `[resource ${name ?? ""} ${uri ?? ""}]`
    default:
      return "[content of a kind that is not known]"
  }
})

/** The result of a call; `next` numbers the files of the session. What the server calls an error is a failure. */
export const make = Effect.fn("Result.make")(function* (answer: unknown, server: Server, next: () => number) {
  const called = decodeCalled(answer)
  if (Option.isNone(called)) {
    return yield* new ToolFailure({ error: `the MCP server ${server.name} gave a result that is none` })
  }
  const { content, structuredContent, isError } = called.value
  let files = 0
  const number = () => (files++ < limits.files ? next() : undefined)
  const parts: Array<string> = []
  let size = 0
  for (const part of content) {
    // What would be cut from the result anyway is not worked through.
    if (size > Text.resultBytes * 100) break
    const text = yield* partText(part, number)
    size += text.length + 1
    parts.push(text)
  }
  const whole = parts.some((text) => text.trim() !== "") ? parts.join("\n") : json(structuredContent ?? "")
  const shown = Text.bound(masked(whole, server.secrets))
  if (isError === true) {
    return yield* new ToolFailure({
      error: shown || `the tool of the MCP server ${server.name} failed and did not say why`
    })
  }
  return { result: shown }
})
