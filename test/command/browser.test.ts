/** A run whose sessions use a real browser: the built command finds it, drives it, and leaves none behind however it ends. */
import { execFileSync } from "node:child_process"
import { readdirSync } from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { sleep, until, Workplace } from "../support/Command.ts"
import { answer, type Recorded } from "../support/ModelServer.ts"
import { final, promptOf, serve, turnOf } from "../support/Talk.ts"
import { chromium, describe } from "../tools/browser/support.ts"

const site = async (): Promise<string> => {
  const server = Http.createServer((request, response) => {
    response.setHeader("content-type", "text/html")
    if (request.url?.startsWith("/done")) response.end(`<title>Done</title><p>Got ${request.url}</p>`)
    else if (request.url?.startsWith("/slow")) response.write("<p>Slow</p>")
    else
      response.end(
        '<title>Form</title><form action="/done"><input name=q aria-label=Query><button>Send</button></form>'
      )
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const call = (name: string, args: object) =>
  answer({ reasoning: "next", toolCalls: [{ name: `browser_${name}`, arguments: args }] })

/** The handle that the results so far give something. */
const ref = (request: Recorded, what: string): string =>
  new RegExp(`${what}\\\\" \\[ref=(\\w+)`).exec(
    JSON.stringify(request.body.messages).replaceAll("\\\\\\", "\\")
  )?.[1] ?? "none"

/** Living processes whose command line names the folder of this run's temporary files. */
const browsers = (place: Workplace): ReadonlyArray<string> =>
  execFileSync("ps", ["-eo", "stat=,args="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(place.tmp) && !line.startsWith("Z"))

const options = { distribution: "browser_only", allow_private_network: true, num_workers: 2 }
const environment = { CHROMIUM_PATH: chromium }

describe("A run with a browser", () => {
  it("navigates, types and clicks, and leaves no browser behind", { timeout: 120_000 }, async () => {
    const place = new Workplace()
    place.dataset(["one", "two"])
    const url = await site()
    const server = await serve((request) => {
      const steps = [
        () => call("navigate", { url }),
        () => call("type", { ref: ref(request, "Query"), text: promptOf(request) }),
        () => call("click", { ref: ref(request, "Send") }),
        () => final("done")
      ]
      return (steps[turnOf(request)] ?? (() => final()))()
    })
    const ended = await place.complete(server, options, environment)
    expect(browsers(place)).toEqual([])
    expect(readdirSync(place.tmp)).toEqual([])
    expect(ended.stderr).not.toMatch(/Warning/)
    for (const [at, prompt] of ["one", "two"].entries()) {
      const row = place.rows()[at]
      expect(row?.conversations.filter(({ from }) => from === "tool").at(-1)?.value).toContain(`/done?q=${prompt}`)
      for (const name of ["navigate", "type", "click"]) {
        expect(row?.tool_stats[`browser_${name}`]).toEqual({ count: 1, success: 1, failure: 0 })
      }
    }
  })

  it.for([
    ["SIGTERM", 143],
    ["SIGKILL", null]
  ] as const)(
    "that ends by %s in the middle leaves no browser behind",
    { timeout: 120_000 },
    async ([signal, code]) => {
      const place = new Workplace()
      place.dataset(["one", "two"])
      const url = await site()
      const server = await serve(() => call("navigate", { url: `${url}/slow` }))
      const running = place.begin(server, options, environment)
      await until(() => browsers(place).length > 3, 60_000)
      await sleep(500)
      running.kill(signal)
      const ended = await running.ended
      expect(ended.code).toBe(code)
      await until(() => browsers(place).length === 0, code === null ? 10_000 : 1000)
      const left = () => readdirSync(place.tmp).filter((name) => code !== null || !name.startsWith("batch-runner-"))
      await until(() => left().length === 0, 5000).catch(() => expect(left()).toEqual([]))
    }
  )
})
