/** What the harness costs beside a bare client and a bare shell, all in one run on this machine. */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { sandboxes } from "./sandboxes.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const command = join(dirname(here), "bin", "batch-runner.js")
const prompts = Number(process.env.BENCH_PROMPTS ?? 2000)
const workers = Number(process.env.BENCH_WORKERS ?? 16)
const rounds = Number(process.env.BENCH_ROUNDS ?? 3)
const folder = mkdtempSync(join(tmpdir(), "batch-runner-bench-"))

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
const show = (name, value) => console.log(`${name.padEnd(52)} ${value}`)

/** Starts the endpoint; gives its address and how to end it. */
const endpoint = async () => {
  const child = spawn(process.execPath, [join(here, "server.mjs")], { stdio: ["ignore", "pipe", "inherit"] })
  const [address] = await new Promise((resolve) =>
    child.stdout.once("data", (data) => resolve(String(data).trim().split("\n")))
  )
  return { address, close: () => child.kill() }
}

/** One run of the command on a data set; gives seconds and peak memory (MiB). */
const run = (dataset, name, options) => {
  const started = performance.now()
  const args = [
    command,
    `--dataset_file=${dataset}`,
    "--batch_size=100",
    `--run_name=${name}`,
    `--output_dir=${join(folder, "data")}`,
    ...options
  ]
  const { status, stderr } = spawnSync(process.execPath, ["--import", peakHook, ...args], {
    encoding: "utf8",
    maxBuffer: 1 << 30
  })
  if (status !== 0) throw new Error(`the run ended with ${status}: ${stderr.slice(-2000)}`)
  const peak = /peak-rss-mib (\d+)/.exec(stderr)?.[1]
  return { seconds: (performance.now() - started) / 1000, peak: Number(peak) }
}

/** A module that prints the process's peak memory at its end. */
const peakHook = join(folder, "peak.mjs")
writeFileSync(
  peakHook,
  `process.on("exit", () => process.stderr.write("peak-rss-mib " + Math.round(process.resourceUsage().maxRSS / 1024) + "\\n"))\n`
)

const dataset = join(folder, "prompts.jsonl")
const write = (path, count) =>
  writeFileSync(
    path,
    Array.from(
      { length: count },
      (_, at) => `${JSON.stringify({ prompt: `Question ${at}: what is six times seven? ${"x".repeat(200)}` })}\n`
    ).join("")
  )

/** The very bodies that the command posts, recorded by an endpoint of our own. */
const bodiesOf = async (path) => {
  const bodies = []
  const answer = JSON.stringify({
    choices: [{ finish_reason: "stop", message: { role: "assistant", content: "42", reasoning: "x" } }]
  })
  const server = createServer((request, response) => {
    const parts = []
    request
      .on("data", (part) => parts.push(part))
      .on("end", () => {
        bodies.push(Buffer.concat(parts).toString("utf8"))
        response.writeHead(200, { "content-type": "application/json" }).end(answer)
      })
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  const child = spawn(
    process.execPath,
    [
      command,
      `--dataset_file=${dataset}`,
      "--batch_size=100",
      "--run_name=record",
      `--output_dir=${join(folder, "data")}`,
      `--base_url=http://127.0.0.1:${server.address().port}/v1`,
      `--num_workers=${workers}`
    ],
    { stdio: "ignore" }
  )
  await new Promise((resolve) => child.once("exit", resolve))
  server.close()
  writeFileSync(path, bodies.join("\n"))
}

const harness = async () => {
  write(dataset, prompts)
  const bodies = join(folder, "bodies.jsonl")
  await bodiesOf(bodies)
  const { address, close } = await endpoint()
  const bare = []
  const ours = []
  const peaks = []
  for (let round = 0; round < rounds; round++) {
    const started = performance.now()
    execFileSync(process.execPath, [join(here, "bare.mjs"), address, bodies, String(workers)])
    bare.push((performance.now() - started) / 1000)
    const result = run(dataset, `harness-${round}`, [`--base_url=${address}`, `--num_workers=${workers}`])
    ours.push(result.seconds)
    peaks.push(result.peak)
  }
  close()
  console.log(`${prompts} prompts without tool calls, ${workers} at a time, whole processes, median of ${rounds}`)
  show("bare client (fetch), seconds", median(bare).toFixed(2))
  show("batch-runner, seconds", median(ours).toFixed(2))
  show("ratio", (median(ours) / median(bare)).toFixed(2))
  show("peak memory, MiB", median(peaks))
}

const memory = () => {
  const big = join(folder, "big.jsonl")
  const count = prompts * 10
  write(big, count)
  const options = [
    "--model=scripted",
    `--num_workers=${workers}`,
    "--distribution=terminal_only",
    "--max_turns=1",
    "--reasoning_filter=off"
  ]
  const script = join(folder, "big.script.json")
  writeFileSync(script, JSON.stringify({ prompts: {}, default: [{ reasoning: "Six times seven.", content: "42" }] }))
  const { peak } = run(big, "memory", options)
  show(`peak memory with ${count} prompts (offline model), MiB`, peak)
}

const toolCalls = () => {
  const calls = 200
  const set = join(folder, "tools.jsonl")
  writeFileSync(set, '{"prompt": "call"}\n')
  const script = (count) =>
    writeFileSync(
      join(folder, "tools.script.json"),
      JSON.stringify({
        prompts: {},
        default: [
          {
            reasoning: "go",
            tool_calls: Array.from({ length: count }, () => ({ name: "terminal", arguments: { command: "true" } }))
          },
          { reasoning: "done", content: "done" }
        ]
      })
    )
  const options = ["--model=scripted", "--distribution=terminal_only"]
  const timed = (count, name) => {
    script(count)
    return run(set, name, options).seconds
  }
  const many = timed(calls + 1, "tools-many")
  const one = timed(1, "tools-one")
  const started = performance.now()
  for (let at = 0; at < calls; at++) spawnSync("bash", ["-c", "true"])
  const bare = (performance.now() - started) / calls
  const ours = ((many - one) * 1000) / calls
  console.log(`${calls} tool calls one after the other`)
  show("plain bash -c, milliseconds a call", bare.toFixed(1))
  show("terminal in the local sandbox, milliseconds a call", ours.toFixed(1))
  show("ratio", (ours / bare).toFixed(2))
}

const startUp = () => {
  const times = Array.from({ length: 5 }, () => {
    const started = performance.now()
    spawnSync(process.execPath, [command, "--version"])
    return performance.now() - started
  })
  show("start-up (--version), milliseconds", median(times).toFixed(0))
}

startUp()
await harness()
memory()
toolCalls()
await sandboxes()
rmSync(folder, { recursive: true, force: true })
