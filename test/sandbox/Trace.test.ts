import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import * as Owner from "../../src/sandbox/Owner.ts"
import * as Trace from "../../src/sandbox/Trace.ts"

const before = process.env.TMPDIR
let folder = ""

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trace-test-"))
  process.env.TMPDIR = folder
})
afterEach(() => {
  rmSync(folder, { recursive: true })
  if (before === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = before
})

const dead = Owner.here().replace(/^\d+-\d+/, "999999-1")
const note = (backend: string, owner: string) => join(folder, `batch-runner.${backend}.${owner}`)

describe("A note of a run's sandboxes", () => {
  it("is there as long as its scope, and is not followed while its runner lives", async () => {
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          yield* Trace.leave("docker")
          expect(readdirSync(folder)).toEqual([`batch-runner.docker.${Owner.here()}`])
          yield* Trace.follow("docker", Effect.die("a live run's sandboxes were looked at"))
          expect(readdirSync(folder)).toHaveLength(1)
        })
      )
    )
    expect(readdirSync(folder)).toEqual([])
  })

  it("of a dead runner is followed once, for its own backend", async () => {
    writeFileSync(note("docker", dead), "")
    let looked = 0
    const clean = Effect.sync((): ReadonlyArray<string> => {
      looked++
      return ["a container"]
    })
    await Effect.runPromise(Trace.follow("modal", clean))
    expect(looked).toBe(0)
    await Effect.runPromise(Trace.follow("docker", clean))
    await Effect.runPromise(Trace.follow("docker", clean))
    expect(looked).toBe(1)
    expect(readdirSync(folder)).toEqual([])
  })

  it("stays when what it tells of could not be looked at", async () => {
    writeFileSync(note("docker", dead), "")
    await Effect.runPromise(Effect.flip(Trace.follow("docker", Effect.fail("no engine"))))
    expect(existsSync(note("docker", dead))).toBe(true)
  })
})
