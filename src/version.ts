/** The program's version, as package.json says it. */
import packageJson from "../package.json" with { type: "json" }

export const version: string = packageJson.version
