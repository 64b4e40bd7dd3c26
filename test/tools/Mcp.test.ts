/** MCP servers as toolsets: real servers over standard input and HTTP, inside a sandbox and outside, and hostile ones. */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import * as Http from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"
import { Sandbox } from "../../src/sandbox/Sandbox.ts"
import * as Mcp from "./mcp.ts"

/** As the file names a variable. */
const placeholder = (name: string) => "$".concat("{", name, "}")

const entry = (name: string) => createRequire(import.meta.url).resolve(`@modelcontextprotocol/${name}/dist/index.js`)

/** The tools of the only server, which must work. */
const toolsOf = (server: object, options: Parameters<typeof Mcp.toolsets>[1] = {}) =>
  Effect.map(Mcp.toolsets({ s: server }, options), ([set]) => {
    expect(set?.lacks).toBe(null)
    return set?.tools ?? []
  })

/** A free port, and a server process that listens there. */
const listening = (name: string, manner: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const probe = Http.createServer()
      await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve))
      const { port } = probe.address() as AddressInfo
      await new Promise((resolve) => probe.close(resolve))
      const child: ChildProcess = spawn(process.execPath, [entry(name), manner], {
        env: { ...process.env, PORT: String(port) },
        stdio: ["ignore", "ignore", "pipe"]
      })
      await new Promise<void>((resolve) => child.stderr?.on("data", (text) => /port/.test(String(text)) && resolve()))
      return { port, child }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** Processes with a text in their command line. */
const running = (text: string): ReadonlyArray<string> => {
  const { readdirSync } = createRequire(import.meta.url)("node:fs")
  return readdirSync("/proc").filter((pid: string) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(text)
    } catch {
      return false
    }
  })
}

describe("The official servers", () => {
  it.scopedLive("speak over standard input: everything.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf({ command: "node", args: [entry("server-everything")] })
      const echo = tools.find(({ name }) => name === "mcp_s_echo")
      expect(echo?.definition.function).toMatchObject({
        description: expect.stringContaining("cho"),
        parameters: { type: "object", properties: { message: { type: "string" } }, required: ["message"] }
      })
      expect(yield* Mcp.use(tools, "mcp_s_echo", { message: "hi" })).toMatchObject({ ok: true, result: "Echo: hi" })
      expect(yield* Mcp.use(tools, "mcp_s_get-sum", { a: 2, b: 3 })).toMatchObject({
        result: expect.stringContaining("5")
      })
      // What does not fit is judged by the server.
      const bad = yield* Mcp.use(tools, "mcp_s_get-sum", { a: "two" })
      expect(bad).toMatchObject({ ok: false, valid: true, error: expect.stringMatching(/number/i) })
      const image = yield* Mcp.use(tools, "mcp_s_get-tiny-image")
      expect(image.result).toMatch(/\[image image\/png, \d+ bytes: in the file mcp\/1\.png\]/)
      const { bytes } = yield* Effect.flatMap(Sandbox, (sandbox) => sandbox.read("mcp/1.png", { maxBytes: 100_000 }))
      expect(Buffer.from(bytes).subarray(1, 4).toString()).toBe("PNG")
      const environment = yield* Mcp.use(tools, "mcp_s_get-env")
      expect(environment.result).toContain("PATH")
      expect(environment.result).not.toContain("of-the-run")
      expect(environment.result).not.toMatch(/API_KEY/)
    }).pipe(Effect.provide(Mcp.session()))
  )
  for (const [manner, type] of [
    ["streamableHttp", "http"],
    ["streamableHttp", undefined],
    ["sse", "sse"],
    ["sse", undefined]
  ]) {
    it.scopedLive(`speak over HTTP: everything, ${manner}, type ${type}.`, () =>
      Effect.gen(function* () {
        const { port } = yield* listening("server-everything", manner ?? "")
        const url = `http://127.0.0.1:${port}/${manner === "sse" ? "sse" : "mcp"}`
        const tools = yield* toolsOf({ url, ...(type !== undefined && { type }) })
        expect(yield* Mcp.use(tools, "mcp_s_echo", { message: "hi" })).toMatchObject({ ok: true, result: "Echo: hi" })
        expect(yield* Mcp.use(tools, "mcp_s_get-sum", { a: 2, b: 3 })).toMatchObject({ ok: true })
      }).pipe(Effect.provide(Mcp.session("plain")))
    )
  }
  it.scopedLive("run inside a sandbox that has all that they need: filesystem.", () =>
    Effect.gen(function* () {
      // A sandbox does not see node_modules, so the program comes as arguments.
      const { outputFiles } = yield* Effect.promise(() =>
        build({
          entryPoints: [entry("server-filesystem")],
          bundle: true,
          write: false,
          format: "esm",
          platform: "node",
          minify: true,
          banner: { js: 'import{createRequire}from"node:module";const require=createRequire("file:///server.js");' },
          logLevel: "silent"
        })
      )
      const packed = gzipSync(outputFiles[0]?.text.replace(/^#!.*/, "") ?? "").toString("base64")
      const pieces = packed.match(/.{1,100000}/g) ?? []
      const load =
        'const a=process.argv.slice(1);const n=+a.shift();const s=require("zlib").gunzipSync(Buffer.from(a.splice(0,n).join(""),"base64")).toString("base64");process.argv=[process.argv[0],"server",...a];import("data:text/javascript;base64,"+s)'
      const args = ["-e", load, String(pieces.length), ...pieces, "/tmp"]
      const { value, lines } = yield* Mcp.logged(
        Effect.gen(function* () {
          const tools = yield* toolsOf({ command: "node", args, sandbox: true })
          const sandbox = yield* Sandbox
          yield* sandbox.write("/tmp/inside.txt", Buffer.from("of the sandbox"))
          const seen = yield* Mcp.use(tools, "mcp_s_read_text_file", { path: "/tmp/inside.txt" })
          const made = yield* Mcp.use(tools, "mcp_s_write_file", { path: "/tmp/made.txt", content: "by the server" })
          const { bytes } = yield* sandbox.read("/tmp/made.txt", { maxBytes: 100 })
          const refused = yield* Mcp.use(tools, "mcp_s_read_text_file", { path: "/etc/passwd" })
          return { seen, made, content: Buffer.from(bytes).toString(), refused }
        }).pipe(Effect.provide(Mcp.session()))
      )
      expect(value).toMatchObject({
        seen: { ok: true, result: "of the sandbox" },
        made: { ok: true },
        content: "by the server",
        refused: { ok: false, error: expect.stringContaining("denied") }
      })
      expect(lines.filter((line) => line.includes("MCP"))).toEqual([])
    })
  )
})

