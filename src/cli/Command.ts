/**
 * What a person can type:
 *
 *   batch-runner --dataset_file=<path> --batch_size=<n> --run_name=<name> [options]
 *   batch-runner … --resume
 *   batch-runner --list_distributions
 *   batch-runner setup [options]
 *   batch-runner doctor [options]
 *   batch-runner clean
 *   batch-runner --help | --version | --completions <shell>
 */
import { Command, Options, ValidationError } from "@effect/cli"
import { Console, Effect, type Option } from "effect"
import { builtIn, render } from "../sampling/Distribution.ts"
import { version } from "../version.ts"
import { named, normalize, resuming, valueMark } from "./Argv.ts"
import * as ConfigFile from "./ConfigFile.ts"
import { flags } from "./Flags.ts"
import * as Help from "./Help.ts"
import type * as Parse from "./Parse.ts"

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

/** A command of its own, on the words behind its name. Gives the exit code. */
export type Other<E, R> = (argv: ReadonlyArray<string>) => Effect.Effect<number, E, R>

/** The commands beside a run, by name. */
export interface Others<E, R> {
  readonly clean: Other<E, R>
  readonly setup: Other<E, R>
  readonly doctor: Other<E, R>
}

const otherOf = <E, R>(name: string | undefined, others: Others<E, R>): Other<E, R> | undefined =>
  name === "clean" || name === "setup" || name === "doctor" ? others[name] : undefined

/**
 * The command on these arguments: a run by `start`, or another command. Gives the exit code. A usage error is an error,
 * shown by the caller.
 */
export const run = <E, R, E2, R2>(argv: ReadonlyArray<string>, start: Start<E, R>, others: Others<E2, R2>) =>
  Effect.gen(function* () {
    const other = otherOf(argv[0], others)
    if (other !== undefined) return yield* other(argv.slice(1))
    const tokens = yield* normalize(argv)
    if (tokens[0] === "--help" || tokens[0] === "-h") return yield* Effect.as(Console.log(Help.text), 0)
    if (tokens[0] === "--version") return yield* Effect.as(Console.log(version), 0)
    let code = 0
    const command = Command.make("batch-runner", options, (typed) =>
      Effect.gen(function* () {
        if (typed.list_distributions === true) return yield* Console.log(render(builtIn))
        const file = yield* ConfigFile.read(process.env)
        if (file.exposed) yield* Console.error(`batch-runner: warning: ${ConfigFile.exposure(file)}`)
        const request = yield* ConfigFile.request(typed, named(tokens), process.env, file)
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
