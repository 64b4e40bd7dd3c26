/** The engine's API as effects: every call is bounded in time, every failure has a status and a sentence. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type Dockerode from "dockerode"
import { Data, Effect, Either } from "effect"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"
import type { Endpoint } from "./Endpoint.ts"

/** What the engine answered instead of doing what it was asked. */
export class EngineError extends Data.TaggedError("EngineError")<{
  /** HTTP status; 0 when there was no answer at all. */
  readonly status: number
  readonly message: string
}> {}

export interface Client {
  readonly docker: Dockerode
  /** The address as people know it. */
  readonly host: string
  /** Calls the engine; fails when it takes longer than `seconds`, a minute by default. */
  readonly call: <A>(run: (docker: Dockerode) => Promise<A>, seconds?: number) => Effect.Effect<A, EngineError>
}

const text = (value: unknown): string => (value instanceof Error ? value.message : String(value))

/** The property of an object that nobody has described. */
const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

/** What a rejected call says: the engine's own sentence where it gave one. */
export const failure = (cause: unknown): EngineError => {
  const [status, said] = [field(cause, "statusCode"), field(field(cause, "json"), "message")]
  const told = typeof said === "string" && said !== "" ? said : text(cause)
  const message = told.replace(/^\(HTTP code \d+\) [\w ]+ - /, "")
  return new EngineError({
    status: typeof status === "number" ? status : 0,
    message: message.trim().replaceAll(/\s+/g, " ").slice(0, 1000)
  })
}

/** What an engine says when its disk is full. */
const full = /no space left|disk quota exceeded|not enough space/i

/** An engine's failure as a sandbox's; `doing` is what was tried. */
export const toSandboxError =
  (doing: string, reason: SandboxError["reason"]) =>
  ({ status, message }: EngineError): SandboxError => {
    if (status === 0) {
      return new SandboxError({ reason: "EngineDown", detail: `The container engine does not answer: ${message}` })
    }
    if (full.test(message)) {
      return new SandboxError({
        reason: "NoSpace",
        detail: `${doing}: the engine's disk is full (${message}); make room, then go on with --resume`
      })
    }
    return new SandboxError({ reason, detail: `${doing}: ${message}` })
  }

const minute = 60

const clientOf = (docker: Dockerode, host: string): Client => ({
  docker,
  host,
  call: (run, seconds = minute) =>
    Effect.flatMap(
      Proc.atMost(Effect.either(Effect.tryPromise({ try: () => run(docker), catch: failure })), seconds * 1000),
      (answer) =>
        answer ?? new EngineError({ status: 0, message: `the engine did not answer within ${seconds} seconds` })
    )
})

interface Certificates {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

const certificatesIn = (folder: string | undefined): Certificates => {
  const read = (name: string) => Either.getOrUndefined(Either.try(() => readFileSync(join(folder ?? "", name))))
  const [ca, cert, key] = folder === undefined ? [] : ["ca.pem", "cert.pem", "key.pem"].map(read)
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
}

/** Where dockerode is to connect; undefined for an address it cannot take. */
export const connection = (endpoint: Endpoint): Dockerode.DockerOptions | undefined => {
  const { host, certificates } = endpoint
  const socket = /^(?:unix|npipe):\/\/(.+)$/.exec(host)?.[1]
  if (socket !== undefined) return { socketPath: socket }
  if (host.startsWith("/")) return { socketPath: host }
  const address = host.includes("://") ? host : `tcp://${host}`
  if (!URL.canParse(address)) return undefined
  const url = new URL(address)
  const username = Either.getOrElse(
    Either.try(() => decodeURIComponent(url.username)),
    () => url.username
  )
  if (url.protocol === "ssh:") {
    return {
      protocol: "ssh",
      host: url.hostname,
      port: url.port || 22,
      ...(username !== "" && { username }),
      sshOptions: { agent: process.env.SSH_AUTH_SOCK ?? "" }
    }
  }
  if (!["tcp:", "http:", "https:"].includes(url.protocol) || url.hostname === "") return undefined
  const secure =
    url.protocol === "https:" ||
    certificates !== undefined ||
    url.port === "2376" ||
    process.env.DOCKER_TLS_VERIFY === "1"
  return {
    protocol: secure ? "https" : "http",
    host: url.hostname,
    port: url.port || (secure ? 2376 : 2375),
    ...(secure && certificatesIn(certificates))
  }
}

/** Seconds for an engine to answer the first time. */
const helloLimit = 15

/** Connects, and waits for the engine's first answer. */
export const connect = (endpoint: Endpoint): Effect.Effect<Client, EngineError> =>
  Effect.gen(function* () {
    const options = connection(endpoint)
    if (options === undefined) {
      return yield* new EngineError({
        status: 0,
        message: `${JSON.stringify(endpoint.host)} is no address of an engine; allowed: unix:///path, tcp://host:port, ssh://user@host`
      })
    }
    const { default: Docker } = yield* Effect.promise(() => import("dockerode"))
    const client = clientOf(new Docker(options), endpoint.host)
    yield* client.call((docker) => docker.ping(), helloLimit)
    return client
  })

/** Whether the engine says that there is no such container, or that it does not run. */
export const gone = ({ status, message }: EngineError): boolean =>
  status === 404 || status === 409 || /container state improper/.test(message)

/** Calls `then` once, when a stream is over, however it ends. */
export const over = (stream: NodeJS.ReadableStream, then: () => void): void => {
  let done = false
  const once = () => {
    if (!done) then()
    done = true
  }
  for (const event of ["end", "close", "error"]) stream.on(event, once)
}

/** Breaks a stream off. */
export const drop = (stream: NodeJS.ReadableStream): void => {
  if ("destroy" in stream && typeof stream.destroy === "function") stream.destroy()
}
