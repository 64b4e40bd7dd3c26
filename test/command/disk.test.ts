/** A disk that fills up in the middle of a run. */
import { spawnSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import { final, promptOf, serve } from "../support/Talk.ts"

const mount = (...words: ReadonlyArray<string>): boolean => spawnSync("mount", words, { stdio: "ignore" }).status === 0

it("ends a run with exit 1 and one clear line, tears no row, and goes on when there is room", async ({
  skip,
  onTestFinished
}) => {
  const place = new Workplace()
  const disk = place.path("data")
  mkdirSync(disk)
  if (!mount("-t", "tmpfs", "-o", "size=400k", "tmpfs", disk)) {
    if (process.env.CI !== undefined)
      throw new Error("a small file system cannot be mounted here, and CI must not skip this")
    console.log("skipped: no small file system can be mounted here, so a full disk was not tested")
    return skip()
  }
  onTestFinished(() => {
    spawnSync("umount", ["-l", disk])
  })
  const prompts = Array.from({ length: 40 }, (_, at) => `prompt ${at}`)
  place.dataset(prompts)
  const server = await serve((request) => final(`of ${promptOf(request)} ${"x".repeat(20_000)}`))
  const full = await place.run(server, { batch_size: 5 })
  expect(full).toMatchObject({ code: 1, stdout: "" })
  const said = full.stderr.split("\n").filter((line) => line.startsWith("batch-runner:"))
  expect(said.length).toBe(1)
  expect(said[0]).toMatch(/: no space left on the disk; free some, then go on with --resume$/)
  expect(full.stderr).not.toMatch(/^\s+at /m)
  const saved = place.batchRows().map((row) => row.conversations[0]?.value)
  expect(saved.length).toBeGreaterThan(5)
  expect(saved.length).toBeLessThan(40)
  expect(new Set(saved).size).toBe(saved.length)

  // Still full: the same end, and nothing worse.
  expect((await place.run(server, { batch_size: 5, resume: true })).code).toBe(1)
  expect(place.batchRows().length).toBeGreaterThanOrEqual(saved.length)

  expect(mount("-o", "remount,size=20m", disk)).toBe(true)
  const before = server.requests.length
  const kept = place.batchRows().length
  await place.complete(server, { batch_size: 5, resume: true })
  expect(server.requests.length - before).toBe(40 - kept)
  expect(place.rows().map((row) => row.conversations[0]?.value)).toEqual(prompts)
  expect(place.names().filter((name) => name.startsWith("."))).toEqual([])
})
