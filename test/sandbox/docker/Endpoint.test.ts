/** The engine that a user's environment names is the one that is asked, and no other. */
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import * as Client from "../../../src/sandbox/docker/Client.ts"
import * as Endpoint from "../../../src/sandbox/docker/Endpoint.ts"

/** A home with Docker's configuration in it. */
const home = (config?: string) => {
  const root = mkdtempSync(join(tmpdir(), "endpoint-"))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const docker = join(root, ".docker")
  mkdirSync(docker)
  if (config !== undefined) writeFileSync(join(docker, "config.json"), config)
  const idOf = (name: string) => createHash("sha256").update(name).digest("hex")
  return {
    root,
    environment: { HOME: root },
    /** Writes down a context as `docker context create` does. */
    context: (name: string, meta: unknown) => {
      const folder = join(docker, "contexts", "meta", idOf(name))
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, "meta.json"), typeof meta === "string" ? meta : JSON.stringify(meta))
    },
    certificates: (name: string) => {
      const folder = join(docker, "contexts", "tls", idOf(name), "docker")
      mkdirSync(folder, { recursive: true })
      return folder
    },
    socket: (...path: ReadonlyArray<string>) => {
      const file = join(root, ...path)
      mkdirSync(join(file, ".."), { recursive: true })
      writeFileSync(file, "")
      return file
    }
  }
}

const meta = (name: string, host: string) => ({
  Name: name,
  Metadata: { Description: "" },
  Endpoints: { docker: { Host: host, SkipTLSVerify: false } }
})