describe("A server in a prompt's session", () => {
  it.scopedLive("runs in the sandbox, with what the file sets and nothing of the runner's.", () =>
    Effect.gen(function* () {
      const { value, lines } = yield* Mcp.logged(
        Effect.gen(function* () {
          const variables = { MINE: "it's a\nsecret of two lines" }
          const tools = yield* toolsOf(
            Mcp.inlined("plain", { env: { SERVER_TOKEN: placeholder("MINE"), LEVEL: placeholder("NONE:-info") } }),
            {
              variables
            }
          )
          const where = yield* Mcp.use(tools, "mcp_s_where")
          const environment = yield* Mcp.use(tools, "mcp_s_environment")
          const secret = yield* Mcp.use(tools, "mcp_s_secret")
          const list = yield* Effect.flatMap(Sandbox, (sandbox) =>
            sandbox.exec("cat /proc/[0-9]*/cmdline", { timeout: 5 })
          )
          return { where, environment, secret, list }
        }).pipe(Effect.provide(Mcp.session()))
      )
      expect(lines.filter((line) => line.includes("MCP"))).toEqual([])
      expect(value.where.result).toBe("/workspace")
      expect(value.environment.result).toContain("HOME=/home/agent")
      expect(value.environment.result).toContain("LEVEL=info")
      expect(value.environment.result).not.toMatch(/of-the-run|two lines/)
      expect(value.secret.result).toBe("the token is [secret]")
      const list = value.list._tag === "Exited" ? Buffer.from(value.list.output.head).toString() : ""
      expect(list).toContain("data:text/javascript")
      expect(list).not.toContain("two lines")
    })
  )
  it.scopedLive(
    "runs outside where the sandbox lacks it, which is said once, or not at all where that is wanted.",
    () =>
      Effect.gen(function* () {
        const { value, lines } = yield* Mcp.logged(
          Effect.gen(function* () {
            const [set, inside, beside] = yield* Mcp.toolsets({
              either: Mcp.program("plain"),
              inside: Mcp.program("plain", { sandbox: true }),
              beside: Mcp.inlined("plain", { sandbox: false })
            })
            const one = (tools: typeof set, name: string) =>
              Effect.scoped(Effect.provide(Mcp.use(tools?.tools ?? [], name), Mcp.session()))
            return [
              yield* one(set, "mcp_either_where"),
              yield* one(set, "mcp_either_counter"),
              yield* one(inside, "mcp_inside_where"),
              yield* one(beside, "mcp_beside_where")
            ]
          })
        )
        expect(value.map(({ result, error }) => result ?? error)).toEqual([
          expect.stringMatching(/^\/tmp\/batch-runner-.*\/work$/),
          "1",
          expect.stringMatching(
            /^the MCP server inside does not come up: it ended with exit code 1: Error: Cannot find module/
          ),
          expect.stringMatching(/^\/tmp\/batch-runner-.*\/work$/)
        ])
        expect(lines.filter((line) => line.includes("MCP"))).toEqual([
          expect.stringMatching(
            /^the MCP server either runs outside the sandbox; inside, it ended with exit code 1: Error: Cannot find module/
          )
        ])
      })
  )
  it.scopedLive("is the session's own: it remembers from call to call, and not from session to session.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf(Mcp.inlined("plain"))
      const session = Effect.gen(function* () {
        return [yield* Mcp.use(tools, "mcp_s_counter"), yield* Mcp.use(tools, "mcp_s_counter")].map(
          ({ result }) => result
        )
      }).pipe(Effect.provide(Mcp.session()))
      expect(yield* session).toEqual(["1", "2"])
      expect(yield* session).toEqual(["1", "2"])
    })
  )
  it.scopedLive("passes on the model's own object, a failure and a refusal.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf(Mcp.program("plain"))
      const args = { deep: { list: [1, "zwei", null] }, listing: true }
      expect(JSON.parse((yield* Mcp.use(tools, "mcp_s_echo", args)).result)).toEqual(args)
      expect(yield* Mcp.use(tools, "mcp_s_fail")).toMatchObject({ ok: false, valid: true, error: "that did not work" })
      expect(yield* Mcp.use(tools, "mcp_s_refuse")).toMatchObject({
        ok: false,
        error: "the MCP server s refused the call: no such argument"
      })
    }).pipe(Effect.provide(Mcp.session("plain")))
  )
  for (const namespace of ["auto", "plain"] as const) {
    it.scopedLive(`leaves no process, nor do its children (${namespace}).`, () =>
      Effect.gen(function* () {
        const tools = yield* toolsOf(Mcp.inlined("hostile"))
        yield* Effect.gen(function* () {
          expect(yield* Mcp.use(tools, "mcp_s_child")).toMatchObject({ ok: true })
          expect(running("987654").length).toBeGreaterThan(0)
        }).pipe(Effect.provide(Mcp.session(namespace)))
        expect(running("987654")).toEqual([])
      })
    )
  }
})

