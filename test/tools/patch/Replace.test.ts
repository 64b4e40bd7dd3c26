import { Either, FastCheck } from "effect"
import { expect, test } from "vitest"
import * as Apply from "../../../src/tools/patch/Apply.ts"
import * as Diff from "../../../src/tools/patch/Diff.ts"
import * as Envelope from "../../../src/tools/patch/Envelope.ts"
import { replace } from "../../../src/tools/patch/Replace.ts"
import * as Unified from "../../../src/tools/patch/Unified.ts"

const once = (text: string, old: string, fresh: string, all = false) =>
  Either.merge(Either.mapLeft(replace(text, { old, new: fresh, all }), (why) => `ERROR ${why}`))

test("An exact text is replaced and nothing else", () => {
  expect(once("a b c", "b", "x")).toBe("a x c")
  expect(once("a $& b", "$&", "$1")).toBe("a $1 b")
  expect(once("x x x", "x", "y", true)).toBe("y y y")
  expect(once("one\ntwo\n", "two\n", "")).toBe("one\n")
})

test("Errors tell what to do", () => {
  expect(once("a\nb\na\n", "a", "c")).toMatch(/occurs 2 times, on lines 1 and 3/)
  expect(once("a", "", "c")).toMatch(/old_string: is empty/)
  expect(once("a", "a", "a")).toMatch(/the same/)
  const absent = once("def foo():\n    return 1\n\ndef bar():\n    return 2\n", "    return 3", "x")
  expect(absent).toMatch(/not in the file/)
  expect(absent).toMatch(/ {5}2\| {4}return 1/)
  expect(once("new text here", "old text gone", "new text here")).toMatch(/there already/)
})

test("Places that overlap are more than one", () => {
  expect(once("a\na\na", "a\na", "x")).toMatch(/^ERROR old_string occurs 2 times, on lines 1 and 2/)
  expect(once("  a\n  a\n  a\n", "a\na\n", "x\n")).toMatch(/^ERROR old_string occurs 2 times, on lines 1 and 2/)
  expect(once("f(a,  a,  a)", "a, a", "x")).toMatch(/^ERROR old_string occurs 2 times/)
  expect(once("a\na\na", "a\na", "x", true)).toBe("x\na")
})

test("The new text is called there already only when that is no accident", () => {
  const tells = (text: string, fresh: string) => /there already/.test(once(text, "gone for good", fresh))
  expect(tells("quote", "q")).toBe(false)
  expect(tells("quotations", "quotation")).toBe(false)
  expect(tells("if x {\n}\n", "}")).toBe(false)
  expect(tells("a quotation mark", "quotation")).toBe(true)
  expect(tells("def f():\n    x = 1\n    y = 2\n", "x = 1\n    y = 2")).toBe(true)
  expect(tells("def f():\r\n    x = 1  \r\n", "x = 1")).toBe(true)
})

test("Lines that old and new text share stay as they are in the file", () => {
  expect(once("\tfoo\n    bar\n", "    foo\n    bar", "    baz\n    bar")).toBe("\tbaz\n    bar\n")
  expect(once("\tfoo\n    bar\n\tend\n", "  foo\n  bar\n  end\n", "  foo\n  if x\n  bar\n  end\n")).toBe(
    "\tfoo\n\tif x\n    bar\n\tend\n"
  )
  expect(once("a  \nb\t\nc  \n", "a\nb\nc", "a\nx\nc")).toBe("a  \nx\nc  \n")
  expect(once("z = f(a,   b)\n\tg( )\nh\n", "f(a, b)\n    g( )\nh", "f(a, b)\n    g( )\ni")).toBe(
    "z = f(a,   b)\n\tg( )\ni\n"
  )
  expect(once("\ta\r\n  b\r\n\tc", "a\nb\nc", "a\nb\nx\nc\nd")).toBe("\ta\r\n  b\r\n\tx\r\n\tc\r\n\td")
  expect(once("a\r\nb  \nc\r\nd\r\n", "a\nb\nc\n", "a\nb\nx\n")).toBe("a\r\nb  \nx\r\nd\r\n")
  const hunk = "@@\n-  foo\n-  bar\n+  baz\n+  bar\n   end\n"
  expect(applied(Envelope.parse(`*** Update File: f\n${hunk}`), "\tfoo\n    bar\n\tend\n")).toBe(
    "\tbaz\n    bar\n\tend\n"
  )
})

