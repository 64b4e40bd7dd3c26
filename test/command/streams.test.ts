/** The streams around the command: readers that leave, input that never comes. */
import { expect, it } from "vitest"
import { sleep, Workplace } from "../support/Command.ts"
import { final, runsThenEnds, serve } from "../support/Talk.ts"

const typed = (place: Workplace, url: string) =>
  place
    .argv({ url }, { verbose: true, batch_size: 5 })
    .map((word) => `'${word}'`)
    .join(" ")

it.for([
  ["the summary's reader leaves", "$BATCH_RUNNER ARGV | head -c 10"],
  ["the log's reader leaves", "$BATCH_RUNNER ARGV 2>&1 >/dev/null | head -c 10"],
  ["the readers of both leave", "$BATCH_RUNNER ARGV 2>&1 | head -c 10"],
  ["nobody ever reads", "$BATCH_RUNNER ARGV 2>&1 | true"],
  ["both streams are closed", "$BATCH_RUNNER ARGV >&- 2>&-"]
] as const)("runs to its end when %s", async ([, line]) => {
  const place = new Workplace()
  const prompts = Array.from({ length: 20 }, (_, at) => `prompt ${at}`)
  place.dataset(prompts)
  const server = await serve(async () => {
    await sleep(20)
    return final("words ".repeat(500))
  })
  const command = line.replace("ARGV", typed(place, server.url))
  const ended = await place.shell(`${command}; echo "code \${PIPESTATUS[0]}" >&2`).ended
  expect(ended.stderr).toContain("code 0\n")
  expect(place.rows().length).toBe(20)
  expect(place.json("statistics.json")).toMatchObject({ total_prompts: 20 })
  expect(place.names().filter((name) => name.startsWith("."))).toEqual([])
})

it("says in one line that standard output takes no more, and has its results all the same", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(() => final())
  const ended = await place.shell(`$BATCH_RUNNER ${typed(place, server.url)} >/dev/full; echo "code $?" >&2`).ended
  expect(ended.stderr).toContain("batch-runner: standard output takes no more: ENOSPC")
  expect(ended.stderr).toContain("code 0\n")
  expect(ended.stderr).not.toMatch(/^\s+at /m)
  expect(place.rows().length).toBe(1)
})

it("reads no standard input, and gives none to the commands of tools", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(runsThenEnds('cat; read line; echo "got [$line]"'))
  const ended = await place.shell(`yes mine | $BATCH_RUNNER ${typed(place, server.url)}`).ended
  expect(ended.code, ended.stderr).toBe(0)
  const result = place.rows()[0]?.conversations[2]?.value
  expect(JSON.parse(result ?? "")).toEqual({ output: "got []\n", exit_code: 0, error: "" })
})
