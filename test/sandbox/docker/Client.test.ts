/** An engine that accepts a call and never answers costs that call its limit, and no more. */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { expect, it, onTestFinished } from "vitest"
import * as Client from "../../../src/sandbox/docker/Client.ts"

it("A call of an engine that does not answer fails after its limit.", async () => {
  const folder = mkdtempSync(join(tmpdir(), "client-test-"))
  const server = createServer(({ url = "" }, answer) => {
    if (url.startsWith("/_ping")) answer.end("OK")
  })
  const path = join(folder, "engine.sock")
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })
  const client = await Effect.runPromise(Client.connect({ host: `unix://${path}`, by: "the test" }))
  const before = performance.now()
  const error = await Effect.runPromise(Effect.flip(client.call((docker) => docker.info(), 0.3)))
  expect(performance.now() - before).toBeLessThan(3000)
  expect(error).toMatchObject({ status: 0, message: "the engine did not answer within 0.3 seconds" })
  expect(Client.toSandboxError("x", "ImageMissing")(error)).toMatchObject({ reason: "EngineDown", transient: true })
})
