/** The bare client: the same posts with the same concurrency through Node's own fetch; prints the seconds it took. */
import { readFileSync } from "node:fs"

const [url, file, concurrency] = process.argv.slice(2)
const bodies = readFileSync(file, "utf8").split("\n").filter(Boolean)
const started = performance.now()
let next = 0
const worker = async () => {
  while (next < bodies.length) {
    const response = await fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: bodies[next++]
    })
    await response.json()
  }
}
await Promise.all(Array.from({ length: Number(concurrency) }, worker))
console.log((performance.now() - started) / 1000)