describe("A hostile server", () => {
  it.scopedLive("that dies fails its call with its last words, and the next call starts it anew.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf(Mcp.inlined("hostile"))
      expect(yield* Mcp.use(tools, "mcp_s_die")).toMatchObject({
        ok: false,
        valid: true,
        error:
          "the MCP server s is gone: it ended with exit code 9: out of luck; the next call starts it anew, without what it remembered"
      })
      expect(yield* Mcp.use(tools, "mcp_s_structured")).toMatchObject({ ok: true, result: '{"a":[1,2]}' })
    }).pipe(Effect.provide(Mcp.session()))
  )
  it.scopedLive("that never answers is given up after the time of a command.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf(Mcp.inlined("hostile"), { commandTimeout: 1 })
      expect(yield* Mcp.use(tools, "mcp_s_silent")).toMatchObject({
        ok: false,
        error: "the MCP server s gave no answer within 1 second"
      })
      expect(yield* Mcp.use(tools, "mcp_s_structured")).toMatchObject({ ok: true })
    }).pipe(Effect.provide(Mcp.session()))
  )
  it.scopedLive("that floods is ended, within a fixed memory.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf(Mcp.inlined("hostile"))
      const before = process.memoryUsage().rss
      expect((yield* Mcp.use(tools, "mcp_s_flood")).error).toContain("is gone: it sent more than 500000 lines")
      expect((yield* Mcp.use(tools, "mcp_s_unending")).error).toContain("it sent a message of more than 16000000 bytes")
      expect((yield* Mcp.use(tools, "mcp_s_pings")).error).toContain("it sent more than 10000 messages")
      expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000)
      expect(yield* Mcp.use(tools, "mcp_s_noise")).toMatchObject({ ok: true, result: "after the noise" })
    }).pipe(Effect.provide(Mcp.session()))
  )
  it.scopedLive("gives wrong and huge results, and asks for what it does not get.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf(Mcp.inlined("hostile"))
      expect((yield* Mcp.use(tools, "mcp_s_wrong")).error).toBe("the MCP server s gave a result that is none")
      const { result } = yield* Mcp.use(tools, "mcp_s_huge")
      expect(result.length).toBeLessThan(51_000)
      expect(result).toMatch(/\[… 49\d{5} characters left out …\]/)
      expect((yield* Mcp.use(tools, "mcp_s_asks")).result).toContain("declined: Method not found")
    }).pipe(Effect.provide(Mcp.session()))
  )
  it.scopedLive("gives media: they become files, or a word where they cannot.", () =>
    Effect.gen(function* () {
      const tools = yield* toolsOf(Mcp.inlined("hostile"))
      const sandbox = yield* Sandbox
      const lines = (text: string) => text.split("\n")
      expect(lines((yield* Mcp.use(tools, "mcp_s_media")).result)).toEqual([
        "see:",
        "[image image/png, 7 bytes: in the file mcp/1.png]",
        "[audio audio/wav, 5 bytes: in the file mcp/2.wav]",
        "embedded",
        "[resource x/y, 4 bytes: in the file mcp/3.bin]",
        "[resource link a:d]",
        "[content of a kind that is not known]",
        "[content of a kind that is not known]"
      ])
      expect(Buffer.from((yield* sandbox.read("mcp/1.png", { maxBytes: 10 })).bytes).toString()).toBe("picture")
      yield* sandbox.exec("rm -r mcp && touch mcp", { timeout: 5 })
      expect(lines((yield* Mcp.use(tools, "mcp_s_media")).result)[1]).toBe("[image image/png, 7 bytes]")
    }).pipe(Effect.provide(Mcp.session()))
  )
  it.scopedLive("with thousands of tools, odd names and odd schemas offers what can be called.", () =>
    Effect.gen(function* () {
      const { value, lines } = yield* Mcp.logged(
        Mcp.toolsets({ many: Mcp.program("many"), odd: Mcp.program("odd"), endless: Mcp.program("endless") })
      )
      const [many, odd, endless] = value
      expect(many?.toolNames).toHaveLength(128)
      expect(many?.toolNames[127]).toBe("mcp_many_tool_127")
      expect(endless?.toolNames).toHaveLength(8)
      const names = odd?.toolNames ?? []
      expect(names.slice(0, 4)).toEqual([
        expect.stringMatching(/^mcp_odd_a_b_[0-9a-f]{8}$/),
        "mcp_odd_a_b",
        expect.stringMatching(/^mcp_odd_a_b_[0-9a-f]{8}$/),
        "mcp_odd__"
      ])
      expect(names).toHaveLength(6)
      expect(new Set(names).size).toBe(6)
      for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(lines.filter((line) => line.includes("MCP"))).toEqual([
        "the MCP server many: 9872 tools, such as tool_128, are left out: it has more than 128 tools",
        "the MCP server odd: 2 tools, such as no_object, are left out: its input schema is no object's",
        "the MCP server odd: its tool large is left out: its input schema is larger than 30000 characters"
      ])
    })
  )
  it.scopedLive("that does not come up lacks its tools, with why, and without a secret.", () =>
    Effect.gen(function* () {
      const refusing = Http.createServer((_, response) =>
        response.writeHead(401).end("no entry for Bearer very-secret")
      )
      yield* Effect.promise(() => new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() => Effect.sync(() => refusing.close()))
      const { port } = refusing.address() as AddressInfo
      const sets = yield* Mcp.toolsets(
        {
          broken: Mcp.program("broken", { env: { SERVER_TOKEN: placeholder("MINE") } }),
          absent: { command: "no-such-program" },
          deaf: Mcp.program("deaf"),
          babble: Mcp.program("babble"),
          nowhere: { url: "http://127.0.0.1:65534/mcp" },
          refused: { url: `http://127.0.0.1:${port}/mcp`, headers: { Authorization: "Bearer very-secret" } },
          unset: { command: "node", args: [placeholder("NOT_SET"), placeholder("NOR_THIS")] },
          unwanted: { command: "touch", args: ["/tmp/must-not-be"] },
          filtered: Mcp.program("plain", { allowedTools: ["echo", "none"] })
        },
        { variables: { MINE: "very-secret-key" }, wanted: (name) => name !== "unwanted" }
      )
      expect(Object.fromEntries(sets.map(({ name, lacks }) => [name, lacks]))).toEqual({
        broken: "it ended with exit code 3: cannot start: the key [secret] is not known",
        absent: "there is no program no-such-program",
        deaf: "no answer within 30 seconds",
        babble: null,
        nowhere: expect.stringMatching(/^it cannot be reached: .*ECONNREFUSED/),
        refused: expect.stringMatching(/^HTTP 401: .*no entry for \[secret\]/),
        unset: "no NOT_SET, NOR_THIS",
        unwanted: "no session asks for it",
        filtered: null
      })
      expect(sets.at(-1)?.toolNames).toEqual(["mcp_filtered_echo"])
    })
  )
})

