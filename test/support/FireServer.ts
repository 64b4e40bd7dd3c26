/**
 * A chat-completions server under fire: so many calls at once, so many a window, faults by chance, and books of what it charged.
 * Plain node:http, no Effect. What befalls a call depends on the seed and on whose call it is, never on the order of calls.
 */
import * as Http from "node:http"
import type { Socket } from "node:net"
import { onTestFinished } from "vitest"
import { chance } from "./Chance.ts"
import { type Conduct, defaults, type Reaction } from "./FireConduct.ts"
import { type Broken, type Call, type Fault, Ledger, type Outcome } from "./FireRecord.ts"
import { limitHeaders, parsed, promptOf, type Reply, trickle, turnOf } from "./FireWire.ts"
import { type Body, completion } from "./ModelServer.ts"

/** A slow call takes so many times the latency. */
const slowness = 4
/** Clocks and timers: a call so many milliseconds early came in time. */
const tolerance = 5

export class FireServer {
  readonly calls: Array<Call> = []
  readonly ledger = new Ledger()
  readonly broken: Array<Broken> = []
  /** Calls in work now, and the most there ever were. */
  readonly inWork = { now: 0, most: 0 }
  private conduct: Conduct
  private port = 0
  private readonly sockets = new Set<Socket>()
  private readonly earlier = new Map<string, number>()
  private readonly mayReturn = new Map<string, number>()
  private window = { begun: Number.NEGATIVE_INFINITY, count: 0 }
  private up = false
  private readonly http = Http.createServer({ keepAliveTimeout: 60_000 }, (request, response) =>
    this.read(request, response)
  )

