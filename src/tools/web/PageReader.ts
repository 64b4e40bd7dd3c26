/** Reads documents in threads beside the program: a hostile one is given up after its time, and holds nobody else up. */
import { existsSync } from "node:fs"
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { Duration, Effect, Predicate, Schema, type Scope } from "effect"
import type { Page, Source } from "./Reading.ts"

/** A document that cannot be read. `message` is for the model. */
export class ReadError extends Schema.TaggedError<ReadError>()("ReadError", {
  detail: Schema.String,
  /** Whether it took too long or too much memory. */
  tooMuch: Schema.Boolean
}) {
  override get message(): string {
    return this.detail
  }
}

export interface PageReader {
  readonly read: (source: Omit<Source, "plain">) => Effect.Effect<Page, ReadError>
}

/** Seconds that a document may take. */
export const secondsAtMost = 20

/** Megabytes that a thread may take. */
const memory = 512

const Answer = Schema.Union(
  Schema.Struct({ page: Schema.Struct({ title: Schema.String, text: Schema.String, left: Schema.Number }) }),
  Schema.Struct({ error: Schema.String })
)

/** The thread's program: beside the bundle, beside this module of the library, or as built for these sources. */
const program = ["./page-worker.cjs", "./PageWorker.js", "../../../bin/page-worker.cjs"]
  .map((name) => fileURLToPath(new URL(name, import.meta.url)))
  .find((path) => existsSync(path))

const tooMuch = (detail: string) => new ReadError({ detail, tooMuch: true })

/** Threads start with the first documents, are used again, and end with the scope. */
export const make = (seconds = secondsAtMost): Effect.Effect<PageReader, never, Scope.Scope> =>
  Effect.gen(function* () {
    const idle: Array<Worker> = []
    const places = Effect.unsafeMakeSemaphore(Math.min(4, Math.max(2, availableParallelism() - 1)))
    yield* Effect.addFinalizer(() => Effect.sync(() => idle.splice(0).map((worker) => worker.terminate())))
    const fresh = () => {
      const worker = start()
      worker.on("exit", () => {
        const place = idle.indexOf(worker)
        if (place >= 0) idle.splice(place, 1)
      })
      return worker
    }
    const attempt = (source: Source) =>
      places.withPermits(1)(
        Effect.suspend(() => answered(idle.pop() ?? fresh(), source)).pipe(
          Effect.timeoutFail({
            duration: Duration.seconds(seconds),
            onTimeout: () => tooMuch(`it takes more than ${seconds} seconds to read`)
          }),
          Effect.tap(({ worker }) => Effect.sync(() => idle.push(worker))),
          Effect.flatMap(({ answer }) =>
            "page" in answer
              ? Effect.succeed(answer.page)
              : Effect.fail(new ReadError({ detail: answer.error, tooMuch: false }))
          )
        )
      )
    return {
      read: (source) =>
        program === undefined
          ? Effect.fail(new ReadError({ detail: "the part that reads pages is not installed", tooMuch: false }))
          : // What its form makes too hard may still be read as text.
            Effect.catchIf(
              attempt({ ...source, plain: false }),
              (error) => error.tooMuch,
              () => attempt({ ...source, plain: true })
            )
    }
  })

/** Nothing of the environment is known to it, and nothing that it says is shown. */
const start = (): Worker => {
  const worker = new Worker(program ?? "", {
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memory }
  })
  worker.stdout.resume()
  worker.stderr.resume()
  // One that waits for work does not keep the program from ending.
  worker.unref()
  worker.on("error", () => {})
  return worker
}

/** One document: a thread that does not answer it is ended. */
const answered = (worker: Worker, source: Source) =>
  Effect.async<{ readonly worker: Worker; readonly answer: typeof Answer.Type }, ReadError>((resume) => {
    const end = (outcome: Effect.Effect<typeof Answer.Type, ReadError>, keep: boolean) => {
      worker.off("message", told).off("error", broken).off("exit", gone)
      if (!keep) worker.terminate()
      resume(Effect.map(outcome, (answer) => ({ worker, answer })))
    }
    const told = (message: unknown) =>
      Schema.is(Answer)(message)
        ? end(Effect.succeed(message), true)
        : end(Effect.fail(tooMuch("it cannot be read")), false)
    const broken = (error: unknown) =>
      end(
        Effect.fail(
          tooMuch(
            Predicate.hasProperty(error, "code") && error.code === "ERR_WORKER_OUT_OF_MEMORY"
              ? "it takes more memory to read than there is for it"
              : "it cannot be read"
          )
        ),
        false
      )
    const gone = () => end(Effect.fail(tooMuch("it cannot be read")), false)
    worker.on("message", told).on("error", broken).on("exit", gone)
    worker.postMessage(source)
    return Effect.sync(() => {
      worker.off("message", told).off("error", broken).off("exit", gone)
      worker.terminate()
    })
  })
