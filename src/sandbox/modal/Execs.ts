/** The commands of one sandbox: each an exec of Modal's, its output read to the end, long ones handed over in a file. */
import { Deferred, Effect, Either, Exit, FiberId, type Scope } from "effect"
import type { ContainerProcess, Sandbox } from "modal"
import * as Proc from "../Proc.ts"
import type { Engine, Exchange, Request } from "../Remote.ts"
import { SandboxError } from "../Sandbox.ts"
import { quote } from "../Shell.ts"
import { call, isMissing, wait } from "./Account.ts"

export interface Execs extends Engine {
  /**
   * Runs a program to its end, for `millis` at most, and gives what it printed; undefined when it took longer. `stdin` is
   * empty when absent.
   */
  readonly run: (
    argv: ReadonlyArray<string>,
    options: { readonly stdin?: Uint8Array; readonly millis: number }
  ) => Effect.Effect<string | undefined, SandboxError>
  /** Exit code of the sandbox's first process; undefined while it is not known to have ended by itself. */
  readonly exitCode: () => number | undefined
  /** What a session is told whose sandbox has ended. */
  readonly lost: () => SandboxError
}

/** Bytes of arguments in one exec; Modal allows 64 KiB. */
const argumentLimit = 48_000

/** Bytes in one message to a command's standard input. */
const pieceLimit = 1_000_000

/** Seconds for an exec to begin, and for the state of a sandbox to be told. */
const limits = { begin: 60, look: 15 }

/** Milliseconds for smaller things: an exit code, a message, a kill. */
const shortly = 5000

/** Takes a text from standard input into a file for the user alone, where there is a place for it, and prints its name. */
const keeper = `
umask 077
for one in "\${TMPDIR:-/tmp}" /tmp /dev/shm /var/tmp "$HOME" .; do
  file=$one/.batch-runner-$1
  if (: > "$file") 2>/dev/null; then cat > "$file" && printf '%s' "$file"; exit; fi
done`

const loader = `file=$1; . "$file"; rm -f -- "$file"; exec "$@"`

const killer = "kill -KILL -1; echo done"

const size = (argv: ReadonlyArray<string>) => argv.reduce((sum, word) => sum + Buffer.byteLength(word) + 1, 0)

const failed = (detail: string) => new SandboxError({ reason: "Lost", detail })

type Process = ContainerProcess<Uint8Array>

