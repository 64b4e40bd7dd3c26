/** Runs the built program once as its users will, against an endpoint of its own, and keeps the code that V8 compiled on the way. */
import { closeSync, fsyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Script } from "node:vm"

const [filename, cache] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), "batch-runner-build-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
const dataset = join(folder, "prompts.jsonl")
writeFileSync(
  dataset,
  Array.from({ length: 64 }, (_, at) => `${JSON.stringify({ prompt: `Question ${at}` })}\n`).join("")
)

const call = { id: "call_1", type: "function", function: { name: "terminal", arguments: '{"command":"true"}' } }
const answer = (message, finish_reason) =>
  JSON.stringify({
    choices: [{ finish_reason, message: { role: "assistant", reasoning: "Simple.", ...message } }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  })
let answers = 0
const server = createServer((request, response) =>
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json" })
    response.end(
      answers++ === 0 ? answer({ content: "", tool_calls: [call] }, "tool_calls") : answer({ content: "Done." }, "stop")
    )
  })
)
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))

process.argv.splice(
  1,
  process.argv.length,
  filename,
  `--dataset_file=${dataset}`,
  "--batch_size=16",
  "--run_name=build",
  `--output_dir=${folder}`,
  `--base_url=http://127.0.0.1:${server.address().port}/v1`
)
const script = new Script(`(function(require,__filename){${readFileSync(filename, "utf8")}\n})`, { filename })
process.on("exit", () => {
  const file = openSync(cache, "w")
  writeFileSync(file, script.createCachedData())
  // V8 trusts what it reads: half a file must never be taken for a whole one.
  fsyncSync(file)
  closeSync(file)
})
script.runInThisContext()(createRequire(filename), filename)
