/** The tree of `src/` keeps to its design: who may import whom, and how a file is written. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../src", import.meta.url))

const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .toSorted()
  .map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }))

/** The folder of a file, or a file at the root itself. */
const stationOf = (name: string): string => name.split("/")[0] ?? ""

interface Import {
  readonly from: string
  readonly to: string
  /** Nothing of it is left when the program runs. */
  readonly typeOnly: boolean
}

const statement = /^(?:import|export)\s+(type\s)?([^;"']*?)\s*from\s+"(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm

const importsOf = ({ name, text }: (typeof files)[number]): ReadonlyArray<Import> =>
  [...text.matchAll(statement)].map(([, type, names = "", fixed, lazy]) => {
    const named = /^\{(.*)\}$/s.exec(names)?.[1]
    const parts = (named ?? "").split(",").map((part) => part.trim())
    return {
      from: name,
      to: relative(root, resolve(root, dirname(name), fixed ?? lazy ?? "")),
      typeOnly:
        type !== undefined || (named !== undefined && parts.every((part) => part === "" || part.startsWith("type ")))
    }
  })

const imports = files.flatMap(importsOf)

/** What each station may use at run time. */
const uses: Readonly<Record<string, ReadonlyArray<string>>> = {
  "main.ts": ["cli"],
  cli: [
    "Pipeline.ts",
    "agent",
    "events",
    "RunConfig.ts",
    "version.ts",
    "dataset",
    "sampling",
    "sandbox",
    "tools",
    "model",
    "store",
    "report"
  ],
  "Conclusion.ts": [
    "RunConfig.ts",
    "version.ts",
    "dataset",
    "events",
    "model",
    "tools",
    "store",
    "trajectory",
    "report"
  ],
  "Pipeline.ts": [
    "Attempt.ts",
    "Conclusion.ts",
    "RunConfig.ts",
    "version.ts",
    "dataset",
    "events",
    "agent",
    "model",
    "tools",
    "store",
    "trajectory",
    "report"
  ],
  "Attempt.ts": [
    "Result.ts",
    "RunConfig.ts",
    "dataset",
    "events",
    "sampling",
    "sandbox",
    "tools",
    "agent",
    "model",
    "trajectory"
  ],
  "Result.ts": ["RunConfig.ts", "dataset", "agent", "trajectory"],
  agent: ["model", "tools", "sandbox", "events"],
  tools: ["sandbox", "events", "model", "version.ts"],
  model: ["events"],
  events: [],
  sandbox: [],
  dataset: [],
  sampling: [],
  trajectory: ["model"],
  report: ["trajectory", "model"],
  store: ["RunConfig.ts", "dataset", "model", "trajectory", "report"],
  "RunConfig.ts": [],
  "version.ts": []
}

/** What each may know the shape of besides. */
const knows: Readonly<Record<string, ReadonlyArray<string>>> = {
  "Attempt.ts": ["model", "store"],
  "Result.ts": ["store", "tools"],
  model: ["tools"],
  sampling: ["dataset"],
  trajectory: ["agent"],
  report: ["store", "events"]
}

const allowed = ({ from, to, typeOnly }: Import): boolean => {
  const [user, used] = [stationOf(from), stationOf(to)]
  if (user === "index.ts") return used !== "cli" && used !== "main.ts"
  if (user === used) return true
  return (uses[user] ?? []).includes(used) || (typeOnly && (knows[user] ?? []).includes(used))
}

const told = ({ from, to, typeOnly }: Import) => `${from} → ${to}${typeOnly ? " (types)" : ""}`

describe("The direction of imports", () => {
  it("is that of the design.", () => {
    expect(imports.length).toBeGreaterThan(200)
    expect(imports.filter((each) => !allowed(each)).map(told)).toEqual([])
  })
  it("never leads to the command line, but from the program itself.", () => {
    const guests = imports.filter(({ from, to }) => stationOf(to) === "cli" && stationOf(from) !== "cli")
    expect(new Set(guests.map(({ from }) => from))).toEqual(new Set(["main.ts"]))
  })
  it("knows every station.", () => {
    expect(
      [...new Set(files.map(({ name }) => stationOf(name)))].filter((name) => name !== "index.ts").toSorted()
    ).toEqual(Object.keys(uses).toSorted())
  })
  it("has no circles at run time.", () => {
    const next = new Map(
      files.map(({ name }) => [name, imports.filter((each) => each.from === name && !each.typeOnly)])
    )
    const done = new Set<string>()
    const circles: Array<string> = []
    const visit = (name: string, path: ReadonlyArray<string>): void => {
      if (path.includes(name)) circles.push([...path.slice(path.indexOf(name)), name].join(" → "))
      if (done.has(name) || path.includes(name)) return
      for (const { to } of next.get(name) ?? []) visit(to, [...path, name])
      done.add(name)
    }
    for (const { name } of files) visit(name, [])
    expect(circles).toEqual([])
  })
  it("is checked by a reading that tells types from values.", () => {
    const text = [
      'import type { A } from "./a.ts"',
      'import { type B, type C } from "../b/B.ts"',
      'import { type D, d } from "./d.ts"',
      'export * as E from "../e/E.ts"',
      'const f = () => import("../f.ts")',
      'import { Effect } from "effect"'
    ].join("\n")
    expect(importsOf({ name: "x/X.ts", text }).map(told)).toEqual([
      "x/X.ts → x/a.ts (types)",
      "x/X.ts → b/B.ts (types)",
      "x/X.ts → x/d.ts",
      "x/X.ts → e/E.ts",
      "x/X.ts → f.ts"
    ])
  })
})

/** Code without comments, texts and import statements. */
const bare = (text: string): string =>
  text
    .replace(
      /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/[a-z]*(?=[.,;)\s])/gm,
      '""'
    )
    .replace(/`(?:\\.|[^`\\])*`/g, '""')
    .replace(/^(?:import|export)\s[^;=]*?from\s+""/gm, "")

const found = (pattern: RegExp): ReadonlyArray<string> =>
  files.flatMap(({ name, text }) => [...bare(text).matchAll(pattern)].map(([match]) => `${name}: ${match}`))

const cast = /.*\bas\s+(?!const\b)[\w{("[].*/g
const anything = /.*[:<,|&(=]\s*any\b.*/g
const tries = /.*\btry\s*\{.*/g

describe("A file", () => {
  it("has at most 260 lines.", () => {
    expect(files.filter(({ text }) => text.split("\n").length > 261).map(({ name }) => name)).toEqual([])
  })
  it("opens with what it is for.", () => {
    const opening = /^(?:#!.*\n)?\/\*\*(?:(?!\*\/)[\s\S])*[.:]\s*(?:\*\/|[^*])/
    expect(files.filter(({ text }) => !opening.test(text)).map(({ name }) => name)).toEqual([])
  })
  it("has a name that says something.", () => {
    const vague = /(^|\/)(utils?|helpers?|common|types?|misc|shared|lib)(\.ts|\/)/i
    expect(files.filter(({ name }) => vague.test(name)).map(({ name }) => name)).toEqual([])
  })
  it("has no cast, no `any` and no statement `try`.", () => {
    expect(found(cast)).toEqual([])
    expect(found(anything)).toEqual([])
    expect(found(tries)).toEqual([])
  })
  it("is read so that casts, `any` and `try` are found, and texts and names are not taken for them.", () => {
    const code =
      'const a = b as C\nconst d: any = 1\n  try {\n}\nconst x = [1] as const\nimport * as Y from "y"\n// as if any\n'
    const all = (pattern: RegExp) => [...bare(code).matchAll(pattern)].map(([match]) => match.trim())
    expect([all(cast), all(anything), all(tries)]).toEqual([["const a = b as C"], ["const d: any = 1"], ["try {"]])
  })
})

describe("Only the program itself", () => {
  it("reads its arguments.", () => {
    expect(files.filter(({ text }) => bare(text).includes("process.argv")).map(({ name }) => name)).toEqual(["main.ts"])
  })
})

describe("No file", () => {
  it("takes time or chance from anywhere but a service.", () => {
    expect(found(/.*(Date\.now|Math\.random|new Date\(\)).*/g)).toEqual([])
  })
  it("but the public face re-exports whole modules.", () => {
    const barrels = files.filter(({ text }) => /^export \* /m.test(text)).map(({ name }) => name)
    expect(barrels).toEqual(["index.ts"])
  })
})
