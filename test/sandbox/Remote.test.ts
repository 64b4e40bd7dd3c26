/** A census of the processes inside is read right, whatever they are called. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Remote from "../../src/sandbox/Remote.ts"

/** The text of /proc/<pid>/stat. */
const stat = (pid: number, name: string, { state = "S", parent = 1, session = pid, started = 100 } = {}): string =>
  `${pid} (${name}) ${state} ${parent} ${pid} ${session} 0 -1 4194560 94 0 0 0 0 0 0 0 20 0 1 0 ${started} 2281472 122 ${"0 ".repeat(20)}17 1 0 0 0 0 0 -1 0 0 0 0 0 0 0\n`

/** What the script prints, itself as process 50 included. */
const census = (mine: ReadonlyArray<number>, marked: ReadonlyArray<number>, stats: ReadonlyArray<string>): string => {
  const paths = (pids: ReadonlyArray<number>) => pids.map((pid) => `/proc/${pid}/environ\n`).join("")
  return `\x1e50\n${paths(mine)}any\n${paths(marked)}all\n${stats.join("")}${stat(50, "sh", { started: 900 })}`
}

const calls = (text: string) =>
  Object.fromEntries(Remote.read(text, "the call").map(({ pid, call }) => [pid, call ?? "nobody"]))

describe("A census", () => {
  it("tells whose each process is: the call's, another's, its own, nobody's.", () => {
    const text = census(
      [7, 8],
      [7, 8, 9],
      [stat(1, "sh"), stat(7, "sleep", { parent: 5, session: 6, started: 42 }), stat(8, "a"), stat(9, "b")]
    )
    expect(calls(text)).toEqual({
      1: "nobody",
      7: "the call",
      8: "the call",
      9: "another call",
      50: "the census itself"
    })
    expect(Remote.read(text, "the call")[1]).toEqual({ pid: 7, parent: 5, session: 6, started: 42, call: "the call" })
  })

  it("leaves out the dead that nobody has reaped.", () => {
    expect(
      calls(census([7], [7], [stat(1, "sh"), stat(7, "x", { state: "Z" }), stat(8, "x", { state: "X" })]))
    ).toEqual({
      1: "nobody",
      50: "the census itself"
    })
  })

  const odd = [
    "",
    ")",
    "a) S 1 1",
    "(",
    "a b",
    "all",
    "any",
    "\nall\n",
    "x\nany\ny",
    "a\n1 (b",
    "/proc/7/environ",
    "\x1e9"
  ]

  it.each([...odd, "\n", "a\nb", ") Z 1\n8 (", "\ufffd", "x".repeat(15)])(
    "is not misled by a process that is called %j.",
    (name) => {
      const text = census([7], [7], [stat(1, "sh"), stat(7, name, { started: 42 }), stat(9, "after")])
      expect(calls(text)).toEqual({ 1: "nobody", 7: "the call", 9: "nobody", 50: "the census itself" })
      expect(Remote.read(text, "the call")[1]).toMatchObject({ pid: 7, parent: 1, started: 42 })
    }
  )

  it("is not misled by any name of fifteen bytes.", () => {
    const unit = fc.constantFrom("a", "1", " ", "(", ")", "\n", "S", "Z", "-")
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 15 }), fc.string({ unit, maxLength: 15 }), (one, other) => {
        const text = census([7, 8], [7, 8], [stat(7, one), stat(8, other)])
        expect(calls(text)).toEqual({ 7: "the call", 8: "the call", 50: "the census itself" })
      }),
      { numRuns: 1000 }
    )
  })

  it("that says less, where programs are missing, names nobody wrongly.", () => {
    expect(Remote.read("\x1e50\nany\nall\n", "the call")).toEqual([])
    expect(Remote.read("\x1e50\n", "the call")).toEqual([])
    expect(Remote.read("", "the call")).toEqual([])
    expect(calls(`\x1e50\nany\nall\n${stat(7, "x")}`)).toEqual({ 7: "nobody" })
  })

  it("of thousands of processes is read in no time.", () => {
    const pids = Array.from({ length: 5000 }, (_, at) => at + 100)
    const text = census(
      pids,
      pids,
      pids.map((pid) => stat(pid, "x\n("))
    )
    const before = performance.now()
    expect(Remote.read(text, "the call").length).toBe(5001)
    expect(performance.now() - before).toBeLessThan(1000)
  })
})
