/** Only what is dead for certain is called dead: what a live process holds is never cleared away. */
import { spawn, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { describe, expect, it, onTestFinished } from "vitest"
import * as Owner from "../../src/sandbox/Owner.ts"

const [pid = "", started = "", space = ""] = Owner.here().split("-")

/** A process of ours, and when it started. */
const child = () => {
  const sleeper = spawn("sleep", ["100"])
  onTestFinished(() => {
    sleeper.kill("SIGKILL")
  })
  const text = readFileSync(`/proc/${sleeper.pid}/stat`, "latin1")
  return { sleeper, owner: `${sleeper.pid}-${text.slice(text.lastIndexOf(")") + 2).split(" ")[19]}-${space}` }
}

describe("An owner", () => {
  it("is named by its process, the start of that, and the namespace that counts it.", () => {
    expect(Owner.here()).toMatch(/^\d+-\d+-\d+$/)
    expect(Owner.here()).toBe(Owner.here())
    expect(Number(pid)).toBe(process.pid)
  })

  it("that lives is not dead, with whatever stands behind its name.", async () => {
    for (const more of ["", "-0", "-7-t0-1"]) expect(Owner.isDead(Owner.here() + more)).toBe(false)
    const { owner, sleeper } = child()
    expect(Owner.isDead(`${owner}-3`)).toBe(false)
    const ended = new Promise((resolve) => sleeper.once("exit", resolve))
    sleeper.kill("SIGKILL")
    await ended
    expect(Owner.isDead(`${owner}-3`)).toBe(true)
  })

  it("whose process number is another's now is dead.", () => {
    expect(Owner.isDead(`${pid}-${Number(started) + 1}-${space}-0`)).toBe(true)
    expect(Owner.isDead(`${pid}-1-${space}`)).toBe(true)
    expect(Owner.isDead(`4194304-5-${space}-0`)).toBe(true)
  })

  it("whose start no system tells is dead when there is no process of that number.", () => {
    expect(Owner.isDead(`${pid}-0-${space}-0`)).toBe(false)
    expect(Owner.isDead(`1-0-${space}`)).toBe(false)
    expect(Owner.isDead(`4194304-0-${space}`)).toBe(true)
    const { pid: gone } = spawnSync("true")
    expect(Owner.isDead(`${gone}-0-${space}`)).toBe(true)
  })

  it("of another namespace may live there.", () => {
    expect(Owner.isDead(`4194304-5-${Number(space) + 1}-0`)).toBe(false)
    expect(Owner.isDead("4194304-5-0")).toBe(false)
    expect(Owner.isDead("4194304-5")).toBe(false)
  })

  it.each([
    "",
    "-",
    "x",
    `x-1-${space}`,
    `0-1-${space}`,
    `-1-1-${space}`,
    ` 1-1-${space}`,
    `1e9-1-${space}`,
    `-${space}`
  ])("that is none is not dead: %j.", (owner) => {
    expect(Owner.isDead(owner)).toBe(false)
  })
})

it("A machine has a name that is the same for all that runs on it until it starts again.", () => {
  expect(Owner.machine()).toMatch(/^[\w-]{8,}$/)
  expect(Owner.machine()).toBe(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim())
})
