import { Effect } from "effect"
import { expect, test } from "vitest"
import { get, inSandbox, put, sh, use } from "./support.ts"

test("A text in a file is replaced, and the diff shows it", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* put("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n")
      const { result } = yield* use("patch", { path: "a.txt", old_string: "5", new_string: "five" })
      expect(result).toEqual({
        success: true,
        diff: "--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
      })
      expect(yield* get("a.txt")).toBe("1\n2\n3\n4\nfive\n6\n7\n8\n")
    })
  ))

test("With replace_all every place is replaced, those that differ in white space too, and the diff shows each", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* put("a.txt", "old 1\nkeep\nold 2 old\n")
      const twice = yield* use("patch", { path: "a.txt", old_string: "old", new_string: "new" })
      expect(twice.result.error).toContain("old_string occurs 3 times, on lines 1, 3 and 3")
      const all = yield* use("patch", { path: "a.txt", old_string: "old", new_string: "new", replace_all: true })
      expect(all.result.diff).toContain("@@ -1,3 +1,3 @@\n-old 1\n+new 1\n keep\n-old 2 old\n+new 2 new\n")
      expect(yield* get("a.txt")).toBe("new 1\nkeep\nnew 2 new\n")
      yield* put("b.py", "if a:\n  x()\n  y()\nelse:\n\tx()\n\ty()\n")
      const tolerant = { path: "b.py", old_string: "    x()\n    y()", new_string: "    z()\n    y()" }
      expect((yield* use("patch", tolerant)).result.error).toContain("occurs 2 times, on lines 2 and 5")
      const both = yield* use("patch", { ...tolerant, replace_all: "true" })
      expect(both.result.diff.match(/^[-+] *\t*[xz]\(\)$/gm)).toEqual(["-  x()", "+  z()", "-\tx()", "+\tz()"])
      expect(yield* get("b.py")).toBe("if a:\n  z()\n  y()\nelse:\n\tz()\n\ty()\n")
    })
  ))

test("What cannot be patched is left as it is, with the reason", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* put("latin", Buffer.from([0x61, 0xe9, 0x0a]))
      const latin = yield* use("patch", { path: "latin", old_string: "a", new_string: "b" })
      expect(latin).toMatchObject({ ok: false, result: { error: expect.stringContaining("UTF-8") } })
      yield* sh("head -c 6000000 /dev/zero | tr '\\0' x > big; mkfifo pipe; mkdir dir")
      for (const [path, word] of [
        ["big", "5 MB"],
        ["pipe", "regular"],
        ["dir", "directory"],
        ["none", "exist"],
        ["a\0", "NUL"]
      ] as const) {
        const bad = yield* use("patch", { path, old_string: "x", new_string: "y" })
        expect(bad.ok).toBe(false)
        expect(bad.result.error).toContain(word)
      }
      expect((yield* use("patch", { path: "a" })).result.error).toContain(
        "old_string: is missing; new_string: is missing"
      )
      expect((yield* use("patch", { mode: "patch" })).result.error).toContain("patch: is missing")
    })
  ))

test("A byte-order mark and an executable's mode stay", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* put("bom", "\ufefffirst\nsecond\n")
      yield* use("patch", { path: "bom", old_string: " first", new_string: " FIRST" })
      expect(yield* get("bom")).toBe("\ufeffFIRST\nsecond\n")
      yield* put("run.sh", "echo a\n")
      yield* sh("chmod 755 run.sh")
      yield* use("patch", {
        patch: "*** Begin Patch\n*** Update File: run.sh\n*** Move to: bin/go.sh\n@@\n-echo a\n+echo b\n*** End Patch"
      })
      expect(yield* sh("./bin/go.sh; ls run.sh 2>/dev/null")).toBe("b\n")
    })
  ))

const many = `*** Begin Patch
*** Update File: src/a.py
@@ class B:
@@     def f(self):
-        return 1
+        return 2
*** Update File: old.txt
*** Move to: new/name.txt
@@
 keep
-this
+that
*** End of File
*** Add File: fresh.txt
+one
+
+three
*** Delete File: gone.txt
*** End Patch`

const stage = Effect.gen(function* () {
  const klass = (name: string) => `class ${name}:\n    def f(self):\n        return 1\n`
  yield* put("src/a.py", `${klass("A")}\n${klass("B")}`)
  yield* put("old.txt", "this\nkeep\nthis")
  yield* put("gone.txt", "bye\n")
})

test("A patch for several files updates, moves, adds and deletes", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* stage
      const { result } = yield* use("patch", { patch: many })
      expect(result).toMatchObject({
        success: true,
        files_modified: ["src/a.py"],
        files_created: ["new/name.txt", "fresh.txt"],
        files_deleted: ["old.txt", "gone.txt"]
      })
      expect(yield* get("src/a.py")).toContain(
        "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 2"
      )
      expect(yield* get("new/name.txt")).toBe("this\nkeep\nthat")
      expect(yield* get("fresh.txt")).toBe("one\n\nthree\n")
      expect(yield* sh("ls old.txt gone.txt 2>/dev/null | wc -l")).toMatch(/^\s*0\n$/)
      expect(result.diff).toContain("--- a/old.txt\n+++ b/new/name.txt")
    })
  ))

test("When one hunk does not fit, no file is changed", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* stage
      for (const bad of [
        many.replace("-this", "-absent"),
        many.replace("gone.txt", "not-there.txt"),
        many.replace("fresh.txt", "gone.txt"),
        many.replace("+one", "one")
      ]) {
        expect((yield* use("patch", { patch: bad })).ok).toBe(false)
        expect(yield* get("src/a.py")).not.toContain("return 2")
        expect(yield* get("old.txt")).toBe("this\nkeep\nthis")
      }
      const two = yield* use("patch", {
        patch: "*** Begin Patch\n*** Update File: src/a.py\n@@\n-        return 1\n+x\n*** End Patch"
      })
      expect(two.result.error).toContain("occur 2 times, on lines 3 and 7")
    })
  ))

test("When a file cannot be written, those before it get their old content back", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* stage
      const bad = yield* use("patch", {
        patch: `${many.replace("*** End Patch", "")}*** Add File: gone2.txt/x/\n+x\n*** Add File: src/a.py/below\n+x\n`
      })
      expect(bad.ok).toBe(false)
      expect(yield* get("src/a.py")).not.toContain("return 2")
      expect(yield* sh("find . -type f | sort")).toBe("./gone.txt\n./old.txt\n./src/a.py\n")
    })
  ))

test("A unified diff is taken too", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* put("a", "1\n2\n3\n")
      const diff =
        "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n--- /dev/null\n+++ b/n/b\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"
      const { result } = yield* use("patch", { patch: diff })
      expect(result).toMatchObject({ success: true, files_modified: ["a"], files_created: ["n/b"] })
      expect([yield* get("a"), yield* get("n/b")]).toEqual(["1\ntwo\n3\n", "new"])
      const bad = yield* use("patch", { patch: diff.replace("-1,3", "-1,9") })
      expect(bad.result.error).toContain("unified diff")
    })
  ))
