/** A web server that a test tells what to do; it keeps what it was asked. Plain node:http, on any address of this machine. */
import * as Http from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { onTestFinished } from "vitest"

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

export interface Page {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | object
}

/** Gives a page, or answers by itself and gives nothing. */
export type Handler = (
  asked: Asked,
  response: Http.ServerResponse,
  place: number
) => Page | undefined | Promise<Page | undefined>

export interface PageServer {
  /** Without a slash at the end. */
  readonly url: string
  readonly port: number
  readonly asked: ReadonlyArray<Asked>
  /** The most requests under way at once. */
  readonly most: () => number
  /** Requests that were connected and whose connection is gone, whoever ended it. */
  readonly gone: () => number
}

/** Starts one on a free port; it ends with the test. */
export const start = async (handler: Handler, host = "127.0.0.1"): Promise<PageServer> => {
  const asked: Array<Asked> = []
  const sockets = new Set<Socket>()
  let [now, most, gone] = [0, 0, 0]
  const server = Http.createServer((request, response) => {
    most = Math.max(most, ++now)
    response.on("close", () => {
      now--
      if (!response.writableFinished) gone++
    })
    response.on("error", () => {})
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", async () => {
      const one = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString("utf8")
      }
      const place = asked.push(one) - 1
      const page = await handler(one, response, place)
      if (page === undefined) return
      const { status = 200, headers = {}, body = "" } = page
      const json = typeof body === "object" && !(body instanceof Uint8Array)
      response.writeHead(status, { ...(json ? { "content-type": "application/json" } : {}), ...headers })
      response.end(json ? JSON.stringify(body) : body)
    })
  })
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, host, () => resolve()))
  onTestFinished(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  )
  const { port } = server.address() as AddressInfo
  return { url: `http://${host}:${port}`, port, asked, most: () => most, gone: () => gone }
}
