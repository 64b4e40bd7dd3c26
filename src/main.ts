/** The program: what was typed, as an exit code. Signals end a run in two steps. */

import { makeRunMain } from "@effect/platform/Runtime"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Cause, Console, Deferred, Effect, Exit } from "effect"
import * as Command from "./cli/Command.ts"
import * as Output from "./cli/Output.ts"

/** Exit codes of an interrupted run. */
const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

const stop = Deferred.unsafeMake<void>(Effect.runSync(Effect.fiberId))
let signalled: keyof typeof signals | undefined
let releasedAt: number | undefined

/** Ends with the first signal: there is nothing to put in order. */
const stoppable = Effect.raceFirst(Effect.flatMap(Deferred.await(stop), () => Effect.interrupt))

const program = Command.run(
  process.argv.slice(2),
  (request, resume) =>
    request.config.dry_run
      ? Effect.flatMap(
          Effect.promise(() => import("./cli/DryRun.ts")),
          ({ run }) => run(request, stop)
        )
      : Effect.flatMap(
          Effect.promise(() => import("./cli/Execute.ts")),
          ({ execute }) => execute(request, resume, stop)
        ),
  {
    clean: (argv) =>
      Effect.flatMap(
        Effect.promise(() => import("./cli/Clean.ts")),
        ({ run }) => run(argv)
      ),
    setup: (argv) =>
      Effect.flatMap(
        Effect.promise(() => import("./cli/Setup.ts")),
        ({ run }) => stoppable(run(argv, process.env))
      ),
    doctor: (argv) =>
      Effect.flatMap(
        Effect.promise(() => import("./cli/Doctor.ts")),
        ({ run }) => stoppable(run(argv, process.env))
      )
  }
).pipe(
  Effect.catchAll((error) => Effect.as(Console.error(`batch-runner: ${error.message}`), 2)),
  Effect.catchAllDefect((defect) => Effect.as(Console.error(Cause.pretty(Cause.die(defect))), 1)),
  Output.plainWhereNotTerminal,
  Effect.provide(NodeContext.layer)
)

/** Milliseconds in which the second signal's release must be done: containers take a while, and an engine may be slow. */
const releaseLimit = 90_000

/** Milliseconds in which further signals mean the second one again: a terminal and a parent may both pass each on. */
const together = 250

/** The first signal lets the run put its files in order; the second only releases what it holds; the third does not even wait for that. */
const runMain = makeRunMain(({ fiber, teardown }) => {
  const keepAlive = setInterval(() => {}, 2 ** 31 - 1)
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      // Without a terminal there is none to lose: `nohup` means that we go on, and Node forgets what it asked of us.
      if (signal === "SIGHUP" && !process.stderr.isTTY) return
      if (signalled !== undefined) {
        const code = signals[signalled]
        if (releasedAt !== undefined) {
          if (performance.now() - releasedAt < together) return
          process.stderr.write(
            "ended without waiting for sandboxes; what is left of them goes with `batch-runner clean`\n"
          )
          return process.exit(code)
        }
        releasedAt = performance.now()
        // What the operating system holds up, such as a pipe that nobody writes to, must not hold us.
        setTimeout(() => process.exit(code), releaseLimit).unref()
        return fiber.unsafeInterruptAsFork(fiber.id())
      }
      signalled = signal
      process.stderr.write(
        `${signal}: no new prompts; releasing those in flight, then putting the files in order (again: stop at once)\n`
      )
      Deferred.unsafeDone(stop, Exit.void)
    })
  }
  fiber.addObserver((exit) => {
    clearInterval(keepAlive)
    teardown(exit, (code) => Output.flushed(() => process.exit(code)))
  })
})

Output.outliveReaders()
runMain(program, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, onExit) => {
    const own = Exit.isSuccess(exit) && typeof exit.value === "number" ? exit.value : 1
    onExit(signalled === undefined ? own : signals[signalled])
  }
})
