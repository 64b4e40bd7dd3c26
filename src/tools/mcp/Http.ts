/** The SDK's transports over HTTP, with answers of a bounded size. */
import type { Remote } from "./ConfigFile.ts"
import type * as Sdk from "./Sdk.ts"

/** Bytes of one answer at most, a stream of events included. */
export const answerBytes = 64_000_000

const bounded = (response: Response): Response => {
  if (response.body === null) return response
  let bytes = 0
  const counted = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (piece, controller) => {
        bytes += piece.length
        if (bytes <= answerBytes) controller.enqueue(piece)
        else controller.error(new Error(`an answer of more than ${answerBytes} bytes`))
      }
    })
  )
  const { status, statusText, headers } = response
  return new Response(counted, { status, statusText, headers })
}

const request = (url: string | URL, init?: RequestInit): Promise<Response> => fetch(url, init).then(bounded)

/** Streamable HTTP; `end` deletes the session at the server. */
export const streamable = (sdk: typeof Sdk, { url, headers }: Remote) => {
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: request
  })
  return { transport, end: () => transport.terminateSession() }
}

/** Server-sent events, as servers of the first version speak. */
export const events = (sdk: typeof Sdk, { url, headers }: Remote) => {
  const transport = new sdk.SSEClientTransport(url, { requestInit: { headers: { ...headers } }, fetch: request })
  return { transport, end: () => Promise.resolve() }
}
