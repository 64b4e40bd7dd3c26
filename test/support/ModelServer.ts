/** A chat-completions server that does what a test tells it, misbehaviour included. Plain node:http, promises, no Effect. */
import * as Http from "node:http"
import type { AddressInfo, Socket } from "node:net"

/** A tool call as a test writes it; an object of arguments is sent as JSON text. */
export interface CallSpec {
  readonly id?: string
  readonly name: string
  readonly arguments: string | object
}

export interface AnswerSpec {
  readonly content?: unknown
  readonly reasoning?: string
  readonly toolCalls?: ReadonlyArray<CallSpec>
  readonly finishReason?: string
  readonly usage?: object
  /** Further fields of the message. */
  readonly message?: object
  /** Further fields of the body. */
  readonly body?: object
}

/** What the server does with one request. Bodies that are no string are sent as JSON. */
export type Reaction =
  | {
      readonly status?: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body: unknown
      /** Milliseconds before the first byte. */
      readonly delay?: number
      /** Sends the body in pieces of this many bytes, one every `every` milliseconds. */
      readonly trickle?: { readonly bytes: number; readonly every: number }
      /** Announces the whole body, sends this many bytes of it and breaks the connection. */
      readonly closeAfter?: number
    }
  /** Never answers. */
  | { readonly hang: true }
  /** Resets the connection. */
  | { readonly reset: true }
  /** Sends bytes that are no HTTP. */
  | { readonly garbage: string }

/** A request as it came. */
export interface Recorded {
  readonly method: string
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly text: string
  /** The parsed body; undefined when it is no JSON. */
  readonly body: Body
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Resolves when the connection is gone, whoever ended it. */
  readonly closed: Promise<void>
}

/** The parts of a request body that tests ask for, and all others as unknown. */
export interface Body extends Readonly<Record<string, unknown>> {
  readonly model: string
  readonly messages: ReadonlyArray<
    Readonly<Record<string, unknown>> & { readonly role: string; readonly content: unknown }
  >
}

/** Decides by the request and by its place among all requests, from 0. */
export type Handler = (request: Recorded, place: number) => Reaction | Promise<Reaction>

export interface ModelServer {
  /** The base URL, up to and with `/v1`. */
  readonly url: string
  readonly requests: ReadonlyArray<Recorded>
  /** Requests not yet answered at this moment, and the most there ever were. */
  readonly inFlight: { readonly now: number; readonly most: number }
  readonly close: () => Promise<void>
}

/** The body of a chat completion. */
export const completion = (spec: AnswerSpec): object => {
  const calls = spec.toolCalls?.map((call, place) => ({
    id: call.id ?? `call_${place}`,
    type: "function",
    function: {
      name: call.name,
      arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)
    }
  }))
  return {
    id: "gen-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model: "test-model",
    choices: [
      {
        index: 0,
        finish_reason: spec.finishReason ?? (calls === undefined ? "stop" : "tool_calls"),
        message: {
          role: "assistant",
          content: spec.content === undefined ? (calls === undefined ? "" : null) : spec.content,
          ...(spec.reasoning === undefined ? {} : { reasoning: spec.reasoning }),
          ...(calls === undefined ? {} : { tool_calls: calls }),
          ...spec.message
        }
      }
    ],
    usage: spec.usage ?? { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    ...spec.body
  }
}

/** A successful answer. */
export const answer = (spec: AnswerSpec): Reaction => ({ body: completion(spec) })

/** An HTTP error with the usual error body. */
export const error = (status: number, message: string, headers: Readonly<Record<string, string>> = {}): Reaction => ({
  status,
  headers,
  body: { error: { message, code: status } }
})

/** Starts a server on a free port of 127.0.0.1. A handler that throws is answered with HTTP 500 and its message. */
export const start = async (handler: Handler): Promise<ModelServer> => {
  const requests: Array<Recorded> = []
  const sockets = new Set<Socket>()
  const inFlight = { now: 0, most: 0 }
  const server = Http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("error", () => {})
    response.on("error", () => {})
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", async () => {
      inFlight.now++
      inFlight.most = Math.max(inFlight.most, inFlight.now)
      response.on("close", () => {
        inFlight.now--
      })
      const text = Buffer.concat(chunks).toString("utf8")
      const recorded: Recorded = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        text,
        body: parsed(text),
        at: Date.now(),
        closed: new Promise((resolve) => request.socket.once("close", () => resolve()))
      }
      const place = requests.push(recorded) - 1
      const reaction = await Promise.resolve()
        .then(() => handler(recorded, place))
        .catch((problem: unknown): Reaction => error(500, `the test's handler failed: ${String(problem)}`))
      await react(reaction, request, response)
    })
  })
  server.keepAliveTimeout = 60_000
  server.on("connection", (socket) => {
    sockets.add(socket)
    // Each request that a connection carries waits for its end.
    socket.setMaxListeners(0)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
  return {
    url: `http://127.0.0.1:${portOf(server.address())}/v1`,
    requests,
    inFlight,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) {
          socket.destroy()
        }
      })
  }
}

const portOf = (address: AddressInfo | string | null): number =>
  typeof address === "object" ? (address?.port ?? 0) : 0

const parsed = (text: string): Body => {
  try {
    return JSON.parse(text)
  } catch {
    return { model: "", messages: [] }
  }
}

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const react = async (
  reaction: Reaction,
  request: Http.IncomingMessage,
  response: Http.ServerResponse
): Promise<void> => {
  if ("hang" in reaction) {
    return
  }
  if ("reset" in reaction) {
    request.socket.resetAndDestroy()
    return
  }
  if ("garbage" in reaction) {
    request.socket.end(reaction.garbage)
    return
  }
  if (reaction.delay !== undefined) {
    await sleep(reaction.delay)
  }
  const text =
    typeof reaction.body === "string" || Buffer.isBuffer(reaction.body) ? reaction.body : JSON.stringify(reaction.body)
  const bytes = Buffer.from(text)
  response.writeHead(reaction.status ?? 200, {
    "content-type": "application/json",
    "content-length": String(bytes.length),
    ...reaction.headers
  })
  if (reaction.closeAfter !== undefined) {
    response.write(bytes.subarray(0, reaction.closeAfter), () => request.socket.destroy())
    return
  }
  if (reaction.trickle !== undefined) {
    for (let from = 0; from < bytes.length && !response.destroyed; from += reaction.trickle.bytes) {
      response.write(bytes.subarray(from, from + reaction.trickle.bytes))
      await sleep(reaction.trickle.every)
    }
    response.end()
    return
  }
  response.end(bytes)
}