export const make = (sandbox: Sandbox): Effect.Effect<Execs, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    let ended: string | undefined
    let exitCode: number | undefined
    let files = 0

    /** Finds out whether the sandbox has ended. */
    const look = call(() => sandbox.poll(), limits.look).pipe(
      Effect.match({
        onFailure: (error) => {
          if (isMissing(error)) ended ??= "Modal no longer knows it"
        },
        onSuccess: (code) => {
          if (code === null) return
          exitCode = code
          ended ??= code === 124 ? "its lifetime was over" : `it ended with exit code ${code}`
        }
      })
    )

    const terminate = Effect.suspend(() => {
      ended ??= "it had to be terminated"
      return Effect.ignore(call(() => sandbox.terminate()))
    })

    const lost = () => failed(`The Modal sandbox ${sandbox.sandboxId} is gone: ${ended}`)

    const begin = ({ argv, env }: Pick<Request, "argv" | "env">): Effect.Effect<Process, SandboxError> =>
      call(
        () => sandbox.exec([...argv], { mode: "binary", stdout: "pipe", stderr: "ignore", env: { ...env } }),
        limits.begin
      ).pipe(
        Effect.catchAll(({ message }) =>
          Effect.flatMap(look, () =>
            ended === undefined ? failed(`A command could not be started in the Modal sandbox: ${message}`) : lost()
          )
        )
      )

    /** Passes on all output, then tells how the program ended. */
    const read = (process: Process, take: Request["take"], closed: Request["closed"]) =>
      Effect.gen(function* () {
        const reader = process.stdout.getReader()
        const next = wait(() => reader.read())
        const whole = Effect.gen(function* () {
          for (let piece = yield* next; !piece.done; piece = yield* next) take(piece.value)
        }).pipe(Effect.onInterrupt(() => Proc.atMost(Effect.ignore(wait(() => reader.cancel())), shortly)))
        const reading = yield* Effect.exit(whole)
        const code = Exit.isSuccess(reading) ? yield* codeOf(process) : undefined
        // What a program dies of may have been the end of the whole sandbox.
        if (code !== 0) yield* look
        // Nobody can tell any more what it does.
        if (Exit.isFailure(reading) && ended === undefined) yield* terminate
        closed(code)
      })

    // A command is begun where interruption is held off; what watches it must end with the sandbox.
    const watch = (effect: Effect.Effect<void>) => Effect.forkIn(Effect.interruptible(effect), scope)

    const exchange = (process: Process, stdin: Request["stdin"]): Effect.Effect<Exchange> =>
      Effect.gen(function* () {
        const writer = process.stdin.getWriter()
        let open = true
        const put = (data: Uint8Array) =>
          Effect.gen(function* () {
            for (let from = 0; from < data.length; from += pieceLimit) {
              yield* wait(() => writer.write(data.subarray(from, from + pieceLimit)))
            }
          }).pipe(
            Effect.catchAll(() =>
              Effect.sync(() => {
                open = false
              })
            )
          )
        if (stdin !== "open") {
          const all = put(stdin ?? new Uint8Array(0))
          yield* watch(Effect.zipRight(all, Effect.ignore(wait(() => writer.close()))))
        }
        return {
          // A program that does not read holds a message up; it is on its way all the same.
          write: (data) => Effect.map(Proc.atMost(put(Uint8Array.from(data)), shortly), () => open)
        }
      })

    const run: Execs["run"] = (argv, { stdin, millis }) =>
      Effect.gen(function* () {
        const process = yield* begin({ argv, env: {} })
        const said: Array<Uint8Array> = []
        const closed = Deferred.unsafeMake<void>(FiberId.none)
        const done = () => Deferred.unsafeDone(closed, Effect.void)
        yield* exchange(process, stdin)
        yield* watch(read(process, (data) => said.push(data), done))
        yield* Deferred.await(closed)
        return Buffer.concat(said).toString("utf8")
      }).pipe(
        Effect.either,
        (either) => Proc.atMost(either, millis),
        Effect.flatMap((either) => either ?? Either.right(undefined))
      )

    /** Arguments short enough for an exec that come to the same. */
    const fitting = (argv: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>, SandboxError> =>
      Effect.gen(function* () {
        if (size(argv) <= argumentLimit) return argv
        const stdin = Buffer.from(`set -- ${argv.map(quote).join(" ")}\n`)
        const file = yield* run(["/bin/sh", "-c", keeper, "sh", `${files++}`], { stdin, millis: limits.begin * 1000 })
        if (file !== undefined && file !== "") return ["/bin/sh", "-c", loader, "sh", file]
        return yield* failed("A long command found no place in the Modal sandbox: its disk may be full")
      })

    const exec: Engine["exec"] = (request) =>
      Effect.gen(function* () {
        if (ended !== undefined) return yield* lost()
        const argv = yield* fitting(request.argv)
        const process = yield* begin({ argv, env: request.env })
        const result = yield* exchange(process, request.stdin)
        yield* watch(read(process, request.take, request.closed))
        return result
      })

    const restart = run(["/bin/sh", "-c", killer], { millis: shortly }).pipe(
      Effect.orElseSucceed(() => undefined),
      Effect.flatMap((said) => (said?.startsWith("done") === true ? Effect.void : terminate))
    )

    return { alive: () => ended === undefined, exec, restart, run, exitCode: () => exitCode, lost }
  })

/** Exit code of a program whose output is over; undefined when it is not told. */
const codeOf = (process: Process): Effect.Effect<number | undefined> =>
  Proc.atMost(
    Effect.orElseSucceed(
      wait((signal) => process._wait(signal)),
      () => undefined
    ),
    shortly
  )
