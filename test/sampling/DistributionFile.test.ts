/** A distribution is named, or comes from a file that is checked before anything is paid for. */
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { builtIn, render } from "../../src/sampling/Distribution.ts"
import * as DistributionFile from "../../src/sampling/DistributionFile.ts"
import { names } from "../../src/tools/Catalogue.ts"
import * as Folder from "../support/Folder.ts"

const file = (content: string) =>
  Effect.gen(function* () {
    const path = join(yield* Folder.scoped, "own.json")
    yield* Effect.promise(() => writeFile(path, content))
    return path
  })

const complaint = (given: string) =>
  Effect.map(Effect.flip(DistributionFile.resolve(given, names)), ({ message }) => message)

describe("A distribution", () => {
  it.effect("is found by its name.", () =>
    Effect.gen(function* () {
      for (const distribution of builtIn) {
        expect(yield* DistributionFile.resolve(distribution.name, names)).toBe(distribution)
      }
    })
  )
  it.effect("of an unknown name is answered with all names.", () =>
    Effect.gen(function* () {
      const message = yield* complaint("defualt")
      expect(message).toMatch(/^--distribution: there is no distribution "defualt"; there are default, image_gen, /)
      for (const { name } of builtIn) expect(message).toContain(name)
    })
  )
  it.scoped("may come from a file, likeliest toolset first.", () =>
    Effect.gen(function* () {
      const path = yield* file('{"description":"mine","toolsets":{"file":12.5,"terminal":90,"todo":0}}')
      expect(yield* DistributionFile.resolve(path, names)).toEqual({
        name: "own",
        description: "mine",
        toolsets: [
          ["terminal", 90],
          ["file", 12.5],
          ["todo", 0]
        ]
      })
    })
  )
  it.scoped("from a file may begin with a byte-order mark and go without a description.", () =>
    Effect.gen(function* () {
      const found = yield* DistributionFile.resolve(yield* file('\ufeff{"toolsets":{"todo":1}}'), names)
      expect([found.description, found.toolsets]).toEqual(["", [["todo", 1]]])
    })
  )
  it.scoped.each<readonly [content: string, expected: string]>([
    ["{not json", "is not JSON"],
    ["[]", 'expected {"toolsets": {"terminal": 90, …}} with percentages from 0 to 100'],
    ["{}", "toolsets: is missing; expected"],
    ['{"toolsets":{"terminal":101}}', "toolsets.terminal: "],
    ['{"toolsets":{"terminal":-1}}', "toolsets.terminal: "],
    ['{"toolsets":{"terminal":"90"}}', "toolsets.terminal: "],
    ['{"toolsets":{"termnial":50}}', 'there is no toolset "termnial"; there are web, vision, '],
    ['{"toolsets":{"terminal":0,"file":0}}', "no toolset has a percentage above 0"],
    ['{"toolsets":{}}', "no toolset has a percentage above 0"]
  ])("from the file %s is refused in one line.", ([content, expected]) =>
    Effect.gen(function* () {
      const path = yield* file(content)
      const message = yield* complaint(path)
      expect(message).toMatch(/^--distribution: [^\n]+$/)
      expect(message).toContain(path)
      expect(message).toContain(expected)
    })
  )
  it.effect("from a file that is not there is refused by its path.", () =>
    Effect.gen(function* () {
      expect(yield* complaint("/no/such.json")).toBe("--distribution: the file /no/such.json cannot be read")
      expect(yield* complaint("none.json")).toBe("--distribution: the file none.json cannot be read")
    })
  )
})

describe("The list of distributions", () => {
  it("has each with its description and percentages, highest first.", () => {
    const lines = render(builtIn).split("\n")
    expect(lines.length).toBe(builtIn.length * 2)
    expect(lines).toContain("browser_tasks: tasks in a browser, rarely anything else")
    expect(lines).toContain("    browser 97 %, terminal 15 %, vision 12 %")
  })
})
