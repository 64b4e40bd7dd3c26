/** An MCP server over standard input and output, without any package, that does what its first argument says. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const manner = process.argv.at(-1)
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const empty = { type: "object" }
const tool = (name, inputSchema = empty, description = "") => ({ name, description, inputSchema })
const text = (text) => ({ content: [{ type: "text", text }] })

const tools = {
  plain: [
    tool("echo"),
    tool("environment"),
    tool("counter"),
    tool("pid"),
    tool("secret"),
    tool("where"),
    tool("fail"),
    tool("refuse")
  ],
  versions: [tool("echo"), tool("newer")],
  hostile: [
    "die",
    "flood",
    "noise",
    "silent",
    "wrong",
    "huge",
    "media",
    "asks",
    "structured",
    "unending",
    "child",
    "pings"
  ].map((name) => tool(name)),
  many: Array.from({ length: 10_000 }, (_, at) => tool(`tool_${at}`)),
  odd: [
    ...["a.b", "a_b", "a/b", "ä", "", "x".repeat(200), `${"x".repeat(200)}y`].map((name) => tool(name)),
    tool("no_object", { type: "string" }),
    tool("large", { type: "object", properties: { a: { type: "string", description: "y".repeat(40_000) } } }),
    { name: "none" },
    7
  ]
}

if (manner === "deaf") setInterval(() => {}, 1000)
if (manner === "broken") {
  process.stderr.write(`first line\ncannot start: the key ${process.env.SERVER_TOKEN} is not known\n`)
  process.exit(3)
}
if (manner === "babble") setInterval(() => process.stdout.write("{ this is no JSON\n[1]\n{}\n\x1b[31mhello\n"), 50)

let count = 0
const call = (id, name, args) => {
  switch (name) {
    case "echo":
      return send({ id, result: text(JSON.stringify(args)) })
    case "newer":
      return send({ id, result: text("new") })
    case "environment":
      return send({
        id,
        result: text(
          Object.entries(process.env)
            .map(([key, value]) => `${key}=${value}`)
            .join("\n")
        )
      })
    case "counter":
      return send({ id, result: text(String(++count)) })
    case "pid":
      return send({ id, result: text(String(process.pid)) })
    case "secret":
      return send({ id, result: text(`the token is ${process.env.SERVER_TOKEN}`) })
    case "where":
      return send({ id, result: text(process.cwd()) })
    case "fail":
      return send({ id, result: { ...text("that did not work"), isError: true } })
    case "refuse":
      return send({ id, error: { code: -32602, message: "no such argument" } })
    case "die":
      process.stderr.write("out of luck\n")
      return process.exit(9)
    case "flood":
      return setInterval(() => process.stdout.write("y\n".repeat(500_000)), 1)
    case "unending":
      return setInterval(() => process.stdout.write(`{"a": "${"z".repeat(1_000_000)}`), 1)
    case "pings": {
      let ping = 0
      return setInterval(() => {
        for (let at = 0; at < 5000; at++) send({ id: `p${ping++}`, method: "ping" })
      }, 1)
    }
    case "noise":
      process.stderr.write("e".repeat(5_000_000))
      process.stdout.write(`${"o".repeat(3_000_000)}\nnot JSON\n{"jsonrpc": "2.0"}\n{"id": 1}\n`)
      return send({ id, result: text("after the noise") })
    case "silent":
      return
    case "wrong":
      return send({ id, result: { content: "no list" } })
    case "huge":
      return send({ id, result: text("0123456789".repeat(500_000)) })
    case "structured":
      return send({ id, result: { content: [], structuredContent: { a: [1, 2] } } })
    case "media":
      return send({
        id,
        result: {
          content: [
            { type: "text", text: "see:" },
            { type: "image", mimeType: "image/png", data: Buffer.from("picture").toString("base64") },
            { type: "audio", mimeType: "audio/wav", data: Buffer.from("sound").toString("base64") },
            { type: "resource", resource: { uri: "a:b", text: "embedded" } },
            {
              type: "resource",
              resource: { uri: "a:c", blob: Buffer.from("blob").toString("base64"), mimeType: "x/y" }
            },
            { type: "resource_link", uri: "a:d", name: "link" },
            { type: "novelty" },
            7
          ]
        }
      })
    case "asks":
      asking = id
      return send({ id: "s1", method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } })
    case "child":
      spawn("sleep", ["987654"], { detached: true, stdio: "ignore" }).unref()
      return send({ id, result: text("started") })
  }
}

let asking
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, error } = JSON.parse(line)
  if (id === "s1") return send({ id: asking, result: text(`declined: ${error?.message}`) })
  if (manner === "deaf") return
  if (method === "initialize") {
    send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: manner, version: "1" }
      }
    })
  } else if (method === "tools/list") {
    const all = tools[manner] ?? tools.plain
    const from = Number(params?.cursor ?? 0)
    const size = manner === "many" ? 1000 : 3
    const more = from + size < all.length || manner === "endless"
    send({ id, result: { tools: all.slice(from, from + size), ...(more && { nextCursor: String(from + size) }) } })
  } else if (method === "tools/call") call(id, params.name, params.arguments)
})
// Whatever its input does, it stays.
if (manner === "stubborn") {
  setInterval(() => {}, 1000)
  process.on("SIGTERM", () => {})
}
