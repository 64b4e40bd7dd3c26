/** Runs that keep their answers, and runs that take them. */
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

/** Each session is two calls. */
const server = () =>
  serve((request) => (turnOf(request) === 0 ? runs("echo hello; pwd") : final(`the end of ${promptOf(request)}`)))

/** The last is the same as the first. */
const prompts = Array.from({ length: 6 }, (_, at) => `prompt ${at % 5}`)
const calls = 2 * prompts.length

const entries = (place: Workplace): ReadonlyArray<string> =>
  readdirSync(place.path("data", ".cache"), { recursive: true, encoding: "utf8" }).filter((name) => /\.\w+$/.test(name))

const conversations = (place: Workplace, run: string) =>
  place.rows("trajectories.jsonl", run).map((row) => row.conversations)

describe("A run with --cache", () => {
  it("is made again for nothing, and its conversations are the same", async () => {
    const place = new Workplace()
    place.dataset(prompts)
    const endpoint = await server()
    await place.complete(endpoint, { cache: true, run_name: "first" })
    expect(endpoint.requests.length).toBe(calls)
    expect(entries(place)).toHaveLength(calls)
    const ended = await place.complete(endpoint, { cache: true, run_name: "second" })
    expect(endpoint.requests.length).toBe(calls)
    expect(ended.stderr).not.toContain("cannot be kept")
    expect(conversations(place, "second")).toEqual(conversations(place, "first"))
    expect(place.rows("trajectories.jsonl", "second").map((row) => row.api_calls)).toEqual(prompts.map(() => 2))

    // Other samples are other calls, and so are runs without it.
    await place.complete(endpoint, { cache: true, run_name: "third", samples_per_prompt: 2 })
    expect(endpoint.requests.length).toBe(2 * calls)
    await place.complete(endpoint, { run_name: "fourth" })
    expect(endpoint.requests.length).toBe(3 * calls)
    expect(entries(place)).toHaveLength(2 * calls)
  })
  it("asks again for what is damaged, and no more than that", async () => {
    const place = new Workplace()
    place.dataset(prompts)
    const endpoint = await server()
    await place.complete(endpoint, { cache: true, run_name: "first" })
    for (const name of entries(place).slice(0, 5)) {
      const path = place.path("data", ".cache", name)
      writeFileSync(path, readFileSync(path).subarray(0, 90))
    }
    await place.complete(endpoint, { cache: true, run_name: "second" })
    expect(endpoint.requests.length).toBe(calls + 5)
    await place.complete(endpoint, { cache: true, run_name: "third" })
    expect(endpoint.requests.length).toBe(calls + 5)
  })
  it("shares its answers with another process that runs at the same time", async () => {
    const place = new Workplace()
    place.dataset(prompts)
    const endpoint = await server()
    await Promise.all(["first", "second"].map((run_name) => place.complete(endpoint, { cache: true, run_name })))
    expect(conversations(place, "second")).toEqual(conversations(place, "first"))
    const before = endpoint.requests.length
    expect(before).toBeLessThanOrEqual(2 * calls)
    // Every entry is whole, and nothing else is left.
    expect(entries(place)).toHaveLength(calls)
    await place.complete(endpoint, { cache: true, run_name: "third" })
    expect(endpoint.requests.length).toBe(before)
  })
  it("says once that the disk of its answers is full, and goes on", async ({ skip, onTestFinished }) => {
    const place = new Workplace()
    const disk = place.path("data", ".cache")
    mkdirSync(disk, { recursive: true })
    if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=24k", "tmpfs", disk], { stdio: "ignore" }).status !== 0) {
      if (process.env.CI !== undefined)
        throw new Error("a small file system cannot be mounted here, and CI must not skip this")
      console.log("skipped: no small file system can be mounted here, so a full disk was not tested")
      return skip()
    }
    onTestFinished(() => {
      spawnSync("umount", ["-l", disk])
    })
    place.dataset(prompts)
    const endpoint = await server()
    const ended = await place.complete(endpoint, { cache: true })
    expect(ended.stderr.match(/answers cannot be kept in [^\n]*ENOSPC/g)).toHaveLength(1)
    expect(place.rows()).toHaveLength(prompts.length)
    expect(entries(place).filter((name) => name.endsWith(".new"))).toEqual([])
  })
})
