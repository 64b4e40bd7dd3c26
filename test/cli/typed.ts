/** Options as the command's parser hands them over, and what is made of them. */
import { Either, Option } from "effect"
import { flags } from "../../src/cli/Flags.ts"
import * as Parse from "../../src/cli/Parse.ts"
import type { Typed } from "../../src/cli/Values.ts"

export type Given = Readonly<Record<string, string | boolean>>

/** What the command's parser makes of these options. */
const typed = (given: Given): Typed =>
  Object.fromEntries(
    flags.map(({ name, kind }) => {
      const value = given[name]
      return [name, kind === "switch" ? value === true : Option.fromNullable(typeof value === "string" ? value : null)]
    })
  )

export const least: Given = { dataset_file: "d.jsonl", batch_size: "10", run_name: "r", model: "scripted" }

export const parse = (given: Given, environment: Readonly<Record<string, string>> = {}) =>
  Parse.parse(typed({ ...least, ...given }), environment)

export const config = (given: Given = {}) => Either.getOrThrowWith(parse(given), (error) => error).config

export const complaint = (given: Given, environment: Readonly<Record<string, string>> = {}) =>
  Either.match(parse(given, environment), { onLeft: ({ message }) => message, onRight: () => "fits" })
