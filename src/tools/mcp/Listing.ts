/** The tools that a server tells of, as a run may offer them. */
import { Effect, Either, Option, Predicate, Schema } from "effect"
import { masked, type Server } from "./ConfigFile.ts"
import { type Link, LinkError, startLimit } from "./Link.ts"

export interface Listed {
  /** The server's own name for it. */
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly parameters: object
}

export interface Listing {
  readonly tools: ReadonlyArray<Listed>
  /** Tools that cannot be offered, each with why. */
  readonly unfit: ReadonlyArray<readonly [name: string, why: string]>
}

/** Tools of one server at most: with more, no model finds the right one, and many endpoints refuse the request. */
export const toolsAtMost = 128

/** Pages at most; characters of a description, and of a schema as JSON. */
const limits = { pages: 50, description: 8000, schema: 30_000 }

const Page = Schema.Struct({
  tools: Schema.Array(Schema.Unknown),
  nextCursor: Schema.optional(Schema.NullOr(Schema.String))
})
const decodePage = Schema.decodeUnknownOption(Page)

const decodeTool = Schema.decodeUnknownOption(
  Schema.Struct({
    name: Schema.NonEmptyString,
    description: Schema.optional(Schema.NullOr(Schema.String)),
    inputSchema: Schema.Unknown
  })
)

/** The schema as it is, with the field that some endpoints miss; a text for why it is none. */
const parametersOf = (schema: unknown): Either.Either<object, string> => {
  if (!Predicate.isRecord(schema) || schema.type !== "object") return Either.left("its input schema is no object's")
  const size = Either.map(
    Either.try(() => JSON.stringify(schema)),
    (text) => text.length
  )
  if (Either.isLeft(size)) return Either.left("its input schema is nested too deep")
  return size.right > limits.schema
    ? Either.left(`its input schema is larger than ${limits.schema} characters`)
    : Either.right("properties" in schema ? schema : { ...schema, properties: {} })
}

/** Asks for all pages. */
export const ask = Effect.fn("Listing.ask")(function* (link: Link, server: Server) {
  const found = new Map<string, Pick<Listed, "description"> & { readonly schema: unknown }>()
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < limits.pages && found.size <= toolsAtMost * 100; page++) {
    const answer = decodePage(yield* link.request("tools/list", cursor === undefined ? {} : { cursor }, startLimit))
    if (Option.isNone(answer)) {
      return yield* new LinkError({ reason: "Refused", message: "its list of tools is none" })
    }
    for (const tool of answer.value.tools) {
      const one = decodeTool(tool)
      if (Option.isNone(one) || found.has(one.value.name)) continue
      const { name, description, inputSchema } = one.value
      if (server.tools?.includes(name) === false) continue
      found.set(name, { description: described(description ?? "", server), schema: inputSchema })
    }
    cursor = answer.value.nextCursor ?? undefined
    if (cursor === undefined || seen.has(cursor)) break
    seen.add(cursor)
  }
  const tools: Array<Listed> = []
  const unfit: Array<readonly [string, string]> = []
  for (const [name, { description, schema }] of found) {
    const parameters = parametersOf(schema)
    if (Either.isLeft(parameters)) unfit.push([name, parameters.left])
    else if (tools.length === toolsAtMost) unfit.push([name, `it has more than ${toolsAtMost} tools`])
    else tools.push({ name, description, parameters: parameters.right })
  }
  for (const name of server.tools ?? []) if (!found.has(name)) unfit.push([name, "it has no such tool"])
  const listing: Listing = { tools, unfit }
  return listing
})

const described = (text: string, { secrets }: Server): string =>
  masked(text, secrets).slice(0, limits.description).toWellFormed()
