/** What must be found in no file, no log and no sandbox. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import { runsThenEnds, serve } from "../support/Talk.ts"

const key = "sk-test-0123456789abcdef"
const ephemeral = "EPHEMERAL-words-of-the-system"
const prefilled = "PREFILLED-words-before-the-prompt"
const environment = { BATCH_RUNNER_API_KEY: key, OPENAI_API_KEY: `${key}-other`, MY_PASSWORD: `${key}-third` }

/** All bytes of all files below a folder. */
const everything = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n")

it("keeps ephemeral prompt, prefill and keys out of files, log, summary and sandboxes", async () => {
  const place = new Workplace()
  place.dataset(["look around"])
  place.write("prefill.json", JSON.stringify([{ role: "user", content: prefilled }]))
  const looks = [
    "env; set",
    "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'",
    `cat '${place.path("prefill.json")}' 2>&1; ls -R '${place.path("data")}' 2>&1; echo looked`
  ]
  const server = await serve(runsThenEnds(...looks))
  const ended = await place.run(
    server,
    {
      verbose: true,
      log_prefix_chars: 100_000,
      ephemeral_system_prompt: ephemeral,
      prefill_messages_file: "prefill.json"
    },
    environment
  )
  expect(ended.code, ended.stderr).toBe(0)
  expect(server.requests[0]?.text).toContain(ephemeral)
  expect(server.requests[0]?.text).toContain(prefilled)
  const results = place.rows()[0]?.conversations.filter(({ from }) => from === "tool")
  expect(results?.[0]?.value).toContain("PATH=")
  expect(results?.[1]?.value).toContain("HOME=")
  expect(results?.[2]?.value).toContain("looked")
  const seen = everything(place.path("data")) + ended.stdout + ended.stderr
  for (const secret of [key, ephemeral, prefilled]) expect(seen).not.toContain(secret)
})

it("takes a key given on the command line, and hides that too", async () => {
  const place = new Workplace()
  place.dataset(["look around"])
  const server = await serve(runsThenEnds("env; cat /proc/*/cmdline | tr '\\0' ' '"))
  const ended = await place.run(server, { api_key: key, verbose: true, log_prefix_chars: 10_000 })
  expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${key}`)
  expect(ended.code, ended.stderr).toBe(0)
  expect(everything(place.path("data")) + ended.stdout + ended.stderr).not.toContain(key)
})

it.each([401, 400])("shows no key that the endpoint repeats in its error: HTTP %d", async (status) => {
  const place = new Workplace()
  place.dataset(["a", "b"])
  const server = await serve((request) =>
    ModelServer.error(
      status,
      `Incorrect API key provided: ${request.headers.authorization}. Look: ${key.slice(0, 12)}***`
    )
  )
  const ended = await place.run(server, { verbose: true }, environment)
  expect(ended.code).toBe(1)
  // What stops the run is told; what fails a prompt is written down.
  const told = status === 401 ? ended.stderr : (place.failures()[0]?.message ?? "")
  expect(told).toMatch(new RegExp(`HTTP ${status} .*Incorrect API key provided: Bearer \\*\\*\\*`))
  expect(everything(place.path("data")) + ended.stdout + ended.stderr).not.toContain(key.slice(0, 12))
})

it("writes down no password of an address", async () => {
  const place = new Workplace()
  place.dataset(["a"])
  const server = await serve(runsThenEnds())
  const url = server.url.replace("http://", "http://user:hidden-password@")
  const ended = await place.run({ url }, { resume: true })
  expect(everything(place.path("data")) + ended.stdout + ended.stderr).not.toContain("hidden-password")
})
