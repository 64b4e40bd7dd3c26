/** Killed at any instant, again and again: no row is lost, doubled, torn or paid for twice. */
import { existsSync, readdirSync } from "node:fs"
import { expect, it } from "vitest"
import { sandboxed, sleep, until, Workplace } from "../support/Command.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

const kills = 30

/** Numbers from 0 to 1 that are the same in every test run. */
const chances = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

const shuffled = <A>(items: ReadonlyArray<A>, chance: () => number): ReadonlyArray<A> =>
  items
    .map((item) => ({ item, rank: chance() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)

const counted = (items: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}

it(`survives kill -9 at ${kills} random instants, with the data set reordered each time`, {
  timeout: 300_000
}, async () => {
  const place = new Workplace()
  const chance = chances(20_260_115)
  // Every fourth prompt stands there more than once, some with tools that leave processes behind.
  const prompts = Array.from({ length: 400 }, (_, at) => (at % 4 === 0 ? `repeated ${at % 5}` : `prompt ${at}`))
  const server = await serve(async (request) => {
    await sleep(60 + chance() * 150)
    const tools = promptOf(request).endsWith("7") && turnOf(request) === 0
    return tools ? runs("setsid sleep 1000 & echo started") : final(`of ${promptOf(request)}`)
  })
  const options = { num_workers: 8, batch_size: 7, resume: true }
  const pids: Array<number> = []
  let grown = 0
  for (let round = 0; round < kills; round++) {
    place.dataset(shuffled(prompts, chance))
    const done = counted(place.saved())
    const before = server.requests.length
    const running = place.begin(server, options)
    pids.push(running.pid)
    // Half of them by the clock, while it starts or works; half after the next request but eight: then a row has been saved.
    if (round % 2 === 0) await sleep(50 + chance() * 650)
    else {
      const enough = before + 9 + Math.floor(chance() * 16)
      await Promise.race([until(() => server.requests.length >= enough), running.ended])
      await sleep(chance() * 100)
    }
    running.kill("SIGKILL")
    await running.ended
    const asked = counted(
      server.requests
        .slice(before)
        .filter((request) => turnOf(request) === 0)
        .map(promptOf)
    )
    const wanted = counted(prompts)
    for (const [prompt, times] of asked) {
      expect(times, `${prompt} in round ${round}`).toBeLessThanOrEqual(
        (wanted.get(prompt) ?? 0) - (done.get(prompt) ?? 0)
      )
    }
    // What was saved stays saved.
    const now = counted(place.saved())
    for (const [prompt, times] of done) expect(now.get(prompt)).toBeGreaterThanOrEqual(times)
    grown += place.saved().length > [...done.values()].reduce((sum, count) => sum + count, 0) ? 1 : 0
  }
  expect(grown, "rounds that got something done").toBeGreaterThan(9)

  const last = shuffled(prompts, chance)
  place.dataset(last)
  const ended = await place.run(server, options)
  expect(ended.code, ended.stderr.slice(-2000)).toBe(0)
  const rows = place.rows()
  expect(rows.map((row) => row.prompt_index)).toEqual(last.map((_, at) => at))
  expect(rows.map((row) => row.conversations[0]?.value)).toEqual(last)
  for (const row of rows)
    expect(row.conversations.at(-1)?.value).toMatch(new RegExp(`\\nof ${row.conversations[0]?.value}$`))
  expect(counted(place.saved())).toEqual(counted(prompts))
  expect(place.json("checkpoint.json")).toMatchObject({ completed_prompts: [[0, 399]] })
  expect(place.names().filter((name) => name.startsWith("."))).toEqual([])
  expect(pids.flatMap(sandboxed)).toEqual([])
  expect(existsSync(place.tmp) ? readdirSync(place.tmp) : []).toEqual([])
})
