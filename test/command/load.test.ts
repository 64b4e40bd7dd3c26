/** Many prompts, slow prompts, large and strange texts. */
import { expect, it } from "vitest"
import { countByPython, sleep, until, Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

it("saves each of 1,000 prompts once, with as many in flight as there are workers", { timeout: 120_000 }, async () => {
  const place = new Workplace()
  const prompts = Array.from({ length: 1000 }, (_, at) => `prompt ${at}`)
  place.dataset(prompts)
  const server = await serve(async (request) => {
    await sleep(15)
    return final(`of ${promptOf(request)}`)
  })
  await place.complete(server, { num_workers: 32, batch_size: 64 })
  expect(place.rows().map((row) => row.conversations[0]?.value)).toEqual(prompts)
  expect(place.rows().map((row) => row.prompt_index)).toEqual(prompts.map((_, at) => at))
  expect(server.requests.length).toBe(1000)
  expect(server.inFlight.most).toBe(32)
  expect(place.batchNames().length).toBe(16)
  expect(await countByPython(place)).toMatchObject({
    "trajectories.jsonl": 1000,
    "batch_0.jsonl": 64,
    "batch_15.jsonl": 40
  })
})

it("keeps the other workers busy and their rows safe while one prompt is slow", async () => {
  const place = new Workplace()
  const prompts = Array.from({ length: 40 }, (_, at) => (at === 1 ? "slow" : `quick ${at}`))
  place.dataset(prompts)
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const server = await serve(async (request) => {
    if (promptOf(request) === "slow") await released
    return final()
  })
  const running = place.begin(server, { num_workers: 2, batch_size: 2 })
  // All others are done, and on disk, before the slow one is answered.
  await until(() => place.saved().length === 39, 25_000)
  expect(server.inFlight.now).toBe(1)
  release()
  expect((await running.ended).code).toBe(0)
  expect(place.rows().map((row) => row.conversations[0]?.value)).toEqual(prompts)
})

const strange: Readonly<Record<string, string>> = {
  unicode: "žluťoučký 漢字 🐎 e\u0301 \u200f\u0000\u0007",
  separators: "a\u2028b\u2029c\u0085d\u000be\u000cf\r\ng",
  surrogates: "high \ud83d low \udc0e end",
  large: "0123456789abcdef".repeat(65_536)
}

it("keeps every line readable to other languages, whatever stands in it", { timeout: 60_000 }, async () => {
  const place = new Workplace()
  const names = Object.keys(strange)
  // The prompts and their other fields are as strange as the answers.
  place.dataset(names.map((name) => ({ prompt: `${name}: ${strange[name]?.slice(0, 5000)}`, note: strange[name] })))
  const server = await serve((request) => {
    const text = strange[promptOf(request).split(":")[0] ?? ""] ?? ""
    if (turnOf(request) > 0) return final(text, text)
    return ModelServer.answer({
      reasoning: text,
      content: text,
      toolCalls: [
        { id: "1", name: "terminal", arguments: { command: "head -c 100000 /dev/urandom" } },
        {
          id: "2",
          name: "terminal",
          arguments: { command: "printf '\\xed\\xa0\\xbd|\\xe2\\x80\\xa8|\\xff\\x00|\\033[1m'" }
        },
        { id: "3", name: "write_file", arguments: { path: "f\u2028.txt", content: text } },
        { id: "4", name: "read_file", arguments: { path: "f\u2028.txt" } },
        { id: "5", name: "terminal", arguments: { command: `echo ${text.slice(0, 20)}` } }
      ]
    })
  })
  await place.complete(server, { batch_size: 2 })
  expect(await countByPython(place)).toEqual({ "trajectories.jsonl": 4, "batch_0.jsonl": 2, "batch_1.jsonl": 2 })
  const rows = place.rows()
  expect(rows.length).toBe(4)
  for (const [at, name] of names.entries()) {
    const text = (strange[name] ?? "").toWellFormed()
    const turns = rows[at]?.conversations ?? []
    expect(turns[0]?.value).toBe(`${name}: ${(strange[name] ?? "").slice(0, 5000).toWellFormed()}`)
    expect(turns.at(-1)?.value).toBe(`<think>\n${text.trim()}\n</think>\n${text}`)
    expect(turns.filter(({ from }) => from === "tool").map((turn) => turn.tool_call_id)).toEqual([
      "1",
      "2",
      "3",
      "4",
      "5"
    ])
  }
  for (const raw of ["\u2028", "\u2029"]) expect(place.text("trajectories.jsonl")).not.toContain(raw)
})

it("says nothing of a huge output but its head, its tail and what is missing", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve((request) =>
    turnOf(request) === 0 ? runs("echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last") : final()
  )
  await place.complete(server)
  const { output } = JSON.parse(place.rows()[0]?.conversations[2]?.value ?? "")
  expect(output).toMatch(/^first\n/)
  expect(output).toMatch(/last\n$/)
  expect(output.length).toBeLessThan(200_000)
})