describe("An HTTP session", () => {
  it.scopedLive("is opened for each prompt, with the headers of the file, and deleted with it.", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      let made = 0
      const server = Http.createServer((request, response) => {
        let body = ""
        request.on("data", (data) => {
          body += data
        })
        request.on("end", () => {
          const id = request.headers["mcp-session-id"]
          const message = body === "" ? {} : JSON.parse(body)
          asked.push(
            `${request.method} ${message.method ?? ""} ${id ?? "-"} ${request.headers["x-key"]}`.replace(/ +/g, " ")
          )
          const status =
            request.method === "GET" ? 405 : request.method === "DELETE" ? 200 : message.id === undefined ? 202 : 0
          if (status > 0) return void response.writeHead(status).end()
          const result =
            message.method === "initialize"
              ? {
                  protocolVersion: message.params.protocolVersion,
                  capabilities: {},
                  serverInfo: { name: "x", version: "1" }
                }
              : message.method === "tools/list"
                ? { tools: [{ name: "t", inputSchema: { type: "object" } }] }
                : { content: [{ type: "text", text: `key ${request.headers["x-key"]}` }] }
          response.writeHead(200, {
            "content-type": "application/json",
            ...(message.method === "initialize" && { "mcp-session-id": `session-${made++}` })
          })
          response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }))
        })
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      const { port } = server.address() as AddressInfo
      const tools = yield* toolsOf(
        { type: "streamable-http", url: `http://127.0.0.1:${port}/mcp`, headers: { "X-Key": placeholder("KEY") } },
        { variables: { KEY: "key-of-mine" } }
      )
      yield* Effect.gen(function* () {
        expect(yield* Mcp.use(tools, "mcp_s_t")).toMatchObject({ result: "key [secret]" })
        expect(yield* Mcp.use(tools, "mcp_s_t")).toMatchObject({ ok: true })
      }).pipe(Effect.provide(Mcp.session("plain")))
      const told = (id: string) => asked.filter((line) => line.includes(id) && !line.startsWith("GET"))
      expect(asked.every((line) => line.endsWith(" key-of-mine"))).toBe(true)
      expect(told("session-0")).toEqual([
        "POST notifications/initialized session-0 key-of-mine",
        "POST tools/list session-0 key-of-mine",
        "DELETE session-0 key-of-mine"
      ])
      expect(told("session-1")).toEqual([
        "POST notifications/initialized session-1 key-of-mine",
        "POST tools/call session-1 key-of-mine",
        "POST tools/call session-1 key-of-mine",
        "DELETE session-1 key-of-mine"
      ])
    })
  )
})

