/** A run with every toolset: the model is scripted, all its tools are real, and nothing of them is left behind. */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { deflateSync } from "node:zlib"
import { expect, it } from "vitest"
import * as Catalogue from "../../src/tools/Catalogue.ts"
import * as Espeak from "../../src/tools/speech/Espeak.ts"
import * as Variables from "../../src/tools/Variables.ts"
import { sandboxed, until, Workplace } from "../support/Command.ts"
import * as PageServer from "../support/PageServer.ts"
import { chromium } from "../tools/browser/support.ts"

const crc = (bytes: Buffer): number => {
  let sum = ~0
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0)
  }
  return ~sum >>> 0
}

const chunk = (name: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data])
  const frame = Buffer.alloc(8 + body.length)
  frame.writeUInt32BE(data.length)
  body.copy(frame, 4)
  frame.writeUInt32BE(crc(body), 4 + body.length)
  return frame
}

/** A red picture of 16 by 16 dots. */
const png = Buffer.concat([
  Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
  chunk("IHDR", Buffer.from([0, 0, 0, 16, 0, 0, 0, 16, 8, 2, 0, 0, 0])),
  chunk(
    "IDAT",
    deflateSync(
      Buffer.concat(Array.from({ length: 16 }, () => Buffer.from([0, ...Array(16).fill([255, 0, 0]).flat()])))
    )
  ),
  chunk("IEND", Buffer.alloc(0))
])

const page = (title: string, body: string) =>
  `<!doctype html><html><head><title>${title}</title></head><body>${body}</body></html>`

/** The part of the internet that the tools need: a search engine, two pages, a picture, and the endpoint's images. */
const world = () =>
  PageServer.start(({ path }) => {
    const html = (body: string) => ({ headers: { "content-type": "text/html" }, body })
    switch (path.split("?")[0]) {
      case "/search":
        return { body: { results: [{ url: "http://example.org/", title: "Found", content: "What was sought." }] } }
      case "/article":
        return html(page("Article", `<article><h1>Article</h1>${"<p>A paragraph of it.</p>".repeat(30)}</article>`))
      case "/form":
        return html(
          page(
            "Form",
            `<h1>Form</h1><input aria-label="Name"><button onclick="document.title='Sent'">Send</button><img src="/dot.png" alt="dot">`
          )
        )
      case "/dot.png":
        return { headers: { "content-type": "image/png" }, body: png }
      case "/v1/images/generations":
        return { body: { data: [{ b64_json: png.toString("base64") }] } }
      default:
        return { status: 404, body: "nothing" }
    }
  })

/** Arguments of one call of each tool, in an order in which each finds what it needs; `refs` of the page are e2, e3 and so on. */
const calls = (url: string): ReadonlyArray<readonly [string, object]> => [
  ["web_search", { query: "what is sought" }],
  ["web_extract", { urls: [`${url}/article`] }],
  ["image_generate", { prompt: "a red square", aspect_ratio: "square" }],
  ["vision_analyze", { image_url: `${url}/dot.png`, question: "Which colour?" }],
  ["terminal", { command: "sleep 1000", background: true }],
  ["process", { action: "list" }],
  ["write_file", { path: "a.txt", content: "one\n" }],
  ["read_file", { path: "a.txt" }],
  ["patch", { path: "a.txt", old_string: "one", new_string: "two" }],
  ["search_files", { pattern: "two" }],
  ["mixture_of_agents", { user_prompt: "What is six times seven?" }],
  ["browser_navigate", { url: `${url}/form` }],
  ["browser_snapshot", { full: true }],
  ["browser_type", { ref: "e3", text: "Ada" }],
  ["browser_click", { ref: "e4" }],
  ["browser_press", { key: "Tab" }],
  ["browser_scroll", { direction: "down" }],
  ["browser_get_images", {}],
  ["browser_vision", { question: "What is on the page?" }],
  ["browser_navigate", { url: `${url}/article` }],
  ["browser_back", {}],
  ["browser_close", {}]
]

const script = (all: ReadonlyArray<readonly [string, object]>) => ({
  prompts: {},
  default: [
    ...all.map(([name, args]) => ({ reasoning: "Next.", tool_calls: [{ name, arguments: args }] })),
    { reasoning: "All done.", content: "I used all of them." }
  ]
})

