/** What the end of a program behind an engine's API means: only the command's own mark says how it ended. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as Output from "../../src/sandbox/Output.ts"
import * as Remote from "../../src/sandbox/Remote.ts"

/** An engine on which every program prints `text`, and then ends with `code` as far as the engine knows. */
const ended = async (text: string, code: number | undefined) => {
  let restarts = 0
  const engine: Remote.Engine = {
    alive: () => true,
    exec: ({ take, closed }) =>
      Effect.sync(() => {
        setImmediate(() => {
          if (text !== "") take(new TextEncoder().encode(text))
          closed(code)
        })
        return { write: () => Effect.succeed(false) }
      }),
    restart: Effect.sync(() => {
      restarts++
    })
  }
  const ground = Remote.ground(engine, Effect.void)
  const launch = { argv: () => ["sh"], output: Output.capped(1000), stdin: undefined }
  const running = await Effect.runPromise(ground.launch("1", launch))
  const exitCode = await Effect.runPromise(running.ended)
  await Effect.runPromise(ground.launch("2", launch))
  return { mark: running.mark(), lost: running.lost(), exitCode, restarts, said: Output.text(running.output()) }
}

describe("A program behind an engine", () => {
  it("has ended as its own mark says, whatever the engine says.", async () => {
    const result = await ended("\x1e17\nhello\n\x1eend of 1 3\n", 0)
    expect(result).toEqual({ mark: "17", lost: false, exitCode: 3, restarts: 0, said: "hello\n" })
  })
  it.each([0, 1, 126, undefined])("is lost without that mark, when the engine says %s.", async (code) => {
    expect(await ended("\x1e17\nhel", code)).toMatchObject({ mark: "17", lost: true, restarts: 0, said: "hel" })
    expect(await ended("", code)).toMatchObject({ lost: true, restarts: 0 })
  })
  it("was killed, when the engine says so.", async () => {
    expect(await ended("\x1e17\nhel", 137)).toMatchObject({ mark: "17", lost: false, exitCode: 137 })
    expect(await ended("", 143)).toMatchObject({ mark: "", lost: false, exitCode: 143 })
  })
  it("never began when something else was said: everything inside is ended before the next one begins.", async () => {
    expect(await ended("sh: can't fork", 2)).toMatchObject({ mark: null, lost: false, restarts: 1 })
  })
})
