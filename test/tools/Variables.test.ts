/** What is looked up by the names of environment variables: the source that goes before, and in it the first name. */
import { Redacted } from "effect"
import { expect, it } from "vitest"
import * as Variables from "../../src/tools/Variables.ts"

it("The first source that has any of the names wins, and in it the first name.", () => {
  const { plain } = Variables.from({ SECOND: "near" }, { FIRST: "far", SECOND: "farther" })
  expect([plain("FIRST", "SECOND"), plain("FIRST"), plain("THIRD")]).toEqual(["near", "far", undefined])
})

it("A blank value is none, and what is around a value does not count.", () => {
  const { plain, secret } = Variables.from({ NAME: " \n" }, { NAME: "  value\n" })
  expect(plain("NAME")).toBe("value")
  expect([String(secret("NAME")), secret("OTHER")]).toEqual(["<redacted>", undefined])
  expect(Redacted.value(secret("NAME") ?? Redacted.make(""))).toBe("value")
})