/** Command lines of processes that know the folder of the test. */
const processesOf = (folder: string): ReadonlyArray<string> =>
  readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ")
      return line.includes(folder) ? [line] : []
    } catch {
      return []
    }
  })

const options = (url: string) => ({
  dataset_file: "prompts.jsonl",
  batch_size: 10,
  run_name: "run",
  model: "scripted:script.json",
  base_url: `${url}/v1`,
  image_model: "painter",
  max_turns: 50,
  strict_toolsets: true,
  allow_private_network: true
})

const expectWorked = (place: Workplace, tools: ReadonlyArray<string>) => {
  const [row] = place.rows()
  const results = (row?.conversations ?? []).filter(({ from }) => from === "tool")
  const failed = results.filter(({ value }) => "error" in JSON.parse(value) && JSON.parse(value).error !== "")
  expect(failed.map(({ name, value }) => `${name}: ${value}`)).toEqual([])
  const stats = row?.tool_stats ?? {}
  const worked = Object.keys(stats).filter((name) => (stats[name]?.success ?? 0) > 0 && stats[name]?.failure === 0)
  expect(worked.toSorted()).toEqual(tools.toSorted())
  expect(row).toMatchObject({ completed: true, partial: false })
  expect(JSON.stringify(row)).not.toContain(png.toString("base64").slice(0, 40))
}

const expectNothingLeft = async (place: Workplace, runner: number) => {
  expect(sandboxed(runner)).toEqual([])
  await until(() => processesOf(place.root).length === 0, 5000).catch(() => {})
  expect(processesOf(place.root)).toEqual([])
  expect(readdirSync(place.tmp)).toEqual([])
}

/** Left out only where something is missing, and never in CI. */
const inCi = process.env.CI !== undefined
const runs = (program: string) => spawnSync(program, ["--version"]).status === 0
const all = chromium !== "" && Espeak.find(Variables.none) !== undefined && runs("python3")

it.skipIf(chromium === "" && !inCi)(
  "Every tool of the default distribution works, and leaves no browser, file or process behind",
  async () => {
    const { url } = await world()
    const place = new Workplace()
    place.dataset(["Use everything."])
    place.write("script.json", JSON.stringify(script(calls(url))))
    const run = place.begin({ url }, { ...options(url), distribution: "default" }, { SEARXNG_URL: url })
    const ended = await run.ended
    expect(ended.code, ended.stderr).toBe(0)
    const names = new Set(calls(url).map(([name]) => name))
    expectWorked(
      place,
      Catalogue.toolNames.filter((name) => names.has(name))
    )
    expect(place.rows()[0]?.toolsets_used.toSorted()).toEqual([
      "browser",
      "file",
      "image_gen",
      "moa",
      "terminal",
      "vision",
      "web"
    ])
    const media = readdirSync(place.path("data", "run", "media"))
    expect(media).toEqual([`${createHash("sha256").update(png).digest("hex").slice(0, 32)}.png`])
    await expectNothingLeft(place, run.pid)
  }
)

it.skipIf(!all && !inCi)("Every tool there is works in several prompts at once", async () => {
  const { url } = await world()
  const place = new Workplace()
  place.dataset(["One.", "Two.", "Three."])
  const every = [
    ...calls(url),
    ["text_to_speech", { text: "Six times seven is forty-two." }],
    ["todo", { todos: [{ id: "a", content: "use all" }] }],
    ["execute_code", { code: "print(6 * 7)" }]
  ] as const
  place.write("script.json", JSON.stringify(script(every)))
  place.write("all.json", JSON.stringify({ toolsets: Object.fromEntries(Catalogue.names.map((name) => [name, 100])) }))
  const run = place.begin({ url }, { ...options(url), distribution: "all.json" }, { SEARXNG_URL: url })
  const ended = await run.ended
  expect(ended.code, ended.stderr).toBe(0)
  expect(place.rows()).toHaveLength(3)
  expectWorked(place, Catalogue.toolNames)
  await expectNothingLeft(place, run.pid)
})
