/** `batch-runner setup`: asks or is told what the user has, keeps it in the config file, and tries each with one cheap call. */
import * as Terminal from "@effect/platform/Terminal"
import { Console, Effect, Either, Mailbox, Option, Redacted, Stream } from "effect"
import * as Models from "../model/openai/Models.ts"
import { defaults } from "../RunConfig.ts"
import * as Variables from "../tools/Variables.ts"
import { version } from "../version.ts"
import { named as namesOf, normalize, typed as typedOf } from "./Argv.ts"
import * as ConfigFile from "./ConfigFile.ts"
import * as Key from "./Key.ts"
import * as ModelStack from "./ModelStack.ts"
import type { Environment } from "./Parse.ts"
import * as Change from "./setup/Change.ts"
import * as Flags from "./setup/Flags.ts"
import * as Here from "./setup/Here.ts"
import * as Told from "./setup/Told.ts"
import * as Tries from "./setup/Tries.ts"
import * as Write from "./setup/Write.ts"
import { UsageError } from "./UsageError.ts"
import { filled, type Typed } from "./Values.ts"

/** Sets up by these words; gives the exit code. */
export const run = Effect.fn("Setup.run")(function* (argv: ReadonlyArray<string>, environment: Environment) {
  const tokens = yield* normalize(argv, Flags.setup)
  if (tokens[0] === "--help" || tokens[0] === "-h") return yield* Effect.as(Console.log(Flags.setupHelp), 0)
  if (tokens[0] === "--version") return yield* Effect.as(Console.log(version), 0)
  const typed = typedOf(tokens, Flags.setup)
  const names = namesOf(tokens)
  const file = yield* ConfigFile.read(environment)
  const given = yield* Either.flatMap(told(typed, names, environment), (change) => Change.apply(file, change))
  const answered = typed.non_interactive === true ? given : yield* asked(typed, given, environment)
  if (answered === undefined) return 130
  const settled = yield* keyed(typed, answered)
  const complete =
    typed.portal === true ? yield* portal(settled, { before: file, environment, isNamed: names.has("model") }) : settled
  if (Change.same(file, complete) && file.exists && !file.exposed)
    yield* Console.log(`${file.path} stays as it is: ${contents(file)}`)
  else {
    const whole = yield* current(file, complete, environment)
    yield* Write.write(whole)
    yield* Console.log(`Wrote ${file.path}, which only its owner can read: ${contents(whole)}`)
  }
  for (const name of hiding(complete, environment)) {
    yield* Console.log(`The environment has another ${name}, which goes before the one of the file`)
  }
  if (typed.offline === true) return 0
  const here = yield* Here.make({}, new Set(), environment, complete)
  const tried = yield* Tries.all(here)
  yield* Console.log(Told.lines(tried).join("\n"))
  return tried.some(({ mark }) => mark === "!!") ? 1 : 0
})

/** What is to be written, with what another setup wrote while this one asked. */
const current = (
  before: ConfigFile.ConfigFile,
  complete: ConfigFile.ConfigFile,
  environment: Environment
): Effect.Effect<ConfigFile.ConfigFile> =>
  Either.match(ConfigFile.read(environment), {
    onLeft: () => Effect.succeed(complete),
    onRight: (now) =>
      Change.same(before, now)
        ? Effect.succeed(complete)
        : Effect.orElseSucceed(Change.apply(now, Change.between(before, complete)), () => complete)
  })

/** What stands in the file, by names. */
const contents = ({ options, variables }: ConfigFile.ConfigFile): string => {
  const of = (title: string, names: Iterable<string>) => {
    const all = [...names].join(", ")
    return all === "" ? [] : [`${title} ${all}`]
  }
  return [...of("options", options.keys()), ...of("variables", variables.keys())].join("; ") || "nothing is set"
}

/** Variables of the file that another value of the environment goes before. */
const hiding = ({ variables }: ConfigFile.ConfigFile, environment: Environment): ReadonlyArray<string> =>
  [...variables].flatMap(([name, value]) => {
    const outside = environment[name]?.trim() ?? ""
    return outside !== "" && outside !== Redacted.value(value) ? [name] : []
  })

/** What the command line says, the key of the endpoint apart. */
const told = (typed: Typed, names: ReadonlySet<string>, environment: Environment) => {
  const token = filled(typed, "gateway_token")
  if (token !== undefined && typed.portal !== true) {
    return Either.left(
      new UsageError({ detail: "--gateway_token goes with --portal; else give --tool_gateway_user_token" })
    )
  }
  if (typed.api_key_stdin === true && typed.non_interactive !== true) {
    return Either.left(new UsageError({ detail: "--api_key_stdin goes with --non_interactive" }))
  }
  const [address, elsewhere] = [filled(typed, "base_url"), environment.NOUS_API_URL?.trim()]
  const changes = [
    typed.from_env === true ? Change.ofEnvironment(environment) : Change.none,
    typed.portal === true ? Change.options({ base_url: elsewhere || Key.portal }) : Change.none,
    Change.ofFlags(typed, names),
    typed.portal === true
      ? Change.variables({ TOOL_GATEWAY_USER_TOKEN: token, NOUS_API_URL: address ?? (elsewhere || undefined) })
      : Change.none
  ]
  return Either.right(changes.reduce(Change.and))
}

/** The variable that keeps the key of an endpoint: OpenAI's own, unless a key for any endpoint would go before it. */
const variableOf = (file: ConfigFile.ConfigFile, baseUrl: string): string => {
  const variables = Variables.from(ConfigFile.environmentOf(file))
  const isOpenAi = new URL(baseUrl).host === "api.openai.com" && !file.variables.has("BATCH_RUNNER_API_KEY")
  return isOpenAi ? "OPENAI_API_KEY" : Key.names(baseUrl, variables)[0]
}

