import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { busybox, inBusybox, inSandbox, put, sh, use } from "./support.ts"

const places = [
  ["the local sandbox", inSandbox],
  ...(busybox === undefined ? [] : [["busybox", inBusybox] as const])
] as const

const tree = Effect.gen(function* () {
  yield* put("src/a.py", "def alpha():\n    return 1\n\ndef beta():\n    return 22\n")
  yield* put("src/b.ts", "export const beta = 22\n")
  yield* put("node_modules/x/b.ts", "beta\n")
  yield* put(".git/beta", "beta\n")
  yield* put(".hidden", "beta hidden\n")
  yield* put("image.bin", Buffer.from("beta\0\n"))
})

describe.each(places)("In %s", (_, run) => {
  test("matching lines come with path and number, in the order of the paths", () =>
    run(
      Effect.gen(function* () {
        yield* tree
        const { result } = yield* use("search_files", { pattern: "beta" })
        expect(result).toEqual({
          total_count: 3,
          matches: [
            { path: ".hidden", line: 1, content: "beta hidden" },
            { path: "src/a.py", line: 4, content: "def beta():" },
            { path: "src/b.ts", line: 1, content: "export const beta = 22" }
          ],
          truncated: false
        })
        const inside = yield* use("search_files", { pattern: "beta", path: "node_modules" })
        expect(inside.result.matches).toEqual([{ path: "node_modules/x/b.ts", line: 1, content: "beta" }])
      })
    ))

  test("Perl's classes work, names can be filtered, and pages follow one another", () =>
    run(
      Effect.gen(function* () {
        yield* tree
        const digits = yield* use("search_files", { pattern: "\\b\\d{2}\\b", file_glob: "*.{ts,js}" })
        expect(digits.result.matches.map((match: { path: string }) => match.path)).toEqual(["src/b.ts"])
        const spaced = yield* use("search_files", { pattern: "^\\s+return\\s[\\d]+$", path: "src", limit: 1 })
        expect(spaced.result).toEqual({
          total_count: 2,
          matches: [{ path: "src/a.py", line: 2, content: "    return 1" }],
          truncated: true
        })
        const second = yield* use("search_files", { pattern: "^\\s+return", path: "src/a.py", offset: 1 })
        expect(second.result).toMatchObject({ matches: [{ path: "src/a.py", line: 5 }], truncated: false })
        expect((yield* use("search_files", { pattern: "(?i)BETA", path: "src" })).result.total_count).toBe(2)
      })
    ))

  test("files_only, count and context are other views of the same", () =>
    run(
      Effect.gen(function* () {
        yield* tree
        const files = yield* use("search_files", { pattern: "return|22", path: "src", output_mode: "files_only" })
        expect(files.result).toEqual({ total_count: 2, files: ["src/a.py", "src/b.ts"], truncated: false })
        const counts = yield* use("search_files", { pattern: "return|22", path: "src", output_mode: "count" })
        expect(counts.result).toEqual({
          total_count: 3,
          counts: [
            { path: "src/a.py", count: 2 },
            { path: "src/b.ts", count: 1 }
          ],
          truncated: false
        })
        const around = yield* use("search_files", { pattern: "return", path: "src", context: 1 })
        expect(around.result.matches).toEqual([
          { path: "src/a.py", line: 2, content: "    return 1", before: ["def alpha():"], after: [""] },
          { path: "src/a.py", line: 5, content: "    return 22", before: ["def beta():"], after: [] }
        ])
      })
    ))

  test("files are found by name and by path", () =>
    run(
      Effect.gen(function* () {
        yield* tree
        yield* put("src/deep/c.ts", "")
        const find = (pattern: string, more = {}) =>
          Effect.map(use("search_files", { pattern, target: "files", ...more }), ({ result }) => result.files)
        expect(yield* find("*.ts")).toEqual(["src/b.ts", "src/deep/c.ts"])
        expect(yield* find("src/**/*.ts")).toEqual(["src/b.ts", "src/deep/c.ts"])
        expect(yield* find("**/[ac].{ts,py}")).toEqual(["src/a.py", "src/deep/c.ts"])
        expect(yield* find("c.ts", { path: "src/deep" })).toEqual(["src/deep/c.ts"])
        expect(yield* find("nothing*")).toEqual([])
      })
    ))

  test("file_glob narrows the files that are found by name", () =>
    run(
      Effect.gen(function* () {
        yield* tree
        const find = (args: object) =>
          Effect.map(use("search_files", { target: "files", ...args }), ({ result }) => result)
        expect(yield* find({ pattern: "[ab].*", file_glob: "*.{ts,js}" })).toMatchObject({
          total_count: 1,
          files: ["src/b.ts"]
        })
        expect((yield* find({ pattern: "src/**", file_glob: "*.py" })).files).toEqual(["src/a.py"])
        expect((yield* find({ pattern: "*", path: "src/a.py", file_glob: "*.py" })).files).toEqual(["src/a.py"])
        expect((yield* find({ pattern: "*", path: "src/a.py", file_glob: "*.ts" })).files).toEqual([])
      })
    ))

  test("text that is no UTF-8 is searched, what holds NUL bytes is not", () =>
    run(
      Effect.gen(function* () {
        yield* put("latin", Buffer.from("caf\xe9 needle\nplain needle\n\xe9\n", "latin1"))
        yield* put("utf", "café needle\n")
        yield* put("bin", Buffer.from("caf\xe9 needle\n\0\n", "latin1"))
        const { result } = yield* use("search_files", { pattern: "needle$" })
        expect(result).toEqual({
          total_count: 3,
          matches: [
            { path: "latin", line: 1, content: "caf\ufffd needle" },
            { path: "latin", line: 2, content: "plain needle" },
            { path: "utf", line: 1, content: "café needle" }
          ],
          truncated: false
        })
        const around = yield* use("search_files", { pattern: "plain", context: 1 })
        expect(around.result.matches).toMatchObject([{ before: ["caf\ufffd needle"], after: ["\ufffd"] }])
        const files = yield* use("search_files", { pattern: "caf", output_mode: "files_only" })
        expect(files.result.files).toEqual(["latin", "utf"])
        const counts = yield* use("search_files", { pattern: "needle", output_mode: "count" })
        expect(counts.result).toMatchObject({ total_count: 3, counts: [{ path: "latin", count: 2 }, { path: "utf" }] })
      })
    ))

  test("no match is an empty result; a bad pattern or path is an error", () =>
    run(
      Effect.gen(function* () {
        yield* tree
        const none = yield* use("search_files", { pattern: "zzz" })
        expect(none).toMatchObject({ ok: true, result: { total_count: 0, matches: [], truncated: false } })
        for (const args of [
          { pattern: "(unclosed" },
          { pattern: "[a" },
          { pattern: "" },
          { pattern: "a\nb" },
          { pattern: "a\0" },
          { pattern: "x", path: "not/there" },
          { pattern: "x", path: "/dev/zero" }
        ]) {
          const bad = yield* use("search_files", args)
          expect(bad).toMatchObject({ ok: false, valid: true })
          expect(bad.result.error).toMatch(/^(pattern|path): /)
        }
      })
    ))

  test("odd file names do not confuse the results", () =>
    run(
      Effect.gen(function* () {
        const odd = ["-e", "a:1:b", "a\nb", "it's", "$(touch x)", "日本 語", "--\nx"]
        for (const name of odd) yield* put(`odd/${name}`, "needle: 1-2\nother\nneedle\n")
        const { result } = yield* use("search_files", { pattern: "needle", path: "odd", context: 1 })
        expect(result.total_count).toBe(odd.length * 2)
        const names = new Set(result.matches.map((match: { path: string }) => match.path.slice(4)))
        expect(names).toEqual(new Set(odd))
        const files = yield* use("search_files", { pattern: "*", target: "files", path: "odd" })
        expect(new Set(files.result.files)).toEqual(new Set(odd.map((name) => `odd/${name}`)))
        expect((yield* use("search_files", { pattern: "-e", path: "odd" })).ok).toBe(true)
        expect(yield* sh("ls x 2>&1")).toContain("No such file")
      })
    ))

  test("a flood of matches is counted but stays within 50 KB", () =>
    run(
      Effect.gen(function* () {
        yield* sh("seq 100000 200000 > n; head -c 5000000 /dev/zero | tr '\\0' 1 >> n")
        const flood = yield* use("search_files", { pattern: "1", limit: 1000 })
        expect(flood.result.total_count).toBe(100_001)
        expect(Buffer.byteLength(flood.text)).toBeLessThan(51_000)
        expect(flood.result.truncated).toBe(true)
        expect((yield* use("search_files", { pattern: "1", output_mode: "count" })).result.total_count).toBe(100_001)
      })
    ))
})