/** Candidates without those of this machine itself. */
const own = (environment: Readonly<Record<string, string>>) =>
  Endpoint.candidates(environment).filter(({ host }) => !/^unix:\/\/\/(var\/)?run\//.test(host))

describe("The engine is looked for", () => {
  it("where DOCKER_HOST says, whatever else is there.", () => {
    const { environment, context, socket } = home('{"currentContext":"far"}')
    context("far", meta("far", "tcp://far:1"))
    socket(".docker", "run", "docker.sock")
    const named = { ...environment, DOCKER_HOST: "tcp://1.2.3.4:5", DOCKER_CONTEXT: "far" }
    expect(Endpoint.candidates(named)).toEqual([{ host: "tcp://1.2.3.4:5", by: "DOCKER_HOST" }])
    expect(Endpoint.candidates({ ...named, DOCKER_CERT_PATH: "/certs" })).toEqual([
      { host: "tcp://1.2.3.4:5", by: "DOCKER_HOST", certificates: "/certs" }
    ])
    expect(Endpoint.candidates({ ...named, DOCKER_HOST: "", DOCKER_CONTEXT: "" })[0]?.host).toBe("tcp://far:1")
  })

  it("where the chosen context says, before the current one of the configuration.", () => {
    const { environment, context } = home('{"currentContext":"near"}')
    context("near", meta("near", "unix:///near.sock"))
    context("ümläut far", meta("ümläut far", "ssh://me@far"))
    expect(Endpoint.candidates(environment)).toEqual([
      { host: "unix:///near.sock", by: "the Docker context near", certificates: undefined }
    ])
    expect(Endpoint.candidates({ ...environment, DOCKER_CONTEXT: "ümläut far" })).toEqual([
      { host: "ssh://me@far", by: "the Docker context ümläut far", certificates: undefined }
    ])
  })

  it("with the certificates of the context.", () => {
    const { environment, context, certificates } = home()
    context("safe", meta("safe", "tcp://far:2376"))
    const folder = certificates("safe")
    expect(Endpoint.candidates({ ...environment, DOCKER_CONTEXT: "safe" })[0]?.certificates).toBe(folder)
  })

  it("in the configuration that DOCKER_CONFIG names.", () => {
    const { root, context } = home('{"currentContext":"near"}')
    context("near", meta("near", "unix:///near.sock"))
    expect(own({ HOME: "/nowhere", DOCKER_CONFIG: join(root, ".docker") })).toMatchObject([
      { host: "unix:///near.sock" }
    ])
    expect(own({ HOME: root, DOCKER_CONFIG: "/nowhere" })).toEqual([])
    expect(Endpoint.folder({ HOME: root })).toBe(join(root, ".docker"))
  })

  it("nowhere else when a context was chosen that is not there: another engine might be somebody else's.", () => {
    const { environment, context, socket } = home()
    socket(".docker", "run", "docker.sock")
    for (const broken of ["{", "{}", '{"Endpoints":{}}', meta("gone", "")]) {
      context("gone", broken)
      expect(Endpoint.candidates({ ...environment, DOCKER_CONTEXT: "gone" })).toEqual([
        { host: "", by: "the Docker context gone" }
      ])
    }
    expect(Endpoint.candidates({ ...environment, DOCKER_CONTEXT: "never" })).toHaveLength(1)
  })

  it("at the usual sockets that are there, the user's own after the machine's, Docker's before Podman's.", () => {
    for (const config of [undefined, "not json", "{}", '{"currentContext":"default"}', '{"currentContext":7}']) {
      const { environment, socket } = home(config)
      const desktop = socket(".docker", "run", "docker.sock")
      expect(own(environment)).toEqual([{ host: `unix://${desktop}`, by: "its socket" }])
      const podman = socket("runtime", "podman", "podman.sock")
      const rootless = socket("runtime", "docker.sock")
      const within = { ...environment, XDG_RUNTIME_DIR: join(environment.HOME, "runtime") }
      expect(own(within).map(({ host }) => host)).toEqual([desktop, rootless, podman].map((path) => `unix://${path}`))
    }
    expect(Endpoint.sockets({ HOME: "/h", XDG_RUNTIME_DIR: "/r" })).toEqual([
      "/var/run/docker.sock",
      "/h/.docker/run/docker.sock",
      "/r/docker.sock",
      "/r/podman/podman.sock",
      "/run/podman/podman.sock"
    ])
  })

  it("at the sockets too when the configuration's current context has gone.", () => {
    const { environment, socket } = home('{"currentContext":"gone"}')
    const desktop = socket(".docker", "run", "docker.sock")
    expect(own(environment)).toEqual([{ host: `unix://${desktop}`, by: "its socket" }])
  })
})

describe("An address", () => {
  const options = (host: string, certificates?: string) => Client.connection({ host, by: "the test", certificates })

  it("may be a socket.", () => {
    for (const host of ["unix:///run/a b.sock", "/run/a b.sock"]) {
      expect(options(host)).toEqual({ socketPath: "/run/a b.sock" })
    }
    expect(options("npipe:////./pipe/docker_engine")).toEqual({ socketPath: "//./pipe/docker_engine" })
  })

  it("may be a host and a port, by default those of Docker.", () => {
    const plain = { protocol: "http", host: "1.2.3.4" }
    expect(options("tcp://1.2.3.4:99")).toEqual({ ...plain, port: "99" })
    expect(options("http://1.2.3.4:99/")).toEqual({ ...plain, port: "99" })
    expect(options("1.2.3.4:99")).toEqual({ ...plain, port: "99" })
    expect(options("tcp://1.2.3.4")).toEqual({ ...plain, port: 2375 })
    expect(options("localhost:99")).toEqual({ protocol: "http", host: "localhost", port: "99" })
  })

  it("is spoken to in secret where its scheme, its port or certificates say so.", () => {
    const folder = mkdtempSync(join(tmpdir(), "certificates-"))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    for (const name of ["ca", "cert"]) writeFileSync(join(folder, `${name}.pem`), `the ${name}`)
    expect(options("https://far")).toEqual({ protocol: "https", host: "far", port: 2376 })
    expect(options("tcp://far:2376")).toEqual({ protocol: "https", host: "far", port: "2376" })
    expect(options("tcp://far:99", folder)).toEqual({
      protocol: "https",
      host: "far",
      port: "99",
      ca: Buffer.from("the ca"),
      cert: Buffer.from("the cert")
    })
  })

  it("may be reached by ssh, as a user of that machine.", () => {
    expect(options("ssh://a%40b@far:2222")).toMatchObject({
      protocol: "ssh",
      host: "far",
      port: "2222",
      username: "a@b"
    })
    expect(options("ssh://%zz@far")).toMatchObject({ host: "far", username: "%zz" })
    expect(options("ssh://far")).toMatchObject({ protocol: "ssh", host: "far", port: 22 })
  })

  it.each(["", "ftp://far", "unix://", "tcp://", "nonsense://x:1", "tcp://far:port", "fd://", "a b"])(
    "of an engine is none that reads %j.",
    async (host) => {
      expect(options(host)).toBeUndefined()
      const error = await Effect.runPromise(Effect.flip(Client.connect({ host, by: "the test" })))
      expect(error.message).toMatch(/is no address of an engine; allowed: unix:\/\/\/path, tcp:\/\/host:port, ssh:/)
    }
  )

  it("at which nobody answers is told as such.", async () => {
    for (const host of ["unix:///nowhere.sock", "tcp://127.0.0.1:9"]) {
      const error = await Effect.runPromise(Effect.flip(Client.connect({ host, by: "the test" })))
      expect(error).toMatchObject({ status: 0, message: expect.stringMatching(/ENOENT|ECONNREFUSED/) })
    }
  })
})

describe("What an engine refuses", () => {
  it("is told in its own words, on one line.", () => {
    const refused = Object.assign(new Error("(HTTP code 404) no such image - No such image: x"), {
      statusCode: 404,
      reason: "no such image",
      json: { message: "No such\nimage: x" }
    })
    expect(Client.failure(refused)).toMatchObject({ status: 404, message: "No such image: x" })
    const wordless = Object.assign(new Error("(HTTP code 500) server error - it broke"), {
      statusCode: 500,
      reason: "server error",
      json: null
    })
    expect(Client.failure(wordless)).toMatchObject({ status: 500, message: "it broke" })
    expect(Client.failure(new Error("connect ENOENT"))).toMatchObject({ status: 0, message: "connect ENOENT" })
    expect(Client.failure("text")).toMatchObject({ status: 0, message: "text" })
    expect(Client.failure(undefined).message.length).toBeGreaterThan(0)
    expect(Client.failure(new Error("x".repeat(5000))).message.length).toBe(1000)
  })

  it("for want of room is told as such, with the way out.", () => {
    for (const message of ["write /x: no space left on device", "Disk quota exceeded"]) {
      const error = Client.toSandboxError(
        "The image x could not be pulled",
        "StartFailed"
      )(new Client.EngineError({ status: 500, message }))
      expect(error).toMatchObject({ reason: "NoSpace", transient: false })
      expect(error.message).toMatch(/^The image x could not be pulled: the engine's disk is full \(.*--resume$/)
    }
  })
})