/** Characters of standard input that hold a key at most. */
const most = 100_000

/** The first line of standard input. */
const firstLine = Effect.tryPromise({
  try: async () => {
    let all = ""
    for await (const chunk of process.stdin.setEncoding("utf8")) {
      all += String(chunk)
      if (all.includes("\n") || all.length > most) break
    }
    return all.trim().split("\n")[0]?.trim() ?? ""
  },
  catch: () => new UsageError({ detail: "--api_key_stdin: standard input cannot be read" })
})

/** What was told, with the key that was given for its endpoint. */
const keyed = Effect.fn("Setup.keyed")(function* (typed: Typed, file: ConfigFile.ConfigFile) {
  const key = typed.api_key_stdin === true ? yield* firstLine : filled(typed, "api_key")
  if (typed.api_key_stdin === true && key === "") {
    return yield* new UsageError({ detail: "--api_key_stdin: standard input holds no key" })
  }
  const { base_url } = yield* Change.settings(file)
  const name = variableOf(file, base_url)
  const why = key === undefined ? undefined : Change.misfit(name, key)
  if (why !== undefined) return yield* new UsageError({ detail: `--api_key: what was given does not fit: ${why}` })
  return yield* Change.apply(file, Change.variables({ [name]: key }))
})

interface Portal {
  /** The file as it was. */
  readonly before: ConfigFile.ConfigFile
  readonly environment: Environment
  /** Whether a model was typed. */
  readonly isNamed: boolean
}

/** One key for all, unless tools have a token of their own; and a model that the portal has. */
const portal = Effect.fn("Setup.portal")(function* (file: ConfigFile.ConfigFile, told: Portal) {
  const { before, environment } = told
  const [key, token] = [file.variables.get("NOUS_API_KEY"), file.variables.get("TOOL_GATEWAY_USER_TOKEN")]
  if (key === undefined && (environment.NOUS_API_KEY?.trim() ?? "") === "") {
    return yield* new UsageError({
      detail: "--portal: its key is needed: give it by --api_key_stdin, --api_key, or NOUS_API_KEY in the environment"
    })
  }
  const earlier = before.variables.get("NOUS_API_KEY")
  // A token that is the key of before was never one of its own.
  const follows = token === undefined || (earlier !== undefined && Redacted.value(earlier) === Redacted.value(token))
  const withToken =
    key === undefined || !follows
      ? file
      : { ...file, variables: new Map([...file.variables, ["TOOL_GATEWAY_USER_TOKEN", key] as const]) }
  return yield* withModel(withToken, told)
})

/** The models of an endpoint, as far as it tells them. */
const listed = (here: Here.Here): Effect.Effect<Models.Checked> => {
  const { config, apiKey } = Here.request(here)
  return Models.check(ModelStack.requestOf(config), apiKey)
}

const showCursor = "\u001b[?25h"

/** Nothing that is typed early, or between two questions, is shown: it may be a key. None when the questions are broken off. */
const unheard = <A, E, R>(questions: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const keys = yield* terminal.readInput
    // It ends with the keys that break off.
    const brokenOff = Effect.as(Stream.runDrain(Mailbox.toStream(keys)), Option.none<A>())
    return yield* Effect.raceFirst(Effect.option(questions), brokenOff).pipe(
      Effect.ensuring(Effect.ignore(terminal.display(showCursor)))
    )
  }).pipe(Effect.scoped)

/** What is answered on the terminal; undefined when the questions were broken off. */
const asked = Effect.fn("Setup.asked")(function* (typed: Typed, file: ConfigFile.ConfigFile, environment: Environment) {
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) {
    return yield* new UsageError({
      detail:
        "setup asks its questions on a terminal, and there is none: give --non_interactive with what is to be set, such as --from_env; setup --help tells more"
    })
  }
  yield* Console.log(`These answers are kept in ${file.path}; ${file.exists ? contents(file) : "there is none yet"}.`)
  const idsOf = (answered: Change.Change) =>
    Effect.map(
      Effect.option(
        Effect.flatMap(
          Either.flatMap(Change.apply(file, answered), (changed) => Here.make({}, new Set(), environment, changed)),
          listed
        )
      ),
      Option.match({ onNone: () => new Set<string>(), onSome: ({ ids }) => ids })
    )
  const questions = Effect.flatMap(
    Effect.promise(() => import("./setup/Questions.ts")),
    ({ ask }) => ask(file, { isPortal: typed.portal === true, idsOf })
  )
  const answers = yield* unheard(questions)
  if (Option.isNone(answers)) return yield* Effect.as(Console.error("Nothing was written."), undefined)
  return yield* Change.apply(file, answers.value)
})

/** The portal's model where none is named for it: the program's own, else the first Hermes, else the first of its list. */
const withModel = Effect.fn("Setup.withModel")(function* (
  file: ConfigFile.ConfigFile,
  { before, environment, isNamed }: Portal
) {
  const stays = before.options.get("base_url") === file.options.get("base_url")
  const isNew = file.options.get("model") !== before.options.get("model")
  if (file.options.has("model") && (isNamed || stays || isNew)) return file
  const here = yield* Here.make({}, new Set(), environment, file)
  const { ids, found } = yield* listed(here)
  const model = ids.has(defaults.model) ? defaults.model : ([...ids].find((id) => /hermes/i.test(id)) ?? [...ids][0])
  if (model === undefined) {
    const why = "why" in found ? here.hush(found.why) : "it lists no model"
    return yield* new UsageError({ detail: `--model is needed, as the portal's list could not be had: ${why}` })
  }
  yield* Console.log(`Model: ${here.hush(model)}, of the ${ids.size} that the portal lists; --model names another`)
  return { ...file, options: new Map([...file.options, ["model", model] as const]) }
})
