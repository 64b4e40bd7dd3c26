/** Modal for tests: a gRPC server that speaks the calls its SDK makes, with a box behind each sandbox, and fails on demand. */
import { createServer, ServerError, Status } from "nice-grpc"
import { Box, workdir } from "./Box.ts"
import * as Wire from "./Wire.ts"

/** A request as the definitions decode it. */
export type Message = Record<string, unknown>

/** What was asked for, in the order it came. */
export interface Call {
  readonly method: string
  readonly request: Message
}

/** What a call answers instead of being done, for the next `times` calls. */
export interface Failure {
  readonly status: keyof typeof Status
  readonly details?: string
  readonly times?: number
}

/** One sandbox as the server knows it. */
export interface Known {
  readonly id: string
  readonly taskId: string
  readonly definition: Message
  readonly tags: Record<string, string>
  /** Seconds since the epoch. */
  readonly createdAt: number
  readonly box: Box
  /** undefined while it runs. */
  result: { readonly status: number; readonly exitcode: number; readonly exception: string } | undefined
}

export const keys = { id: "ak-test", secret: "as-test" }

const statuses = { success: 1, failure: 2, terminated: 3, timeout: 4 }

const bearer = (seconds: number) => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
  return `${part({ alg: "none" })}.${part({ exp: Math.floor(Date.now() / 1000) + seconds })}.signed`
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")
const number = (value: unknown): number => (typeof value === "number" ? value : 0)
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
const strings = (value: unknown): ReadonlyArray<string> => list(value).map(text)
const message = (value: unknown): Message => ({ ...(typeof value === "object" ? value : {}) })

const tagsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(list(value).map((tag) => [text(message(tag).tagName), text(message(tag).tagValue)]))

const missing = (what: string) => new ServerError(Status.NOT_FOUND, `${what} not found`)

type Handler = (request: Message, signal: AbortSignal) => unknown

export class ModalServer {
  readonly calls: Array<Call> = []
  readonly sandboxes: Array<Known> = []
  /** Images that cannot be built: a part of their name, the last line of the build's log, and the exception. */
  readonly broken: Array<{ readonly part: string; readonly log: string; readonly exception: string }> = []
  /** What a sandbox runs first instead of what it was made with. */
  first: ReadonlyArray<string> | undefined
  /** Milliseconds for each layer of an image. */
  buildTime = 20
  /** Milliseconds until a sandbox is there. */
  createTime = 0
  /** Bytes of an exec's arguments that the server takes. */
  readonly argumentLimit = 65_536
  url = ""
  private readonly failures = new Map<string, { failure: Failure; left: number }>()
  private readonly hanging = new Set<string>()
  private readonly built = new Map<string, string>()
  private readonly layers = new Map<string, { readonly commands: ReadonlyArray<string>; readonly base: string }>()
  private streams = new AbortController()
  private created = 0
  private expiry = 3600
  private bearers = new Set<string>()
  private server: ReturnType<typeof createServer> | undefined

  /** Makes the next calls of a method fail. */
  fail(method: string, failure: Failure) {
    this.failures.set(method, { failure, left: failure.times ?? Number.POSITIVE_INFINITY })
  }

  /** Makes a method answer nothing from now on. */
  hang(method: string) {
    this.hanging.add(method)
  }

  /** Breaks every stream of output that is being read. */
  dropStreams() {
    this.streams.abort()
    this.streams = new AbortController()
  }

  /** Makes all tokens that were given for commands worthless. */
  expireTokens() {
    this.bearers.clear()
  }

  /** Everything as it was at the beginning, and no sandbox left. */
  reset() {
    for (const one of this.live()) this.finish(one, statuses.terminated, 137)
    this.calls.length = 0
    this.sandboxes.length = 0
    this.broken.length = 0
    this.failures.clear()
    this.hanging.clear()
    this.built.clear()
    this.first = undefined
    this.createTime = 0
    this.buildTime = 20
    this.expiry = 3600
  }

  live(): ReadonlyArray<Known> {
    return this.sandboxes.filter((one) => one.result === undefined)
  }

  asked(method: string): ReadonlyArray<Message> {
    return this.calls.filter((call) => call.method === method).map((call) => call.request)
  }

  /** Lines of the Dockerfile that made an image. */
  commandsOf(imageId: string): ReadonlyArray<string> | undefined {
    return this.layers.get(imageId)?.commands
  }

  /** Ends a sandbox as its time-out does. */
  expire(one: Known) {
    this.finish(one, statuses.timeout, 124)
  }

  /** Gives tokens for commands that end after so many seconds. */
  shortTokens(seconds: number) {
    this.expiry = seconds
  }

  private finish(one: Known, status: number, exitcode: number) {
    one.result ??= { status, exitcode, exception: "" }
    one.box.kill()
  }

  private sandbox(id: unknown): Known {
    const found = this.sandboxes.find((one) => one.id === id)
    if (found === undefined) throw missing(`Sandbox ${text(id)}`)
    return found
  }

  private running(taskId: unknown): Known {
    const found = this.live().find((one) => one.taskId === taskId)
    if (found === undefined) throw missing(`Task ${text(taskId)}`)
    return found
  }

