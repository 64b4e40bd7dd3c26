/** The program's version, as package.json says it. */
import { readFileSync } from "node:fs"
import { Schema } from "effect"

const Package = Schema.parseJson(Schema.Struct({ version: Schema.String }))

export const version: string = Schema.decodeUnknownSync(Package)(
  readFileSync(new URL("../package.json", import.meta.url), "utf8")
).version