describe("An HTTP server", () => {
  it.scopedLive("that forgets its sessions, answers without end or not at all fails the call, and is asked anew.", () =>
    Effect.gen(function* () {
      let manner = ""
      let sessions = 0
      const server = Http.createServer((request, response) => {
        let body = ""
        request.on("data", (data) => {
          body += data
        })
        request.on("end", () => {
          const message = body === "" ? {} : JSON.parse(body)
          const json = (result: object) => {
            response.writeHead(200, { "content-type": "application/json", "mcp-session-id": `s${sessions}` })
            response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }))
          }
          if (message.method === "initialize") {
            sessions++
            const { protocolVersion } = message.params
            return json({ protocolVersion, capabilities: {}, serverInfo: { name: "x", version: "1" } })
          }
          if (message.method === "tools/list") return json({ tools: [{ name: "t", inputSchema: { type: "object" } }] })
          if (message.method !== "tools/call") return void response.writeHead(202).end()
          if (manner === "forgets") return void response.writeHead(404).end("no such session")
          if (manner === "endless") {
            response.writeHead(200, { "content-type": "application/json" })
            const more = () => {
              while (response.write(" ".repeat(1_000_000)));
            }
            response.on("drain", more)
            return more()
          }
          if (manner === "html") return void response.writeHead(200, { "content-type": "text/html" }).end("<p>hello")
          if (manner === "moved") return void response.writeHead(307, { location: "http://127.0.0.2:9/" }).end()
          if (manner !== "hangs") json({ content: [{ type: "text", text: `session ${sessions}` }] })
        })
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      const { port } = server.address() as AddressInfo
      const tools = yield* toolsOf({ url: `http://127.0.0.1:${port}/mcp`, type: "http", timeout: 2 })
      const call = (now: string) => {
        manner = now
        return Mcp.use(tools, "mcp_s_t")
      }
      expect((yield* call("")).result).toBe("session 2")
      expect((yield* call("forgets")).error).toMatch(/^the MCP server s is gone: HTTP 404: .*no such session/)
      expect((yield* call("")).result).toBe("session 3")
      expect((yield* call("hangs")).error).toBe("the MCP server s gave no answer within 2 seconds")
      expect((yield* call("")).result).toBe("session 3")
      expect((yield* call("endless")).error).toMatch(/an answer of more than 64000000 bytes|no answer within 2 seconds/)
      expect((yield* call("html")).error).toMatch(/text\/html/)
      expect((yield* call("moved")).error).toMatch(/redirect/i)
      expect((yield* call("")).ok).toBe(true)
    }).pipe(Effect.provide(Mcp.session("plain")))
  )
})

