/** `batch-runner clean`: what dead runs left on this machine goes, what lives stays, and what cannot be looked at is named. */
import { existsSync, mkdirSync, readlinkSync } from "node:fs"
import { expect, it } from "vitest"
import { sandboxed, until, Workplace } from "../support/Command.ts"
import { final, runs, serve, turnOf } from "../support/Talk.ts"

/** No engine of this machine, and no account of its user. */
const alone = { DOCKER_HOST: "unix:///nowhere/docker.sock" }

const namespace = () => readlinkSync("/proc/self/ns/pid").replace(/\D/g, "")

it("says what it does, and what it does not take", async () => {
  const place = new Workplace()
  for (const word of ["--help", "-h"]) {
    const help = await place.start(["clean", word], alone).ended
    expect(help).toMatchObject({ code: 0, stderr: "" })
    expect(help.stdout).toMatch(/^batch-runner clean: removes .* left on this machine\.\n[^\n]+\n$/)
  }
  for (const word of ["nonsense", "--run_name=x", ""]) {
    expect(await place.start(["clean", word], alone).ended).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `batch-runner: clean: given ${JSON.stringify(word)}, allowed: nothing, or --help\n`
    })
  }
})

it("finds nothing where nothing was left, and names the engine that does not answer in one line", async () => {
  const place = new Workplace()
  const ended = await place.start(["clean"], alone).ended
  expect(ended).toMatchObject({ code: 0, stdout: "Nothing was found where it could be looked.\n" })
  expect(ended.stderr).toMatch(
    /^docker: not looked at: No container engine answers at unix:\/\/\/nowhere\/docker\.sock [^\n]+\n$/
  )
  expect(existsSync(place.path("data"))).toBe(false)
})

it("removes the folders of dead runs, with their processes, and nothing of a run that lives", async () => {
  const place = new Workplace()
  const dead = `batch-runner-4194304-5-${namespace()}-0`
  place.dataset(["a"])
  const server = await serve((request) =>
    turnOf(request) === 0 ? runs("echo kept > file; sleep 1003; cat file") : final()
  )
  const live = place.begin(server, { command_timeout: 100 })
  const sleeps = () => sandboxed(live.pid).some((line) => line.startsWith("sleep 1003"))
  await until(sleeps)
  // Made now, as a run looks for such at its start.
  mkdirSync(`${place.tmp}/${dead}/x/y`, { recursive: true })
  const ended = await place.start(["clean"], alone).ended
  expect(ended).toMatchObject({ code: 0, stdout: "Removed 1 folder of local sandboxes.\n" })
  expect(existsSync(`${place.tmp}/${dead}`)).toBe(false)
  expect(sleeps()).toBe(true)
  live.kill("SIGTERM")
  expect((await live.ended).code).toBe(143)
})