  private access() {
    const jwt = bearer(this.expiry)
    this.bearers.add(jwt)
    return { jwt, url: this.url.replace("http:", "https:") }
  }

  private readonly build = async (request: Message): Promise<Message> => {
    const image = message(request.image)
    const commands = strings(image.dockerfileCommands)
    const base = text(message(list(image.baseImages)[0]).imageId)
    const key = JSON.stringify([commands, base])
    const imageId = this.built.get(key) ?? `im-${(++this.created).toString().padStart(22, "0")}`
    const known = this.built.has(key)
    this.layers.set(imageId, { commands, base })
    this.built.set(key, imageId)
    return { imageId, ...(known && this.flaw(imageId) === undefined && { result: { status: statuses.success } }) }
  }

  private flaw(imageId: string) {
    const commands = this.layers.get(imageId)?.commands.join("\n") ?? ""
    return this.broken.find(({ part }) => commands.includes(part))
  }

  private async *join(request: Message): AsyncGenerator<Message> {
    const imageId = text(request.imageId)
    if (!this.layers.has(imageId)) throw missing(`Image ${imageId}`)
    const flaw = this.flaw(imageId)
    yield { entryId: "1-0", taskLogs: [{ data: "Building image\n" }] }
    await new Promise((resolve) => setTimeout(resolve, this.buildTime))
    if (flaw !== undefined) yield { entryId: "2-0", taskLogs: [{ data: `${flaw.log}\n` }] }
    const bad = { status: statuses.failure, exception: flaw?.exception ?? "" }
    yield { entryId: "3-0", result: flaw === undefined ? { status: statuses.success } : bad, eof: true }
  }

  private readonly create =
    (version: 1 | 2) =>
    async (request: Message): Promise<Message> => {
      const definition = message(request.definition)
      if (!this.layers.has(text(definition.imageId))) throw missing("Image")
      if (this.createTime > 0) await new Promise((resolve) => setTimeout(resolve, this.createTime))
      const entrypoint = this.first ?? strings(definition.entrypointArgs)
      const blocked = number(message(definition.networkAccess).networkAccessType) === 2
      const box = await Box.open({ entrypoint, network: !blocked })
      const place = ++this.created
      const id = version === 2 ? `sb-v2-${place}` : `sb-${place.toString().padStart(22, "0")}`
      const one: Known = {
        id,
        taskId: `ta-${place}`,
        definition,
        tags: tagsOf(request.tags),
        createdAt: Date.now() / 1000 + place / 1e6,
        box,
        result: undefined
      }
      this.sandboxes.push(one)
      const timer = setTimeout(() => this.expire(one), number(definition.timeoutSecs) * 1000)
      timer.unref()
      void box.ended.then((code) => {
        clearTimeout(timer)
        this.finish(one, code === 0 ? statuses.success : statuses.failure, code)
      })
      return version === 2
        ? { sandboxId: id, taskId: one.taskId, commandRouterAccess: this.access() }
        : { sandboxId: id }
    }

  private readonly wait = async (request: Message): Promise<Message> => {
    const one = this.sandbox(request.sandboxId)
    const limit = new Promise((resolve) => setTimeout(resolve, number(request.timeout) * 1000).unref())
    if (one.result === undefined) await Promise.race([one.box.ended, limit])
    return { result: one.result }
  }

  private readonly listed = (request: Message): Message => {
    const tags = Object.entries(tagsOf(request.tags))
    const before = number(request.beforeTimestamp) || Number.POSITIVE_INFINITY
    const found = this.live()
      .filter((one) => one.createdAt < before && tags.every(([name, value]) => one.tags[name] === value))
      .toSorted((one, other) => other.createdAt - one.createdAt)
      // Small pages, so that a reader must ask for more than one.
      .slice(0, 3)
    return { sandboxes: found.map(({ id, createdAt }) => ({ id, createdAt })) }
  }

  private readonly terminate = (request: Message): Message => {
    const one = this.sandbox(request.sandboxId)
    const before = one.result
    this.finish(one, statuses.terminated, 137)
    return { existingResult: before }
  }

  private readonly control: Record<string, Handler> = {
    authTokenGet: () => ({ token: bearer(3600) }),
    environmentGetOrCreate: () => ({
      environmentId: "en-1",
      metadata: { name: "main", settings: { imageBuilderVersion: "2025.06", webhookSuffix: "" } }
    }),
    appGetOrCreate: () => ({ appId: "ap-0000000000000000000001" }),
    imageGetOrCreate: this.build,
    imageJoinStreaming: (request) => this.join(request),
    sandboxCreate: this.create(1),
    sandboxCreateV2: this.create(2),
    sandboxGetTaskId: (request) => ({ taskId: this.sandbox(request.sandboxId).taskId }),
    sandboxGetTaskIdV2: (request) => ({ taskId: this.sandbox(request.sandboxId).taskId }),
    sandboxGetCommandRouterAccess: (request) => {
      this.sandbox(request.sandboxId)
      return this.access()
    },
    taskGetCommandRouterAccess: (request) => {
      this.running(request.taskId)
      return this.access()
    },
    sandboxWait: this.wait,
    sandboxWaitV2: this.wait,
    sandboxTerminate: this.terminate,
    sandboxTerminateV2: this.terminate,
    sandboxList: this.listed,
    sandboxListV2: this.listed,
    sandboxTagsGet: (request) => this.tags(request),
    sandboxTagsGetV2: (request) => this.tags(request)
  }