test("All places are replaced where only white space differs too, each with its own", () => {
  const text = "if a:\n  x()\n  y()\n\n\tx()\n\ty()\n\nx()\ny()\n"
  expect(once(text, "    x()\n    y()", "    z()\n    y()")).toMatch(/occurs 3 times, on lines 2, 5 and 8/)
  expect(once(text, "    x()\n    y()", "    z()\n    y()", true)).toBe(text.replaceAll("x", "z"))
  expect(once("f(a,  b); f(a,   b); f(a)", "f(a, b)", "g()", true)).toBe("g(); g(); f(a)")
})

test("White space is forgiven: at line ends, in the indentation, and in runs", () => {
  expect(once("a  \nb\t\nc\n", "a\nb", "x\ny")).toBe("x\ny\nc\n")
  expect(
    once(
      "class A:\n    def f():\n        return 1\n",
      "def f():\n    return 1\n",
      "def g():\n    if x:\n        return 2\n"
    )
  ).toBe("class A:\n    def g():\n        if x:\n            return 2\n")
  expect(once("\tif x {\n\t\ty()\n\t}\n", "  if x {\n    y()\n  }", "  if z {\n    y()\n    w()\n  }")).toBe(
    "\tif z {\n\t\ty()\n\t\tw()\n\t}\n"
  )
  expect(once("foo(a,   b)  # why\n", "foo(a, b)", "bar(b)")).toBe("bar(b)  # why\n")
  expect(once("banana\n", "  a", "x")).toMatch(/^ERROR/)
})

test("Line ends and the final newline stay as they were", () => {
  expect(once("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz")).toBe("x\r\ny\r\nz\r\nc\r\n")
  expect(once("a\r\nb\r\nc", "b", "x\ny")).toBe("a\r\nx\r\ny\r\nc")
  expect(once("a\r\n  b\r\nc", "b\nc\n", "x\ny\n")).toBe("a\r\n  x\r\n  y")
  expect(once("a\nb", "b\n", "c\n")).toBe("a\nc")
})

test("Replacing a unique text gives what String.replace gives", () =>
  FastCheck.assert(
    FastCheck.property(text(), FastCheck.nat(), FastCheck.nat(), text(), (whole, from, length, fresh) => {
      const old = whole.slice(from % (whole.length + 1)).slice(0, 1 + (length % 12))
      FastCheck.pre(
        old !== "" &&
          old !== fresh &&
          whole.split(old).length === 2 &&
          whole.indexOf(old, whole.indexOf(old) + 1) === -1
      )
      expect(once(whole, old, fresh)).toBe(whole.replace(old, () => fresh))
    })
  ))

test("Replacing all gives what String.replaceAll gives", () =>
  FastCheck.assert(
    FastCheck.property(text(), text(1, 3), text(), (whole, old, fresh) => {
      FastCheck.pre(whole.includes(old) && old !== fresh)
      expect(once(whole, old, fresh, true)).toBe(whole.replaceAll(old, () => fresh))
    })
  ))

test("No text makes replacing or parsing throw", () =>
  FastCheck.assert(
    FastCheck.property(odd, odd, odd, (whole, old, fresh) => {
      replace(whole, { old, new: fresh, all: fresh.length % 2 === 0 })
      for (const parse of [Envelope.parse, Unified.parse]) {
        const changes = parse(fresh)
        if (Either.isRight(changes))
          for (const one of changes.right) if (one._tag === "Update") Apply.apply(whole, one.hunks)
      }
      Diff.unified("a", whole, fresh)
    }),
    { numRuns: 2000 }
  ))

