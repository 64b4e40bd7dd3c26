/** Requests say to Anthropic's models what to keep of them, and rows say nothing of it. */
import { expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import { final, runs, serve, turnOf } from "../support/Talk.ts"

it("marks the requests of a session to an Anthropic model, unless --no_prompt_cache is given, and no row", async () => {
  const place = new Workplace()
  place.dataset(["only"])
  const prefill = place.write("prefill.json", JSON.stringify([{ role: "user", content: "Before." }]))
  const server = await serve((request) => (turnOf(request) < 3 ? runs("echo hello") : final("the end")))
  const options = {
    model: "anthropic/claude-sonnet-4.6",
    ephemeral_system_prompt: "Be brief.",
    prefill_messages_file: prefill
  }
  await place.complete(server, { ...options, run_name: "marked" })
  const marks = (text: string) => text.split('"cache_control":{"type":"ephemeral"}').length - 1
  expect(server.requests.map(({ text }) => marks(text))).toEqual([3, 4, 4, 4])
  const bare = server.requests.map(({ text }) => text.replaceAll(',"cache_control":{"type":"ephemeral"}', ""))
  for (const [place, text] of bare.slice(1).entries()) {
    expect(text.startsWith(bare[place]?.replace(/\]\}$/, "") ?? "none")).toBe(true)
  }
  await place.complete(server, { ...options, run_name: "plain", no_prompt_cache: true })
  expect(server.requests.slice(4).map(({ text }) => marks(text))).toEqual([0, 0, 0, 0])
  for (const name of place.names("marked")) expect(place.text(name, "marked")).not.toContain("cache_control")
  const turns = (run: string) => place.rows("trajectories.jsonl", run).map((row) => row.conversations)
  expect(turns("marked")).toEqual(turns("plain"))
})
