/** Speech by espeak-ng on this machine: a robot's voice, without a key and without the network. */
import { spawn } from "node:child_process"
import { Duration, Effect, Either } from "effect"
import * as Child from "../../sandbox/Child.ts"
import { located } from "../../sandbox/singularity/Program.ts"
import { ToolFailure } from "../Tool.ts"
import type { Variables } from "../Variables.ts"
import * as Sound from "./Sound.ts"
import { maxBytes, type Speaker } from "./Speaker.ts"

/** Seconds for one text. */
const seconds = 60

/** Programs at once, all sessions together. */
const atOnce = 2

/** A name of a voice with its variant, such as `en-us` or `de+f3`: nothing that could be an option or a path. */
const nameOfVoice = /^[A-Za-z0-9][A-Za-z0-9_-]{0,40}(\+[A-Za-z0-9_-]{1,40})?$/

/** Where the program lies: as ESPEAK_PATH says, else the first on PATH; undefined for nowhere. */
export const find = (variables: Variables): string | undefined => {
  const named = variables.plain("ESPEAK_PATH")
  return named === undefined ? (located("espeak-ng") ?? located("espeak")) : located(named)
}

/** Speaks with the program at `path`; `voice` is for those who name none. */
export const make = (path: string, voice: string): Speaker => {
  const places = Effect.unsafeMakeSemaphore(atOnce)
  return {
    say: Effect.fn("Espeak.say")(function* (words) {
      const chosen = words.voice || voice
      if (chosen !== "" && !nameOfVoice.test(chosen)) {
        return yield* failed(
          `voice: expected a name such as en-us, de or fr+f3, got ${JSON.stringify(chosen.slice(0, 60))}`
        )
      }
      // The text goes by standard input: it is never an option, and never in the list of processes.
      const argv = ["--stdin", "--stdout", ...(chosen === "" ? [] : ["-v", chosen])]
      const { bytes, exitCode, errors } = yield* places.withPermits(1)(run(path, argv, words.text))
      if (bytes.length >= maxBytes) return yield* failed("the speech has more than 30 MB; give a shorter text")
      if (exitCode !== 0 || Sound.detect(bytes) !== "wav") {
        // Some names that are no voices make it crash.
        const unknown = chosen !== "" && (exitCode >= 128 || /voice does not exist|phoneme table/i.test(errors))
        return yield* failed(
          unknown
            ? `voice: espeak-ng has no voice ${JSON.stringify(chosen)}; leave it out, or give a language such as en-us, de or fr`
            : `espeak-ng failed with exit code ${exitCode}: ${errors.replaceAll(/\s+/g, " ").trim().slice(0, 300)}`
        )
      }
      return Sound.finished(bytes)
    })
  }
}

const failed = (error: string) => new ToolFailure({ error })

interface Ended {
  readonly bytes: Uint8Array
  /** 128 for any signal. */
  readonly exitCode: number
  readonly errors: string
}

/** Runs the program to its end, in a process group of its own that does not outlive this. */
const run = (path: string, argv: ReadonlyArray<string>, input: string): Effect.Effect<Ended, ToolFailure> =>
  Effect.async<Ended, ToolFailure>((resume) => {
    const started = Either.try(() =>
      spawn(path, argv, {
        cwd: "/",
        env: { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8" },
        detached: true,
        stdio: Child.shielded(["pipe", "pipe", "pipe"])
      })
    )
    const unable = (cause: unknown) => resume(failed(`espeak-ng cannot be started: ${cause}`))
    if (Either.isLeft(started)) return unable(started.left)
    const program = started.right
    const chunks: Array<Buffer> = []
    let size = 0
    let errors = ""
    const kill = () => {
      const { pid } = program
      // It may have ended just now.
      if (pid !== undefined && program.exitCode === null && program.signalCode === null)
        Either.try(() => process.kill(-pid, "SIGKILL"))
    }
    program.stdout?.on("data", (chunk: Buffer) => {
      if (size >= maxBytes) return
      chunks.push(chunk)
      size += chunk.length
      if (size >= maxBytes) kill()
    })
    program.stderr?.on("data", (chunk: Buffer) => {
      errors = (errors + chunk.toString("utf8")).slice(0, 2000)
    })
    program.on("error", unable)
    program.on("close", (code) =>
      resume(Effect.succeed({ bytes: Buffer.concat(chunks), exitCode: code ?? 128, errors }))
    )
    // A program that ends before it has read everything breaks the pipe.
    program.stdin?.on("error", () => {})
    program.stdin?.end(input)
    return Effect.sync(kill)
  }).pipe(
    Effect.timeoutFail({
      duration: Duration.seconds(seconds),
      onTimeout: () => failed(`espeak-ng did not end within ${seconds} seconds; give a shorter text`)
    })
  )