test("A patch made from a diff leads from the old text to the new, in both forms", () =>
  FastCheck.assert(
    FastCheck.property(
      FastCheck.uniqueArray(FastCheck.stringMatching(/^[a-z ]{1,8}$/), {
        minLength: 1,
        maxLength: 30,
        selector: (one) => one.trim().replace(/ +/g, " ")
      }),
      FastCheck.array(FastCheck.tuple(FastCheck.nat(29), FastCheck.constantFrom("delete", "insert", "change")), {
        minLength: 1,
        maxLength: 4
      }),
      (lines, edits) => {
        FastCheck.pre(lines.every((line) => line.trim() !== ""))
        const fresh = [...lines]
        for (const [at, kind] of edits) {
          if (kind === "insert") fresh.splice(at, 0, `NEW ${at}`)
          else if (fresh.length > 1) fresh.splice(at % fresh.length, 1, ...(kind === "change" ? [`CHANGED ${at}`] : []))
        }
        const before = `${lines.join("\n")}\n`
        const after = `${fresh.join("\n")}\n`
        FastCheck.pre(before !== after)
        const diff = Diff.unified("f", before, after)
        expect(applied(Unified.parse(diff), before)).toBe(after)
        const hunks = diff
          .split("\n")
          .slice(2, -1)
          .join("\n")
          .replaceAll(/^@@.*$/gm, "@@")
        expect(applied(Envelope.parse(`*** Begin Patch\n*** Update File: f\n${hunks}\n*** End Patch`), before)).toBe(
          after
        )
      }
    ),
    { numRuns: 500 }
  ))

test("A megabyte of equal lines is searched and compared without holding up the runner for long", () => {
  const same = "aaaa\n".repeat(200_000)
  const began = performance.now()
  once(same, `b\n${"aaaa\n".repeat(100_000)}`, "x")
  once(same, ` aaaa\n`.repeat(100_000), "x")
  once("a".repeat(1_000_000), `b${"a".repeat(500_000)}`, "x")
  once("a ".repeat(500_000), `${"a  ".repeat(200_000)}b`, "x")
  once(" ".repeat(1_000_000), `${" ".repeat(500_000)}b`, "x")
  const hunk = `@@\n${" aaaa\n".repeat(50)}-aaab\n+x\n`
  applied(Envelope.parse(`*** Update File: f\n${hunk.repeat(100)}`), same)
  expect(performance.now() - began).toBeLessThan(20_000)
  const compared = performance.now()
  Diff.unified("f", same, same.replaceAll("a\n", "b\n"))
  Diff.unified("f", same, `${same}${same}`)
  Diff.unified("f", same, same.slice(5))
  expect(performance.now() - compared).toBeLessThan(10_000)
})

const text = (minLength = 0, maxLength = 60) =>
  FastCheck.string({ unit: FastCheck.constantFrom("a", "b", " ", "\n", "$", "é"), minLength, maxLength })

const odd = FastCheck.oneof(
  FastCheck.string({ unit: "binary" }),
  FastCheck.string({
    unit: FastCheck.constantFrom(
      "a",
      " ",
      "\t",
      "\n",
      "\r",
      "\0",
      "\ud800",
      "+",
      "-",
      "@@ ",
      "*** Update File: f\n",
      "*** End of File\n",
      "--- a/f\n+++ b/f\n",
      "@@ -1,2 +1,1 @@\n"
    )
  })
)

const applied = (changes: ReturnType<typeof Envelope.parse>, before: string): string => {
  if (Either.isLeft(changes)) return `ERROR ${changes.left}`
  const [change] = changes.right
  if (change?._tag !== "Update") return "ERROR no update"
  return Either.merge(Either.mapLeft(Apply.apply(before, change.hunks), (why) => `ERROR ${why}`))
}
