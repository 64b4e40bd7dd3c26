/** A distribution by name or from a JSON file of the user's own. */
import { readFile } from "node:fs/promises"
import { basename } from "node:path"
import { Effect, ParseResult, Schema } from "effect"
import { builtIn, type Distribution, highestFirst } from "./Distribution.ts"

/** A distribution that cannot be used. `message` is one line naming the option. */
export class DistributionError extends Schema.TaggedError<DistributionError>()("DistributionError", {
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

const Percentages = Schema.Record({ key: Schema.String, value: Schema.Number.pipe(Schema.between(0, 100)) })

const FileShape = Schema.Struct({
  description: Schema.optionalWith(Schema.String, { default: () => "" }),
  toolsets: Percentages
})

const decodeJson = Schema.decodeUnknown(Schema.parseJson())
const decodeFile = Schema.decodeUnknown(FileShape)

const failed = (detail: string) => new DistributionError({ detail: `--distribution: ${detail}` })

const looksLikePath = (given: string) => given.includes("/") || given.endsWith(".json")

/** The distribution that `given` names: one that comes with the program, or the path of `{"toolsets": {"terminal": 90}}`. */
export const resolve = Effect.fn("Distribution.resolve")(function* (given: string, toolsets: ReadonlyArray<string>) {
  const known = builtIn.find(({ name }) => name === given)
  if (known !== undefined) return known
  if (!looksLikePath(given)) {
    const names = builtIn.map(({ name }) => name).join(", ")
    return yield* failed(
      `there is no distribution ${JSON.stringify(given)}; there are ${names}, or the path of a .json file`
    )
  }
  return yield* fromFile(given, toolsets)
})

const fromFile = (path: string, toolsets: ReadonlyArray<string>): Effect.Effect<Distribution, DistributionError> =>
  Effect.gen(function* () {
    const text = yield* Effect.tryPromise({
      try: () => readFile(path, "utf8"),
      catch: () => failed(`the file ${path} cannot be read`)
    })
    const json = yield* Effect.mapError(decodeJson(text.replace(/^\uFEFF/, "")), () => failed(`${path} is not JSON`))
    const file = yield* decodeFile(json).pipe(
      Effect.mapError((error) => {
        const issue = ParseResult.ArrayFormatter.formatErrorSync(error)[0]
        const where = issue?.path.join(".") ?? ""
        return failed(
          `${path}: ${where === "" ? "it does not fit" : `${where}: ${issue?.message}`}; expected {"toolsets": {"terminal": 90, …}} with percentages from 0 to 100`
        )
      })
    )
    const entries = Object.entries(file.toolsets)
    const unknown = entries.find(([name]) => !toolsets.includes(name))
    if (unknown !== undefined) {
      return yield* failed(
        `${path}: there is no toolset ${JSON.stringify(unknown[0])}; there are ${toolsets.join(", ")}, and the servers of --mcp_config`
      )
    }
    if (!entries.some(([, percent]) => percent > 0))
      return yield* failed(`${path}: no toolset has a percentage above 0`)
    return { name: basename(path, ".json"), description: file.description, toolsets: highestFirst(entries) }
  })