  constructor(conduct: Partial<Conduct> = {}) {
    this.conduct = { ...defaults, ...conduct }
    this.http.on("connection", (socket) => {
      this.sockets.add(socket)
      socket.setMaxListeners(0)
      socket.on("error", () => {})
      socket.on("close", () => this.sockets.delete(socket))
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/v1`
  }

  /** Changes its conduct from now on. */
  set(conduct: Partial<Conduct>): void {
    this.conduct = { ...this.conduct, ...conduct }
  }

  /** Listens: on a free port the first time, then always on the same. */
  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.http.once("error", reject)
      this.http.listen(this.port, "127.0.0.1", () => resolve())
    })
    const address = this.http.address()
    this.port = typeof address === "object" ? (address?.port ?? 0) : 0
    this.up = true
  }

  /** Dies: the port is closed, and every connection is gone. */
  async stop(): Promise<void> {
    if (!this.up) return
    this.up = false
    for (const call of this.calls) this.end(call, "killed")
    await new Promise<void>((resolve) => {
      this.http.close(() => resolve())
      for (const socket of this.sockets) socket.destroy()
    })
  }

  private read(request: Http.IncomingMessage, response: Http.ServerResponse): void {
    const chunks: Array<Buffer> = []
    request.on("error", () => {})
    response.on("error", () => {})
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => this.serve(parsed(Buffer.concat(chunks).toString("utf8")), response))
  }

  private serve(body: Body, response: Http.ServerResponse): void {
    const at = performance.now()
    const [prompt, turn] = [promptOf(body), turnOf(body)]
    const key = keyOf({ prompt, turn })
    const early = (this.mayReturn.get(key) ?? at) - at
    if (early > tolerance) this.broken.push({ prompt, turn, early })
    const refusal = this.refusal(at)
    const earlier = this.earlier.get(key) ?? 0
    const taken = refusal === undefined
    const call: Call = {
      ...{ place: this.calls.length, prompt, turn, earlier, body, at, taken },
      ended: undefined,
      outcome: undefined
    }
    this.calls.push(call)
    if (refusal !== undefined) {
      if (refusal.seconds !== undefined) this.mayReturn.set(key, at + refusal.seconds * 1000)
      this.end(call, refusal.outcome)
      this.send(response, {
        status: 429,
        body: { error: { message: "too many requests", code: 429 } },
        headers: refusal.seconds === undefined ? {} : { "retry-after": String(refusal.seconds) }
      })
      return
    }
    this.earlier.set(key, earlier + 1)
    this.inWork.now++
    this.inWork.most = Math.max(this.inWork.most, this.inWork.now)
    response.on("close", () => this.end(call, "lost"))
    this.work(call, this.conduct.react(call) ?? this.drawn(call), response)
  }

  /** Why a call is not even begun. */
  private refusal(now: number): { readonly outcome: Outcome; readonly seconds: number | undefined } | undefined {
    const { limit, capacity, busyWait } = this.conduct
    if (limit !== undefined) {
      if (now >= this.window.begun + limit.millis) this.window = { begun: now, count: 0 }
      if (this.window.count >= limit.calls)
        return { outcome: "limited", seconds: Math.ceil((this.window.begun + limit.millis - now) / 1000) }
    }
    if (this.inWork.now >= capacity) return { outcome: "busy", seconds: busyWait }
    this.window.count++
    return undefined
  }

  private drawn({ prompt, turn, earlier }: Call): Reaction {
    const { seed, faulty, faults } = this.conduct
    if (chance(seed, "fault", prompt, turn, earlier) >= faulty) return { kind: "answer" }
    const fault = faults[Math.floor(chance(seed, "which", prompt, turn, earlier) * faults.length)]
    return fault === undefined ? { kind: "answer" } : { kind: "fault", fault }
  }

  private work(call: Call, reaction: Reaction, response: Http.ServerResponse): void {
    if (reaction.kind === "hang") return
    if (reaction.kind === "trickle") {
      trickle(response, reaction.every)
      return
    }
    const { seed, latency, spread } = this.conduct
    const fault = reaction.kind === "fault" ? reaction.fault : undefined
    const usual = latency * (1 + spread * (2 * chance(seed, "time", call.prompt, call.turn, call.earlier) - 1))
    // Who is told to wait learns it at once, as from a real limit.
    const takes = fault === "wait" ? 0 : fault === "slow" ? usual * slowness : usual
    setTimeout(() => {
      if (call.outcome !== undefined || response.destroyed) return
      const socket = response.socket
      const [outcome, reply] = this.result(call, reaction)
      this.end(call, outcome)
      if (reply === "reset") socket?.resetAndDestroy()
      else if (reply === "garbage") socket?.end("\u0000\u0001 not HTTP at all\r\n\r\n")
      else this.send(response, reply)
    }, takes)
  }

  private result(call: Call, reaction: Reaction): readonly [Outcome, Reply | "reset" | "garbage"] {
    switch (reaction.kind) {
      case "status":
        return ["refused", { ...reaction, body: { error: reaction.error } }]
      case "paidError": {
        const usage = this.charge(call, this.conduct.nano)
        return ["error", { status: 200, body: { error: { message: "the provider broke off", code: 502 }, usage } }]
      }
      case "fault":
        return reaction.fault === "slow"
          ? ["answered", this.answer(call)]
          : [reaction.fault, this.fault(call, reaction.fault)]
      default:
        return ["answered", this.answer(call, reaction.kind === "answer" ? reaction : undefined)]
    }
  }

  private fault(call: Call, fault: Exclude<Fault, "slow">): Reply | "reset" | "garbage" {
    if (fault === "reset" || fault === "garbage") return fault
    if (fault === "error") return { status: 200, body: { error: { message: "provider down", code: 502 } } }
    if (fault !== "wait") return { status: Number(fault), body: { error: { message: "oops", code: Number(fault) } } }
    // Whole seconds as HTTP has them, or milliseconds as OpenAI adds them.
    const inSeconds = chance(this.conduct.seed, "wait", call.prompt, call.turn, call.earlier) < 0.5
    const millis = inSeconds ? 1000 : 700
    this.mayReturn.set(keyOf(call), performance.now() + millis)
    const headers = inSeconds ? { "retry-after": "1" } : { "retry-after-ms": String(millis) }
    return { status: 429, headers, body: { error: { message: "slow down", code: 429 } } }
  }

  /** The first word on how a call ended is the last. */
  private end(call: Call, outcome: Outcome): void {
    if (call.outcome !== undefined) return
    call.outcome = outcome
    call.ended = performance.now()
    if (call.taken) this.inWork.now--
  }

  private answer(call: Call, reaction?: Extract<Reaction, { readonly kind: "answer" }>): Reply {
    const { turns, tool, reasoning, nano } = this.conduct
    const last = call.turn + 1 >= (typeof turns === "number" ? turns : turns(call.prompt))
    // No two calls of a session are equal: that would be a loop.
    const step = `step ${call.turn}`
    const argumentsOf =
      tool === "todo" ? { todos: [{ id: String(call.turn), content: step }] } : { command: `true # ${step}` }
    const body = completion({
      ...((reaction?.reasoning ?? reasoning) ? { reasoning: "let me think" } : {}),
      ...((reaction?.final ?? last)
        ? { content: `done: ${call.prompt}` }
        : { toolCalls: [{ id: `call_${call.turn}`, name: tool, arguments: argumentsOf }] }),
      usage: this.charge(call, reaction?.nano ?? nano)
    })
    return { status: 200, body }
  }

  /** Enters what a call cost, and gives its `usage`. */
  private charge({ prompt, turn }: Call, nano: number): object {
    const { tokens, tellsCost } = this.conduct
    const total = tokens.prompt + tokens.completion
    this.ledger.charges.push({ prompt, turn, nano, tokens: total })
    return {
      ...{ prompt_tokens: tokens.prompt, completion_tokens: tokens.completion, total_tokens: total },
      ...{ prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } },
      ...(tellsCost ? { cost: nano / 1e9 } : {})
    }
  }

  private send(response: Http.ServerResponse, { status, body, headers }: Reply): void {
    response.writeHead(status, {
      "content-type": "application/json",
      ...limitHeaders(this.conduct.limit, this.window, performance.now()),
      ...headers
    })
    response.end(JSON.stringify(body))
  }
}

/** A server that listens until the test is over. */
export const serve = async (
  conduct: Partial<Conduct> = {},
  whenFinished: typeof onTestFinished = onTestFinished
): Promise<FireServer> => {
  const server = new FireServer(conduct)
  await server.start()
  whenFinished(() => server.stop())
  return server
}

const keyOf = ({ prompt, turn }: Pick<Call, "prompt" | "turn">): string => `${turn} ${prompt}`
