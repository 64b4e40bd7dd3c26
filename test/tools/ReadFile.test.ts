import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { busybox, get, inBusybox, inSandbox, put, sh, use } from "./support.ts"

const places = [
  ["the local sandbox", inSandbox],
  ...(busybox === undefined ? [] : [["busybox", inBusybox] as const])
] as const

describe.each(places)("In %s", (_, run) => {
  test("a file's lines are numbered, and its size and lines counted", () =>
    run(
      Effect.gen(function* () {
        yield* put("a.txt", "one\ntwo\r\nthree")
        const { result } = yield* use("read_file", { path: "a.txt" })
        expect(result).toEqual({
          content: "     1|one\n     2|two\n     3|three",
          total_lines: 3,
          file_size: 14,
          truncated: false
        })
        yield* put("empty", "")
        expect((yield* use("read_file", { path: "empty" })).result).toMatchObject({ content: "", total_lines: 0 })
      })
    ))

  test("offset and limit choose lines, and what is left is said", () =>
    run(
      Effect.gen(function* () {
        yield* sh("seq 1 5000 > n")
        const part = yield* use("read_file", { path: "n", offset: 10, limit: 2 })
        expect(part.result.content).toBe("    10|10\n    11|11\n[lines 12 to 5000 are not shown; go on with offset=12]")
        expect(part.result).toMatchObject({ total_lines: 5000, truncated: true })
        const end = yield* use("read_file", { path: "n", offset: 4999 })
        expect(end.result).toMatchObject({ content: "  4999|4999\n  5000|5000", truncated: false })
        const beyond = yield* use("read_file", { path: "n", offset: 5001 })
        expect(beyond).toMatchObject({ ok: false, result: { total_lines: 5000 } })
        expect((yield* use("read_file", { path: "n", limit: 1e9 })).result.content).toMatch(/^ {5}1\|1\n/)
      })
    ))

  test("long lines and long files stay within 50 KB", () =>
    run(
      Effect.gen(function* () {
        yield* sh(`head -c 30000000 /dev/zero | tr '\\0' x > wide; echo >> wide; echo short >> wide`)
        const wide = yield* use("read_file", { path: "wide" })
        expect(wide.result.content).toContain("line cut")
        expect(wide.result.content).toMatch(/2\|short$/)
        yield* sh(`for i in $(seq 400); do printf '%03000d\\n' $i; done > long; seq 1 300000 > tall`)
        const long = yield* use("read_file", { path: "long" })
        expect(Buffer.byteLength(long.text)).toBeLessThan(51_000)
        expect(long.result.truncated).toBe(true)
        const next = Number(/offset=(\d+)/.exec(long.result.content)?.[1])
        const more = yield* use("read_file", { path: "long", offset: next })
        expect(more.result.content).toMatch(new RegExp(`^ *${next}\\|0+${next}\\n`))
        expect((yield* use("read_file", { path: "tall", limit: 2000 })).result.total_lines).toBe(300_000)
      })
    ))

  test("what is no text file is refused at once", () =>
    run(
      Effect.gen(function* () {
        yield* sh("mkfifo pipe; mkdir dir; printf 'a\\000b' > bin")
        for (const [path, word] of [
          ["pipe", "regular"],
          ["dir", "directory"],
          ["bin", "binary"],
          ["/dev/zero", "regular"]
        ] as const) {
          const refused = yield* use("read_file", { path })
          expect(refused.ok).toBe(false)
          expect(refused.result.error).toContain(word)
        }
      })
    ))

  test("a missing file's error names similar ones beside it", () =>
    run(
      Effect.gen(function* () {
        yield* put("src/config.yaml", "")
        yield* put("src/README", "")
        const missing = yield* use("read_file", { path: "src/config.yml" })
        expect(missing.result.error).toContain("src/config.yaml")
        expect(missing.result.error).not.toContain("README")
        expect((yield* use("read_file", { path: "nowhere/x" })).result.error).toContain("nor does its directory")
      })
    ))

  test("a link to what does not exist is called that", () =>
    run(
      Effect.gen(function* () {
        yield* sh("ln -s no/where dang; ln -s a.txt good; echo a > a.txt")
        const { ok, result } = yield* use("read_file", { path: "dang" })
        expect(ok).toBe(false)
        expect(result.error).toBe("dang is a symbolic link to no/where, which does not exist")
        expect((yield* use("read_file", { path: "good" })).result.content).toBe("     1|a")
      })
    ))

  test("odd names and bytes that are no UTF-8 are read", () =>
    run(
      Effect.gen(function* () {
        const odd = '-n it\'s "$HOME" `x`\n日本.txt'
        yield* put(odd, Buffer.from([0x61, 0xff, 0x62, 0x0a]))
        expect((yield* use("read_file", { path: odd })).result.content).toBe("     1|a\ufffdb")
      })
    ))

  test("write_file makes directories, and replaces lone surrogates", () =>
    run(
      Effect.gen(function* () {
        const { result } = yield* use("write_file", { path: "deep/er/f.txt", content: "é\ud800\n" })
        expect(result).toEqual({ bytes_written: 6 })
        expect(yield* get("deep/er/f.txt")).toBe("é\ufffd\n")
        expect((yield* use("write_file", { path: "deep", content: "x" })).ok).toBe(false)
        expect((yield* use("write_file", { path: "a\0b", content: "x" })).result.error).toContain("NUL")
        expect((yield* use("write_file", { path: "", content: "x" })).ok).toBe(false)
        yield* use("write_file", { path: "big", content: "y".repeat(3_000_000) })
        expect(yield* sh("wc -c < big")).toContain("3000000")
        yield* use("write_file", { path: "~/at-home", content: "h" })
        expect(yield* sh("cat ~/at-home")).toBe("h")
        expect((yield* use("read_file", { path: "~/at-home" })).result.content).toBe("     1|h")
      })
    ))
})
