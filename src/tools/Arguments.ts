/** The door between a model's JSON and a tool's argument types: reads it generously, and says in plain words what does not fit. */
import { Effect, Either, JSONSchema, Option, ParseResult, Predicate, Schema } from "effect"

/** The part of JSON Schema that models are shown: no references, no unions. */
export interface PlainSchema {
  readonly type?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly items?: PlainSchema
  readonly properties?: { readonly [name: string]: PlainSchema }
  readonly required?: ReadonlyArray<string>
  readonly minimum?: number
  readonly maximum?: number
}

const own = { exact: true } as const
const PlainSchema: Schema.Schema<PlainSchema> = Schema.Struct({
  type: Schema.optionalWith(Schema.String, own),
  description: Schema.optionalWith(Schema.String, own),
  enum: Schema.optionalWith(Schema.Array(Schema.Unknown), own),
  items: Schema.optionalWith(
    Schema.suspend(() => PlainSchema),
    own
  ),
  properties: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.suspend(() => PlainSchema) }), own),
  required: Schema.optionalWith(Schema.Array(Schema.String), own),
  minimum: Schema.optionalWith(Schema.Number, own),
  maximum: Schema.optionalWith(Schema.Number, own)
})

/** The arguments of a call do not fit: one sentence a fault, such as `command: is missing`. */
export class BadArguments extends Schema.TaggedError<BadArguments>()("BadArguments", {
  faults: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.faults.join("; ")
  }
}

/** A text argument with its description for the model. */
export const text = (description: string) => Schema.String.annotations({ description })
/** A whole-number argument of at least `minimum`; where its description names a most, the tool keeps to that. */
export const whole = (description: string, minimum: number) =>
  Schema.Int.annotations({ description }).pipe(Schema.greaterThanOrEqualTo(minimum, { description }))
/** A yes-or-no argument. */
export const flag = (description: string) => Schema.Boolean.annotations({ description })
/** An argument with a closed list of values. */
export const choice = <const A extends readonly [string, ...Array<string>]>(description: string, ...values: A) =>
  Schema.Literal(...values).annotations({ description })

/** The plain schema of a tool's parameters, and the decoder of its calls. */
export const door = <A, I>(
  schema: Schema.Schema<A, I>
): {
  readonly parameters: PlainSchema
  readonly decode: (args: unknown) => Effect.Effect<A, BadArguments>
} => {
  // Endpoints refuse a schema without its type and properties, which is how one without any is written.
  const parameters: PlainSchema = {
    type: "object",
    properties: {},
    required: [],
    ...Schema.decodeUnknownSync(PlainSchema)(JSONSchema.make(schema))
  }
  const decode = Schema.decodeUnknown(schema, { errors: "all" })
  return {
    parameters,
    decode: (args) => {
      const value = loosen(parameters, args)
      return Effect.mapError(decode(value), (error) => new BadArguments({ faults: faults(parameters, value, error) }))
    }
  }
}

/** Nesting beyond this is refused before anything recursive sees it. */
const maxDepth = 100

/** Reads the arguments of a call: a JSON object, where nothing and `null` stand for none. */
export const read = (source: string): Either.Either<object, BadArguments> => {
  const refuse = (fault: string) => Either.left(new BadArguments({ faults: [fault] }))
  if (source.trim() === "") return Either.right({})
  if (depth(source) > maxDepth) return refuse(`the arguments are nested more than ${maxDepth} levels deep`)
  const json = parse(source)
  if (Either.isLeft(json)) return refuse(`the arguments are not valid JSON: ${json.left}. Got: ${brief(source)}`)
  if (json.right === null) return Either.right({})
  return Predicate.isRecord(json.right)
    ? Either.right(json.right)
    : refuse(`the arguments must be one JSON object. Got: ${brief(source)}`)
}

const parse = (source: string): Either.Either<unknown, string> =>
  Either.try({
    try: (): unknown => JSON.parse(source),
    catch: (error) => (error instanceof Error ? sentence(error.message, source) : String(error))
  })

/** The engine's message with the place pointed at by its surroundings. */
const sentence = (message: string, source: string): string => {
  const at = /at position (\d+)/.exec(message)?.[1]
  if (at === undefined) {
    return message.startsWith("Unexpected end") ? `${message}, after ${source.length} characters` : brief(message, 160)
  }
  const near = source.slice(Math.max(0, Number(at) - 20), Number(at) + 20)
  return `${message}, near ${JSON.stringify(near.toWellFormed())}`
}

