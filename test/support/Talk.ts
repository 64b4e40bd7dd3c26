/** What the scripted model server is told to say, and what it was asked. */
import { onTestFinished } from "vitest"
import * as ModelServer from "./ModelServer.ts"

/** A model server that is closed after the test. */
export const serve = async (handler: ModelServer.Handler): Promise<ModelServer.ModelServer> => {
  const server = await ModelServer.start(handler)
  onTestFinished(() => server.close())
  return server
}

/** A final answer with reasoning. */
export const final = (content = "done", reasoning = "let me think"): ModelServer.Reaction =>
  ModelServer.answer({ content, reasoning })

/** An answer that runs a command. */
export const runs = (...commands: ReadonlyArray<string>): ModelServer.Reaction =>
  ModelServer.answer({
    reasoning: "a command will tell",
    toolCalls: commands.map((command, place) => ({ id: `c${place}`, name: "terminal", arguments: { command } }))
  })

/** The prompt of a request, without what the last turn adds to it. */
export const promptOf = ({ body }: ModelServer.Recorded): string =>
  String(body.messages.findLast(({ role }) => role === "user")?.content).replace(/\n\n\[This is your last turn.*$/s, "")

/** Answers given so far in the session that a request belongs to. */
export const turnOf = ({ body }: ModelServer.Recorded): number =>
  body.messages.filter(({ role }) => role === "assistant").length

/** First runs the commands, then answers. */
export const runsThenEnds =
  (...commands: ReadonlyArray<string>): ModelServer.Handler =>
  (request) =>
    turnOf(request) === 0 ? runs(...commands) : final()
