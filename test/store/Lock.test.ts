/** One process at a time works on a run folder, and a dead one keeps nobody out. */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Lock from "../../src/store/Lock.ts"
import * as Folder from "../support/Folder.ts"

const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
const startOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19] ?? ""

/** Another process, alive until the scope ends. */
const other = Effect.acquireRelease(
  Effect.sync(() => spawn("sleep", ["600"], { stdio: "ignore" })),
  (child) => Effect.sync(() => child.kill("SIGKILL"))
).pipe(Effect.map(({ pid }) => pid ?? 0))

const lock = (owner: object | string, age = 0) =>
  Effect.gen(function* () {
    const folder = yield* Folder.scoped
    const path = join(folder, ".lock")
    yield* Effect.promise(() => writeFile(path, typeof owner === "string" ? owner : JSON.stringify(owner)))
    const seconds = Date.now() / 1000 - age
    yield* Effect.promise(() => utimes(path, seconds, seconds))
    return folder
  })

const hold = (folder: string) =>
  Effect.scoped(Lock.hold(folder)).pipe(
    Effect.as("held"),
    Effect.catchTag("StoreError", (error) => Effect.succeed(`${error.reason}: ${error.message}`))
  )

describe("The lock of a run folder", () => {
  it.scopedLive("keeps a second one out while it is held, and leaves nothing behind.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const inside = yield* Effect.scoped(Effect.zipRight(Lock.hold(folder), hold(folder)))
      expect(inside).toBe(
        `Busy: ${folder} is in use by another batch-runner (process ${process.pid} on ${hostname()}); wait for it, or use another --run_name`
      )
      expect(readdirSync(folder)).toEqual([])
      expect(yield* hold(folder)).toBe("held")
    })
  )
  it.scopedLive(
    "is had by one of many that come at once, also when they find a dead one's.",
    () =>
      Effect.forEach(
        Array.from({ length: 40 }),
        () =>
          Effect.gen(function* () {
            const folder = yield* lock({ pid: 2 ** 22 + 1, started: "1", host: hostname(), boot })
            let answers = 0
            // Who has it lets go of it when all others have their answer.
            const contenders = 12
            const allAnswered = Effect.repeat(Effect.sleep("5 millis"), { until: () => answers === contenders })
            const all = yield* Effect.forEach(
              Array.from({ length: contenders }),
              () =>
                Effect.zipRight(
                  Lock.hold(folder),
                  Effect.suspend(() => {
                    answers++
                    return Effect.as(allAnswered, "held")
                  })
                ).pipe(
                  Effect.scoped,
                  Effect.catchTag("StoreError", ({ reason }) => {
                    answers++
                    return Effect.succeed(reason)
                  })
                ),
              { concurrency: "unbounded" }
            )
            expect(all.toSorted()).toEqual([...Array.from({ length: contenders - 1 }, () => "Busy"), "held"])
            expect(readdirSync(folder)).toEqual([])
          }),
        { discard: true }
      ),
    60_000
  )
  it.scopedLive("of another living process is respected, however old.", () =>
    Effect.gen(function* () {
      const pid = yield* other
      const folder = yield* lock({ pid, started: startOf(pid), host: hostname(), boot }, 10_000)
      expect(yield* hold(folder)).toMatch(`Busy: ${folder} is in use by another batch-runner (process ${pid} on `)
      expect(readdirSync(folder)).toEqual([".lock"])
    })
  )
  it.scopedLive("of a dead process, a reused process number or an earlier start of the machine is taken over.", () =>
    Effect.gen(function* () {
      const pid = yield* other
      for (const owner of [
        { pid: 2 ** 22 + 1, started: "1", host: hostname(), boot },
        { pid, started: `${Number(startOf(pid)) - 1}`, host: hostname(), boot },
        { pid, started: startOf(pid), host: hostname(), boot: "earlier" },
        "",
        "{"
      ]) {
        const folder = yield* lock(owner)
        expect(yield* hold(folder), JSON.stringify(owner)).toBe("held")
        expect(readdirSync(folder)).toEqual([])
      }
    })
  )
  it.scopedLive(
    "leaves no unfinished file of a runner that was killed as it asked for it, and spares one that asks now.",
    () =>
      Effect.gen(function* () {
        const folder = yield* Folder.scoped
        for (const [name, age] of [
          [".lock.999999.1", 1000],
          [".lock.999999.2", 0]
        ] as const) {
          yield* Effect.promise(() => writeFile(join(folder, name), ""))
          yield* Effect.promise(() => utimes(join(folder, name), Date.now() / 1000 - age, Date.now() / 1000 - age))
        }
        expect(yield* hold(folder)).toBe("held")
        expect(readdirSync(folder)).toEqual([".lock.999999.2"])
      })
  )
  it.scopedLive("of another machine is respected while that gives signs of life.", () =>
    Effect.gen(function* () {
      const owner = { pid: 1, started: "1", host: "elsewhere", boot: "other" }
      expect(yield* hold(yield* lock(owner, 60))).toMatch(/^Busy: .*\(process 1 on elsewhere\)/)
      expect(yield* hold(yield* lock(owner, 130))).toBe("held")
    })
  )
})
