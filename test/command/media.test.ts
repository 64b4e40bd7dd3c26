/** What tools make: files in the sandbox, files under the run folder's media/, and never bytes of them in a row. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import * as Espeak from "../../src/tools/speech/Espeak.ts"
import * as Variables from "../../src/tools/Variables.ts"
import { Workplace } from "../support/Command.ts"
import { serve } from "../support/Talk.ts"
import { png } from "../tools/made.ts"

const steps = (folder: string) => [
  { name: "image_generate", arguments: { prompt: "A red fox", aspect_ratio: "square" } },
  { name: "text_to_speech", arguments: { text: "A red fox", output_path: "fox.wav" } },
  { name: "execute_code", arguments: { code: "open('six.txt', 'w').write('6')\nprint(2 * 3)" } },
  {
    name: "terminal",
    arguments: { command: `ls images fox.wav six.txt; head -c 4 images/* | tail -c 3; ls -d ${folder} 2>&1` }
  }
]

const script = (folder: string) => ({
  default: [
    ...steps(folder).map((call) => ({ reasoning: "next", tool_calls: [call] })),
    { reasoning: "all there", content: "done" }
  ]
})

const speaks = Espeak.find(Variables.none) !== undefined || process.env.CI !== undefined
const toolsets = { image_gen: 100, ...(speaks ? { tts: 100 } : {}), code_execution: 100, terminal: 100 }

/** A run whose model calls each tool once; pictures come from a server. */
const work = async () => {
  const place = new Workplace()
  const picture = await png()
  const server = await serve(() => ({
    body: { data: [{ b64_json: picture.toString("base64") }], usage: { total_tokens: 50, cost: 0.02 } }
  }))
  place.dataset(["one", "two"])
  place.write("tools.json", JSON.stringify({ toolsets }))
  place.write("script.json", JSON.stringify(script(place.path("data", "run", "media"))))
  const run = (more: object = {}) =>
    place.run(server, {
      ...{ model: "scripted:script.json", image_model: "gpt-image-1", distribution: "tools.json", batch_size: 1 },
      ...more
    })
  return { place, server, picture, run }
}

test("A run leaves each file once under its hash, names it in its rows, and goes on with --resume", async () => {
  const { place, server, picture, run } = await work()
  const first = await run()
  expect(first.code, first.stderr).toBe(0)
  const media = () => readdirSync(place.path("data", "run", "media")).toSorted()
  const hash = (name: string) =>
    createHash("sha256")
      .update(readFileSync(place.path("data", "run", "media", name)))
      .digest("hex")
      .slice(0, 32)
  expect(media()).toHaveLength(speaks ? 2 : 1)
  for (const name of media()) expect(name.split(".")[0]).toBe(hash(name))
  const kept = media()

  const rows = place.rows()
  expect(rows).toHaveLength(2)
  for (const row of rows) {
    expect(row.toolsets_used.toSorted()).toEqual(Object.keys(toolsets).toSorted())
    for (const name of ["image_generate", "execute_code", "terminal", ...(speaks ? ["text_to_speech"] : [])]) {
      expect(row.tool_stats[name]).toEqual({ count: 1, success: 1, failure: 0 })
    }
    const results = Object.fromEntries(
      row.conversations.filter(({ from }) => from === "tool").map(({ name, value }) => [name, JSON.parse(value)])
    )
    expect(media()).toContain(results.image_generate.media.replace("media/", ""))
    expect(results.execute_code).toEqual({ status: "success", output: "6\n", error: "" })
    const image = results.image_generate.image.replace("images/", "")
    expect(results.terminal.output).toContain(`six.txt\n\nimages:\n${image}\nPNG`)
    expect(results.terminal.output.includes("fox.wav")).toBe(speaks)
    // Only the tool's own result names the folder, and commands do not see it.
    expect(results.terminal.output).toContain("No such file or directory")
    // What a picture costs is the session's.
    expect(row.metadata.usage.cost_usd).toBe(0.02)
  }
  for (const text of [place.text("trajectories.jsonl"), first.stdout, first.stderr]) {
    expect(text).not.toContain(picture.toString("base64").slice(0, 40))
  }
  expect(place.json("statistics.json")).toMatchObject({ cost_usd: 0.04 })

  place.dataset(["one", "two", "three"])
  const second = await run({ resume: true })
  expect(second.code, second.stderr).toBe(0)
  expect([place.rows().map((row) => row.prompt_index), server.requests.length]).toEqual([[0, 1, 2], 3])
  expect(media()).toEqual(kept)
})

test("A folder with nothing but media is no run's results, and a file in its place stops no session", async () => {
  const { place, run } = await work()
  mkdirSync(place.path("data", "run", "media"), { recursive: true })
  writeFileSync(place.path("data", "run", "media", "old.png"), "old")
  const first = await run({ max_samples: 1 })
  expect(first.code, first.stderr).toBe(0)
  expect(existsSync(place.path("data", "run", "media", "old.png"))).toBe(true)

  const blocked = await work()
  mkdirSync(blocked.place.path("data", "run"), { recursive: true })
  writeFileSync(blocked.place.path("data", "run", "media"), "a file")
  const ended = await blocked.run({ max_samples: 1 })
  expect(ended.code, ended.stderr).toBe(0)
  const [row] = blocked.place.rows()
  expect(row?.tool_stats.image_generate).toEqual({ count: 1, success: 0, failure: 1 })
  expect(row?.conversations.find(({ name }) => name === "image_generate")?.value).toContain("cannot be kept")
})
