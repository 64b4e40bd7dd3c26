/** A disk without room, or one that must not be written to, ends in a sentence and in files without half lines. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import * as Disk from "../../src/store/Disk.ts"
import * as Jsonl from "../../src/store/Jsonl.ts"
import * as Resume from "../../src/store/Resume.ts"
import { Store, StoreError } from "../../src/store/Store.ts"
import * as Folder from "../support/Folder.ts"
import * as Rows from "../support/Rows.ts"

/** A file system of 128 KiB, where this user can have one. */
const mount = (): string => {
  const path = mkdtempSync(join(tmpdir(), "batch-runner-small-"))
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=128k", "tmpfs", path], { stdio: "ignore" })
  return path
}
const unmount = (path: string): void => {
  execFileSync("umount", ["-l", path])
  rmSync(path, { recursive: true, force: true })
}
const canMount = Option.isSome(Option.liftThrowable(() => unmount(mount()))())
const small = Effect.acquireRelease(Effect.sync(mount), (path) => Effect.sync(() => unmount(path)))

const store = (folder: string) =>
  Jsonl.layer({
    folder,
    runName: "test",
    resume: true,
    toolNames: Rows.toolNames
  })

describe.runIf(canMount)("A full disk", () => {
  it.scopedLive("fails the save with what to do, and leaves whole lines only.", () =>
    Effect.gen(function* () {
      const folder = join(yield* small, "run")
      const saved = yield* Effect.gen(function* () {
        const { save } = yield* Store
        const big = (n: number) => Rows.kept({ prompt: `${n}`, answer: `<think>\n${"x".repeat(9000)}` })
        let count = 0
        for (; count < 50; count++) {
          const result = yield* Effect.either(save(big(count)))
          if (result._tag === "Right") continue
          expect(result.left.reason).toBe("NoSpace")
          expect(result.left.message).toMatch(
            /batch_0\.jsonl: no space left on the disk; free some, then go on with --resume$/
          )
          break
        }
        expect(yield* Effect.map(Store, ({ ledger }) => ledger.size)).toBe(count)
        return count
      }).pipe(Effect.provide(store(folder)))
      const content = readFileSync(join(folder, "batch_0.jsonl"), "utf8")
      expect(content.endsWith("}\n")).toBe(true)
      const prompts = content
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).conversations[0].value)
      expect(saved).toBeGreaterThan(3)
      expect(prompts).toEqual(Array.from({ length: saved }, (_, n) => `${n}`))
    })
  )
  it.scopedLive("goes on with the next row as soon as there is room again.", () =>
    Effect.gen(function* () {
      const root = yield* small
      const folder = join(root, "run")
      yield* Effect.gen(function* () {
        const { save } = yield* Store
        yield* save(Rows.kept({ prompt: "first" }))
        const free = Effect.sync(() => writeFileSync(join(root, "filler"), Buffer.alloc(112 * 1024)))
        yield* free
        expect((yield* Effect.flip(save(Rows.kept({ prompt: "b".repeat(20_000) })))).reason).toBe("NoSpace")
        rmSync(join(root, "filler"))
        yield* save(Rows.kept({ prompt: "last" }))
      }).pipe(Effect.provide(store(folder)))
      const lines = readFileSync(join(folder, "batch_0.jsonl"), "utf8").trimEnd().split("\n")
      expect(lines.map((line) => JSON.parse(line).conversations[0].value)).toEqual(["first", "last"])
    })
  )
  it.scopedLive("keeps the merged file of before, and nothing half written.", () =>
    Effect.gen(function* () {
      const root = yield* small
      const folder = join(root, "run")
      yield* Effect.gen(function* () {
        const { save, merge } = yield* Store
        const done = new Resume.Done(2, 1)
        yield* save(Rows.kept({ prompt: "a".repeat(20_000) }))
        yield* merge(done)
        const before = readFileSync(join(folder, "trajectories.jsonl"))
        yield* save(Rows.kept({ prompt: "b".repeat(20_000), place: 1 }))
        writeFileSync(join(root, "filler"), Buffer.alloc(32 * 1024))
        const error = yield* Effect.flip(merge(done))
        expect([error.reason, error.message]).toEqual([
          "NoSpace",
          `${folder}/trajectories.jsonl: no space left on the disk; free some, then go on with --resume`
        ])
        expect(readFileSync(join(folder, "trajectories.jsonl"))).toEqual(before)
        expect(readdirSync(folder).filter((name) => name.endsWith(".new"))).toEqual([])
      }).pipe(Effect.provide(store(folder)))
    })
  )
})

describe("A file that cannot be written", () => {
  it.scopedLive("is told in one line with its path.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      writeFileSync(join(folder, "file"), "")
      const error = yield* Effect.flip(Effect.provide(Store, store(join(folder, "file", "run"))))
      expect(error.message).toMatch(
        /^--output_dir: the folder \S+\/file\/run cannot be made, as a file is in its way; [^\n]+$/
      )
    })
  )
  it.each([
    ["ENOSPC", "NoSpace"],
    ["EDQUOT", "NoSpace"],
    ["EFBIG", "NoSpace"],
    ["EACCES", "NotAllowed"],
    ["EPERM", "NotAllowed"],
    ["EROFS", "NotAllowed"],
    ["EIO", "Other"]
  ])("because of %s has the reason %s.", (code, reason) => {
    const error = Disk.storeError("/run/x")(Object.assign(new Error(`${code}: some\nlines`), { code }))
    expect([error.reason, error.message.startsWith("/run/x: "), error.message.includes("\n")]).toEqual([
      reason,
      true,
      false
    ])
  })
  it("keeps an error that is ours already.", () => {
    const ours = new StoreError({ reason: "Busy", detail: "x" })
    expect(Disk.storeError("/y")(ours)).toBe(ours)
  })
})
