/** The recipes of README.md that name an image run on Docker as they are written there. */
import { copyFileSync, mkdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import Dockerode from "dockerode"
import { beforeAll, expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as Engine from "../support/Engine.ts"

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const readme = readFileSync(file("README.md"), "utf8")
const recipes = readme.slice(readme.indexOf("## Recipes"), readme.indexOf("## Notes"))

/** Whole commands, and lists of options that go with any other. */
const commands = [...recipes.matchAll(/^npx --no-install (batch-runner .*--image=.*)$/gm)].map(([, line = ""]) => line)
const options = [...recipes.matchAll(/`(--[^`]*--max_sandboxes[^`]*)`/g)].map(([, line = ""]) => line)
const rows = [...recipes.matchAll(/`(\{"prompt"[^`]*"image"[^`]*\})`/g)].map(([, row = ""]): unknown => JSON.parse(row))

const image = "python:3.11-slim"

/** A folder with the data set that comes with the program; the model answers from a script. */
const place = () => {
  const folder = new Workplace()
  mkdirSync(folder.path("data"))
  for (const name of ["prompts.jsonl", "prompts.script.json"])
    copyFileSync(file(`data/${name}`), folder.path("data", name))
  return folder
}

const environment = { DOCKER_HOST: process.env.DOCKER_HOST ?? "" }

Engine.describe("A recipe", () => {
  beforeAll(async () => {
    // There is no way to the public registry from every machine; the name is what counts.
    const docker = new Dockerode()
    const stream = await docker.pull(Engine.image("python"))
    await new Promise((resolve) => stream.resume().on("end", resolve))
    await docker.getImage(Engine.image("python")).tag({ repo: "python", tag: "3.11-slim" })
  }, 120_000)

  it("is found in README.md", () => {
    expect([commands.length, options.length, rows.length]).toEqual([1, 1, 1])
  })

  it.each(commands)("such as %s", async (line) => {
    const folder = place()
    const { code, stderr } = await folder.shell(
      line.replace("batch-runner", "$BATCH_RUNNER --model=scripted"),
      environment
    ).ended
    expect(code, stderr).toBe(0)
    const made = folder.rows("trajectories.jsonl", "boxed")
    expect(made).toHaveLength(6)
    for (const { metadata } of made) expect(metadata).toMatchObject({ image, default_image: true, cwd: "/app" })
    for (const { tool_stats } of made) expect(Object.values(tool_stats).some(({ success }) => success > 0)).toBe(true)
  })

  it.each(options)("such as the options %s, with rows that name an image", async (line) => {
    const folder = place()
    folder.dataset(Array.from({ length: 6 }, (_, at) => ({ ...Object(rows[0]), prompt: `Prompt ${at}` })))
    const run = `$BATCH_RUNNER --dataset_file=prompts.jsonl --batch_size=10 --run_name=many --model=scripted --distribution=terminal_only ${line}`
    const { code, stderr } = await folder.shell(run, environment).ended
    expect(code, stderr).toBe(0)
    const made = folder.rows("trajectories.jsonl", "many")
    expect(made).toHaveLength(6)
    for (const { metadata } of made) expect(metadata).toMatchObject({ image, default_image: false, cwd: "/app" })
  })
})
