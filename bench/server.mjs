/** A chat-completions endpoint that answers at once, as a process of its own: prints its address. */
import { createServer } from "node:http"

const body = JSON.stringify({
  id: "bench",
  object: "chat.completion",
  choices: [
    {
      index: 0,
      finish_reason: "stop",
      message: { role: "assistant", content: "The answer is 42.", reasoning: "Six times seven." }
    }
  ],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
})

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`))
