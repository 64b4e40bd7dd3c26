/** An engine on paper: it answers what asks after images, and runs nothing. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"
import { type Environment, sleep } from "./Command.ts"

/** What it says of an image: it has it, its registry has it, or a failure with this status and sentence. */
export type Says = "present" | "offered" | readonly [status: number, message: string] | "silence"

export interface Asked {
  readonly method: string
  /** Without the version of the API. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

export interface PaperEngine {
  readonly environment: Environment
  readonly asked: ReadonlyArray<Asked>
  /** Questions to registries that were under way at one time, at most. */
  readonly most: () => number
}

export const start = async (
  says: (image: string) => Says,
  { podman = false, delay = 0 }: { readonly podman?: boolean; readonly delay?: number } = {}
): Promise<PaperEngine> => {
  const asked: Array<Asked> = []
  let [now, most] = [0, 0]
  const answer = async (path: string): Promise<readonly [number, object] | undefined> => {
    if (path === "/_ping") return [200, {}]
    if (path === "/info") return [200, { NCPU: 4, MemTotal: 8 * 2 ** 30 }]
    if (path === "/version") return [200, { Components: [{ Name: podman ? "Podman Engine" : "Engine" }] }]
    const [, kind, image = ""] = /^\/(images|distribution)\/(.+)\/json$/.exec(path) ?? []
    const said = says(image)
    if (kind === "images")
      return said === "present" ? [200, { Id: "sha256:1" }] : [404, { message: `No such image: ${image}` }]
    if (kind !== "distribution") return [500, { message: `nobody should ask for ${path}` }]
    now++
    most = Math.max(most, now)
    await sleep(delay)
    now--
    if (said === "silence") return undefined
    return said === "present" || said === "offered" ? [200, { Descriptor: {} }] : [said[0], { message: said[1] }]
  }
  const server: Server = createServer(async ({ method = "", url = "", headers }, response) => {
    const path = url.replace(/^\/v[\d.]+/, "").replace(/\?.*$/, "")
    asked.push({ method, path, headers })
    const told = await answer(path)
    if (told === undefined) return
    response.writeHead(told[0], { "content-type": "application/json" }).end(JSON.stringify(told[1]))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { environment: { DOCKER_HOST: `tcp://127.0.0.1:${port}` }, asked, most: () => most }
}