  private tags(request: Message): Message {
    const { tags } = this.sandbox(request.sandboxId)
    return { tags: Object.entries(tags).map(([tagName, tagValue]) => ({ tagName, tagValue })) }
  }

  private exec(request: Message) {
    const found = this.running(request.taskId).box.execs.get(text(request.execId))
    if (found === undefined) throw missing(`Exec ${text(request.execId)}`)
    return found
  }

  private readonly start = (request: Message): Message => {
    const { box } = this.running(request.taskId)
    const argv = strings(request.commandArgs)
    const length = argv.reduce((sum, word) => sum + Buffer.byteLength(word), 0)
    if (length > this.argumentLimit) throw new ServerError(Status.INVALID_ARGUMENT, `arguments of ${length} bytes`)
    const env = Object.assign({}, ...list(request.secretSources).map((one) => message(message(one).env).contents))
    box.start(text(request.execId), argv, text(request.workdir) || workdir, env)
    return {}
  }

  private async *read(request: Message, signal: AbortSignal): AsyncGenerator<Message> {
    const { box } = this.running(request.taskId)
    const gone = new AbortController()
    void box.ended.then(() => gone.abort())
    const broken = this.streams.signal
    const stop = AbortSignal.any([signal, broken, gone.signal])
    if (number(request.fileDescriptor) !== 0) return
    for await (const data of this.exec(request).output.read(number(request.offset), stop)) {
      for (let from = 0; from < data.length; from += 65_536) yield { data: data.subarray(from, from + 65_536) }
    }
    if (broken.aborted || gone.signal.aborted) throw new ServerError(Status.UNAVAILABLE, "the connection was lost")
  }

  private readonly router: Record<string, Handler> = {
    taskExecStart: this.start,
    taskExecStdioRead: (request, signal) => this.read(request, signal),
    taskExecStdinWrite: async (request) => {
      const data = request.data instanceof Uint8Array ? request.data : new Uint8Array(0)
      const gone = this.running(request.taskId).box.ended
      await Promise.race([this.exec(request).write(number(request.offset), data, request.eof === true), gone])
      return {}
    },
    taskExecWait: async (request) => {
      const gone = this.running(request.taskId).box.ended.then(() => undefined)
      const code = await Promise.race([this.exec(request).ended, gone])
      if (code === undefined) throw missing("Task")
      return { code }
    }
  }

  /** A call's way through the server: written down, its token looked at, failed or held up where a test asks for that. */
  private async pass(method: string, request: Message, allowed: boolean, signal: AbortSignal): Promise<void> {
    this.calls.push({ method, request })
    if (!allowed) throw new ServerError(Status.UNAUTHENTICATED, "Token missing or not valid.")
    const planned = this.failures.get(method)
    if (planned !== undefined && planned.left-- > 0) {
      throw new ServerError(Status[planned.failure.status], planned.failure.details ?? `${method} was made to fail`)
    }
    if (this.hanging.has(method)) await new Promise((resolve) => signal.addEventListener("abort", resolve))
  }

  private bind(
    handlers: Record<string, Handler>,
    streamed: ReadonlyArray<string>,
    guard: (metadata: Metadata) => boolean
  ) {
    const bound = Object.entries(handlers).map(([method, handler]) => {
      const once = async (request: Message, context: Context) => {
        await this.pass(method, request, guard(context.metadata), context.signal)
        return handler(request, context.signal)
      }
      const many = async function* (this: ModalServer, request: Message, context: Context) {
        yield* (await once(request, context)) as AsyncGenerator<Message>
      }
      return [method, streamed.includes(method) ? many.bind(this) : once]
    })
    return Object.fromEntries(bound)
  }

  async listen(): Promise<this> {
    const wire = await Wire.load({ control: Object.keys(this.control), router: Object.keys(this.router) })
    const server = createServer({ "grpc.max_receive_message_length": 100_000_000 })
    server.add(
      wire.control,
      this.bind(
        this.control,
        ["imageJoinStreaming"],
        (metadata) =>
          metadata.get("x-modal-token-id") === keys.id && metadata.get("x-modal-token-secret") === keys.secret
      )
    )
    server.add(
      wire.router,
      this.bind(this.router, ["taskExecStdioRead"], (metadata) =>
        this.bearers.has(text(metadata.get("authorization")).replace("Bearer ", ""))
      )
    )
    this.server = server
    this.url = `http://127.0.0.1:${await server.listen("127.0.0.1:0")}`
    return this
  }

  close(): void {
    this.reset()
    this.server?.forceShutdown()
  }
}

interface Metadata {
  readonly get: (name: string) => unknown
}

interface Context {
  readonly metadata: Metadata
  readonly signal: AbortSignal
}