describe("The file", () => {
  const refused = (file: unknown, taken: ReadonlyArray<string> = []) =>
    Effect.map(Effect.flip(Mcp.read(file, {}, taken)), ({ message }) => message)
  it.scopedLive("is refused with what does not fit and what is allowed, on one line without its values.", () =>
    Effect.gen(function* () {
      const one = (server: unknown, name = "a") => ({ mcpServers: { [name]: server } })
      const cases: ReadonlyArray<readonly [unknown, RegExp]> = [
        ["{", /mcp.json is not JSON; allowed: \{"mcpServers"/],
        [{ servers: {} }, /it has no object mcpServers/],
        [one({ command: "a", args: ["x", { "my-secret": 1 }] }), /mcpServers\.a\.args\.1 does not fit/],
        [one({ command: "a", env: { "A B": "my-secret" } }), /mcpServers\.a\.env: a name is none/],
        [one({}), /mcpServers\.a: a server has either a command or a url/],
        [one({ command: "a", url: "http://b" }), /either a command or a url/],
        [one({ url: "my-secret" }), /mcpServers\.a\.url is no address; allowed: http/],
        [one({ url: "file:///my-secret" }), /no address/],
        [one({ url: "http://a", headers: { "a b": "my-secret" } }), /headers: a name or a value/],
        [one({ command: "a" }, "a b\n"), /mcpServers\.a b\?: the name of a server .* allowed: at most 40 letters/],
        [one({ command: "a" }, "web"), /mcpServers\.web: there is a toolset of that name already/]
      ]
      for (const [file, says] of cases) {
        const message = yield* refused(file, ["terminal", "web"])
        expect(message).toMatch(says)
        expect(message).toMatch(/^--mcp_config: [^\n]+$/)
        expect(message).not.toContain("my-secret")
        expect(message).toContain("allowed: ")
      }
    })
  )
  it.scopedLive("holds what other programs put there, and what is switched off.", () =>
    Effect.gen(function* () {
      const servers = yield* Mcp.read({
        mcpServers: {
          off: { command: 7, disabled: true, other: 1 },
          on: {
            command: "x",
            alwaysAllow: ["a"],
            type: "stdio",
            tools: ["*"],
            timeout: 5,
            env: { PORT: 80, DEBUG: true }
          }
        },
        inputs: []
      }).pipe(Effect.either)
      expect(servers).toMatchObject({ _tag: "Left" })
      // A server that is switched off must still be one.
      const [on, ...rest] = yield* Mcp.read({
        mcpServers: {
          off: { command: "7", disabled: true, other: 1 },
          on: {
            command: "x",
            alwaysAllow: ["a"],
            type: "stdio",
            tools: ["*"],
            timeout: 5,
            env: { PORT: 80, DEBUG: true }
          }
        },
        inputs: []
      })
      expect(rest).toEqual([])
      expect(on).toMatchObject({ name: "on", tools: undefined, timeout: 5, at: { env: { PORT: "80", DEBUG: "true" } } })
    })
  )
})
