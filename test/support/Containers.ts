/** The containers of one run as the engine sees them, told apart by the run's name from those of every other test. */
import Dockerode from "dockerode"
import { onTestFinished } from "vitest"
import { jsonLines } from "../../src/sandbox/docker/Frames.ts"
import { type Environment, type Options, sleep } from "./Command.ts"

/** What a run needs to find the engine of the tests. */
export const environment: Environment = { DOCKER_HOST: process.env.DOCKER_HOST ?? "" }

const label = (run: string) => ({ label: [`batch-runner.run=${run}`] })

/** Whatever state they are in. */
export const list = (run: string) => new Dockerode().listContainers({ all: true, filters: label(run) })

/** Names of those there are. */
export const names = async (run: string): Promise<ReadonlyArray<string>> =>
  (await list(run)).map(({ Names, State }) => `${Names[0]} ${State}`)

let runs = 0

/** Options of a run under a name that no other has; its containers are gone after the test. */
export const options = (more: Options = {}, whenFinished: typeof onTestFinished = onTestFinished) => {
  const run = `c${process.pid}-${Date.now().toString(36)}-${runs++}`
  whenFinished(async () => {
    for (const { Id } of await list(run)) {
      await new Dockerode()
        .getContainer(Id)
        .remove({ force: true, v: true })
        .catch(() => {})
    }
  })
  return { run, given: { run_name: run, ...more } }
}

/** Waits until something holds of the number of containers, dead ones not counted. */
export const until = async (run: string, holds: (count: number) => boolean, millis = 30_000): Promise<void> => {
  const end = performance.now() + millis
  while (!holds((await list(run)).filter(({ State }) => State === "running").length)) {
    if (performance.now() > end) throw new Error(`not within ${millis} ms: ${holds}`)
    await sleep(20)
  }
}

/** Counts what the engine tells of the containers of a run from now on. */
export const watch = async (run: string) => {
  const seen = { made: [] as Array<number>, now: 0, most: 0 }
  const stream = await new Dockerode().getEvents({
    filters: { type: ["container"], event: ["create", "destroy"], ...label(run) }
  })
  const read = jsonLines((value) => {
    const { Action, timeNano } = Object(value)
    if (Action === "create") seen.made.push(Number(timeNano) / 1e6)
    seen.now += Action === "create" ? 1 : -1
    seen.most = Math.max(seen.most, seen.now)
  })
  stream.on("data", read)
  onTestFinished(() => {
    if ("destroy" in stream && typeof stream.destroy === "function") stream.destroy()
  })
  return seen
}
