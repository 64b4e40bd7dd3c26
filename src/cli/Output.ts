/** Standard output and error of the command: plain into a pipe, unharmed by a reader that goes away, whole at the end. */
import { Effect } from "effect"

const ansi = /\u001b\[[0-9;]*[A-Za-z]/g

const colourless = (stream: NodeJS.WriteStream): boolean =>
  !stream.isTTY || (process.env.NO_COLOR ?? "") !== "" || process.env.TERM === "dumb"

const writer =
  (stream: NodeJS.WriteStream) =>
  (...parts: ReadonlyArray<unknown>) => {
    const text = `${parts.map(String).join(" ")}\n`
    stream.write(colourless(stream) ? text.replace(ansi, "") : text)
  }

/** Everything printed by way of Effect's Console loses its colours where nobody sees them. */
export const plainWhereNotTerminal = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.consoleWith((whole) =>
    Effect.withConsole(effect, {
      ...whole,
      log: (...parts) => Effect.sync(() => writer(process.stdout)(...parts)),
      error: (...parts) => Effect.sync(() => writer(process.stderr)(...parts))
    })
  )

/** A reader that closed its end, or a full disk behind it, is no reason to end a run: its results are in its own files. */
export const outliveReaders = (): void => {
  process.stderr.on("error", () => {})
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") process.stderr.write(`batch-runner: standard output takes no more: ${error.message}\n`)
  })
}

/** Calls `then` when all that was written has reached its reader, or has none. */
export const flushed = (then: () => void): void => {
  const waiting = [process.stdout, process.stderr].filter((stream) => stream.writable && stream.writableLength > 0)
  let left = waiting.length
  const one = () => {
    if (--left === 0) then()
  }
  if (left === 0) then()
  for (const stream of waiting) stream.write("", one)
}
