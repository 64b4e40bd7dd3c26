/** The engine of the tests behind a socket that answers some requests with a failure of its own. */
import { createServer, type IncomingMessage, request } from "node:http"
import { connect } from "node:net"
import { onTestFinished } from "vitest"
import type { Environment, Workplace } from "./Command.ts"

/** Where the engine itself listens. */
export const socketPath = (process.env.DOCKER_HOST ?? "").replace(/^unix:\/\//, "")

/** `fails` decides on each request, by its method and path. */
export const engine = async (
  place: Workplace,
  fails: (method: string, path: string) => boolean
): Promise<Environment> => {
  const path = place.path("faulty.sock")
  const refuses = ({ method = "", url = "" }: IncomingMessage) => fails(method, url.replace(/\?.*$/, ""))
  const failure = JSON.stringify({ message: "made to fail" })
  const server = createServer((asked, answer) => {
    if (refuses(asked)) {
      asked.resume()
      answer.writeHead(500, { "content-type": "application/json" }).end(failure)
      return
    }
    const { method, url, headers } = asked
    const passed = request({ socketPath, method, path: url, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 500, got.headers)
      got.pipe(answer)
    })
    passed.on("error", () => answer.destroy())
    asked.pipe(passed)
  })
  server.on("upgrade", ({ method, url, rawHeaders }: IncomingMessage, near, head) => {
    const far = connect(socketPath)
    const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []))
    far.write(`${method} ${url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`)
    far.write(head)
    near.pipe(far).pipe(near)
    for (const one of [near, far]) one.on("error", () => {})
    near.on("close", () => far.destroy())
    far.on("close", () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { DOCKER_HOST: `unix://${path}` }
}
