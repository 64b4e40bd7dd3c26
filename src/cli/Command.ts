/**
 * What a person can type:
 *
 *   batch-runner --dataset_file=<path> --batch_size=<n> --run_name=<name> [options]
 *   batch-runner … --resume
 *   batch-runner --list_distributions
 *   batch-runner clean
 *   batch-runner --help | --version | --completions <shell>
 */
import { Command, Options, ValidationError } from "@effect/cli"
import { Console, Effect, type Option } from "effect"
import { builtIn, render } from "../sampling/Distribution.ts"
import { version } from "../version.ts"
import { normalize, resuming, valueMark } from "./Argv.ts"
import { flags } from "./Flags.ts"
import * as Help from "./Help.ts"
import * as Parse from "./Parse.ts"
import { UsageError } from "./UsageError.ts"

/** A value without the mark that `normalize` set before it. */
const unmarked = (value: string): string => (value.startsWith(valueMark) ? value.slice(valueMark.length) : value)

const option = (flag: (typeof flags)[number]): Options.Options<boolean | Option.Option<string>> =>
  flag.kind === "switch"
    ? Options.boolean(flag.name).pipe(Options.withDescription(flag.help))
    : Options.text(flag.name).pipe(
        Options.withPseudoName(flag.takes),
        Options.withDescription(flag.help),
        Options.map(unmarked),
        Options.optional
      )

const options: Record<string, Options.Options<boolean | Option.Option<string>>> = Object.fromEntries(
  flags.map((flag) => [flag.name, option(flag)])
)

/** What starts a run; `resume` is the command line that goes on with it. Gives the exit code. */
export type Start<E, R> = (request: Parse.Request, resume: string) => Effect.Effect<number, E, R>

const cleaned = <E, R>(rest: ReadonlyArray<string>, clean: Effect.Effect<number, E, R>) => {
  if (rest.some((word) => word === "--help" || word === "-h")) return Effect.as(Console.log(Help.clean), 0)
  return rest.length === 0
    ? clean
    : new UsageError({ detail: `clean: given ${JSON.stringify(rest[0])}, allowed: nothing, or --help` })
}

/**
 * The command on these arguments: a run by `start`, or `clean`. Gives the exit code. A usage error is an error, shown by
 * the caller.
 */
export const run = <E, R, E2, R2>(
  argv: ReadonlyArray<string>,
  start: Start<E, R>,
  clean: Effect.Effect<number, E2, R2>
) =>
  Effect.gen(function* () {
    if (argv[0] === "clean") return yield* cleaned(argv.slice(1), clean)
    const tokens = yield* normalize(argv)
    if (tokens[0] === "--help" || tokens[0] === "-h") return yield* Effect.as(Console.log(Help.text), 0)
    if (tokens[0] === "--version") return yield* Effect.as(Console.log(version), 0)
    let code = 0
    const command = Command.make("batch-runner", options, (typed) =>
      Effect.gen(function* () {
        if (typed.list_distributions === true) return yield* Console.log(render(builtIn))
        const request = yield* Parse.parse(typed, process.env)
        code = yield* start(request, resuming(tokens))
      })
    ).pipe(
      Command.withDescription(
        "Runs prompts through agent sessions, many at once, and leaves their trajectories as data."
      )
    )
    yield* Command.run(command, { name: "batch-runner", version })(["node", "batch-runner", ...tokens])
    return code
  }).pipe(
    Effect.catchIf(ValidationError.isValidationError, () =>
      // The parser has printed its own complaint.
      Effect.succeed(2)
    )
  )