/** The deepest nesting of brackets outside strings. */
const depth = (source: string): number => {
  let level = 0
  let deepest = 0
  let inString = false
  for (let at = 0; at < source.length; at++) {
    const char = source[at]
    if (inString) {
      if (char === "\\") at++
      else if (char === '"') inString = false
    } else if (char === '"') inString = true
    else if (char === "{" || char === "[") deepest = Math.max(deepest, ++level)
    else if (char === "}" || char === "]") level--
  }
  return deepest
}

const numeric = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i

/** What models write for what they mean: numbers, booleans and lists as strings, null for what they leave out. */
const loosen = (schema: PlainSchema, value: unknown): unknown => {
  if (typeof value === "string") return fromString(schema, value)
  if (Array.isArray(value)) {
    const items = schema.items
    return items === undefined ? value : value.map((item: unknown) => loosen(items, item))
  }
  const properties = schema.properties
  if (!Predicate.isRecord(value) || properties === undefined) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]): Array<[string, unknown]> => {
      const inner = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (inner === undefined || (field === null && !schema.required?.includes(name))) return []
      return [[name, loosen(inner, field)]]
    })
  )
}

const fromString = (schema: PlainSchema, value: string): unknown => {
  switch (schema.type) {
    case "integer":
    case "number":
      return value.length < 40 && numeric.test(value) ? Number(value) : value
    case "boolean": {
      const word = value.length < 10 ? value.trim().toLowerCase() : ""
      return word === "true" ? true : word === "false" ? false : value
    }
    case "array":
    case "object": {
      if (depth(value) > maxDepth) return value
      return Option.match(Either.getRight(parse(value)), {
        onNone: () => value,
        onSome: (inner) => (typeof inner === "object" && inner !== null ? loosen(schema, inner) : value)
      })
    }
    default:
      return value
  }
}

const faults = (schema: PlainSchema, value: unknown, error: ParseResult.ParseError): ReadonlyArray<string> => {
  const seen = new Map<string, string>()
  for (const issue of ParseResult.ArrayFormatter.formatErrorSync(error)) {
    const name = issue.path.map(String).join(".")
    if (seen.has(name) || seen.size === 20) continue
    const expected = describe(schemaAt(schema, issue.path))
    const fault =
      issue._tag === "Missing"
        ? `is missing (expected ${expected})`
        : `expected ${expected}, got ${got(value, issue.path)}`
    seen.set(name, name === "" ? fault : `${name}: ${fault}`)
  }
  // An optional list with a bad item is a fault of the item alone.
  const names = [...seen.keys()]
  return [...seen].flatMap(([name, fault]) => (names.some((other) => other.startsWith(`${name}.`)) ? [] : [fault]))
}

const schemaAt = (schema: PlainSchema, path: ReadonlyArray<PropertyKey>): PlainSchema =>
  path.reduce<PlainSchema>(
    (at, key) => (typeof key === "number" ? at.items : at.properties?.[String(key)]) ?? {},
    schema
  )

const got = (value: unknown, path: ReadonlyArray<PropertyKey>): string => {
  let at: unknown = value
  for (const key of path) at = Predicate.hasProperty(at, key) ? at[key] : undefined
  return brief(typeof at === "string" ? JSON.stringify(at.slice(0, 100)) : (JSON.stringify(at) ?? "nothing"))
}

const describe = (schema: PlainSchema): string => {
  if (schema.enum !== undefined) return `one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`
  switch (schema.type) {
    case "string":
      return "a string"
    case "integer":
      return `a whole number${bounds(schema)}`
    case "number":
      return `a number${bounds(schema)}`
    case "boolean":
      return "true or false"
    case "array":
      return "a list"
    case "object":
      return "an object"
    default:
      return "another value"
  }
}

const bounds = ({ minimum, maximum }: PlainSchema): string =>
  minimum === undefined
    ? maximum === undefined
      ? ""
      : ` of at most ${maximum}`
    : maximum === undefined
      ? ` of at least ${minimum}`
      : ` from ${minimum} to ${maximum}`

const brief = (text: string, length = 100): string =>
  (text.length > length ? `${text.slice(0, length)}…` : text).toWellFormed()
