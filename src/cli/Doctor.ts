/** `batch-runner doctor`: what works here, toolset by toolset, and what each lacks; nothing is run, paid or written. */
import { resolve } from "node:path"
import { Console, Effect, Either, Logger, LogLevel } from "effect"
import * as Docker from "../sandbox/Docker.ts"
import type { Inspection } from "../sandbox/Inspection.ts"
import * as Local from "../sandbox/Local.ts"
import * as Modal from "../sandbox/Modal.ts"
import type { SandboxError } from "../sandbox/Sandbox.ts"
import * as Singularity from "../sandbox/Singularity.ts"
import * as Program from "../tools/browser/Program.ts"
import * as Espeak from "../tools/speech/Espeak.ts"
import type { Toolset } from "../tools/Toolset.ts"
import { version } from "../version.ts"
import { named as namesOf, normalize, typed as typedOf } from "./Argv.ts"
import * as Backend from "./Backend.ts"
import * as ConfigFile from "./ConfigFile.ts"
import { isScripted } from "./Key.ts"
import type { Environment } from "./Parse.ts"
import * as Flags from "./setup/Flags.ts"
import * as Here from "./setup/Here.ts"
import * as Inference from "./setup/Inference.ts"
import * as Known from "./setup/Known.ts"
import * as Told from "./setup/Told.ts"
import * as Toolsets from "./Toolsets.ts"

/** Seconds that one look takes at most. */
const limit = 12

/** Looks at all of it by these words; gives the exit code. */
export const run = Effect.fn("Doctor.run")(function* (argv: ReadonlyArray<string>, environment: Environment) {
  const tokens = yield* normalize(argv, Flags.doctor)
  if (tokens[0] === "--help" || tokens[0] === "-h") return yield* Effect.as(Console.log(Flags.doctorHelp), 0)
  if (tokens[0] === "--version") return yield* Effect.as(Console.log(version), 0)
  const typed = typedOf(tokens, Flags.doctor)
  const names = namesOf(tokens)
  const read = ConfigFile.read(environment)
  const file = Either.getOrElse(read, () => ({ ...nothing, path: ConfigFile.pathOf(environment) }))
  const made = Here.make(typed, names, environment, file)
  // What was typed is the caller's mistake; what the file says is one of the things to be shown.
  if (Either.isLeft(made) && !made.left.message.startsWith(file.path)) return yield* made.left
  const sound = yield* Either.isRight(made) ? made : Here.make(typed, names, environment, nothing)
  const offline = typed.offline === true
  const [endpoint, places, tools] = yield* Effect.all(
    [
      offline
        ? Effect.succeed(unasked(sound))
        : Effect.map(Inference.check(sound, { asks: false }), ({ told }) => told),
      sandboxes(sound, offline),
      toolsets(sound, offline)
    ],
    { concurrency: 3 }
  ).pipe(Logger.withMinimumLogLevel(LogLevel.None))
  const trouble = Either.isLeft(read) ? read.left : Either.isLeft(made) ? made.left : undefined
  const all = [
    Told.ok("node", `${process.version}, batch-runner ${version}`),
    trouble === undefined ? configFile(file) : Told.wrong("config file", trouble.message),
    ...variables(file, environment),
    endpoint,
    ...places,
    ...tools,
    ...programs(sound)
  ]
  const ready = all.every(({ mark }) => mark !== "!!")
  yield* Console.log(
    typed.json === true
      ? JSON.stringify({ ready, found: all }, null, 2)
      : [...Told.lines(all), "", verdict(ready)].join("\n")
  )
  return ready ? 0 : 1
})

const nothing: ConfigFile.ConfigFile = {
  path: "",
  exists: false,
  options: new Map(),
  variables: new Map(),
  exposed: false
}

const verdict = (ready: boolean): string =>
  ready ? "A run can begin." : "A run cannot begin as configured: see the lines with !!."

const configFile = (file: ConfigFile.ConfigFile): Told.Told => {
  if (!file.exists) return Told.absent("config file", `none at ${file.path}; \`batch-runner setup\` writes it`)
  const options = [...file.options.keys()].join(", ") || "none"
  const what = `${file.path}: options: ${options}`
  return file.exposed
    ? Told.absent("config file", `${what}; ${ConfigFile.exposure(file)}`)
    : Told.ok("config file", what)
}

/** Variables that are set, by their names alone. */
const variables = (file: ConfigFile.ConfigFile, environment: Environment): ReadonlyArray<Told.Told> => {
  const outside = Known.variables.flatMap(({ name }) => ((environment[name]?.trim() ?? "") === "" ? [] : [name]))
  const inside = [...file.variables.keys()].map((name) => {
    if (Known.find(name) === undefined) return `${name} (not known to this program)`
    return outside.includes(name) ? `${name} (the environment's goes before)` : name
  })
  const line = (where: string, names: ReadonlyArray<string>) =>
    names.length === 0
      ? Told.absent("variables", `none in the ${where}`)
      : Told.ok("variables", `in the ${where}: ${names.join(", ")}`)
  return [line("config file", inside), line("environment", outside)]
}

/** The endpoint without asking it. */
const unasked = ({ config, key, keyFrom }: Here.Here): Told.Told => {
  if (isScripted(config.model)) return Told.ok("endpoint", "none is needed: the model is scripted")
  if (Either.isLeft(key)) return Told.wrong("endpoint", key.left.message)
  const by = keyFrom === undefined ? "" : `, key of ${keyFrom}`
  return Told.ok("endpoint", `${new URL(config.base_url).host}, not asked (--offline)${by}`)
}

type Look = Effect.Effect<Inspection, SandboxError>

/** Each place where tools may run; wrong is what a run would want and has not. */
const sandboxes = Effect.fn("Doctor.sandboxes")(function* ({ config, hush }: Here.Here, offline: boolean) {
  const options = Backend.containerOptions(config)
  const looks: ReadonlyArray<readonly [name: string, look: Look]> = [
    ["local", Local.inspect(Backend.localOptions(config, resolve(config.output_dir, config.run_name)))],
    ["docker", Docker.inspect(options)],
    ["singularity", Singularity.inspect(options)],
    ...(offline ? [] : [["modal", Modal.inspect] as const])
  ]
  const found = yield* Effect.forEach(
    looks,
    ([name, look]) =>
      Effect.match(look, {
        onFailure: ({ message }) => ({ name, works: false, what: hush(message) }),
        onSuccess: ({ told }) => ({ name, works: true, what: hush(told) })
      }).pipe(Here.within(limit, { name, works: false, what: `no answer within ${limit} seconds` })),
    { concurrency: "unbounded" }
  )
  // Without a word on it, a run takes whatever is there.
  const any = found.some(({ works }) => works)
  const needed = (name: string) => (config.sandbox === "auto" ? !any && name === "local" : config.sandbox === name)
  return [
    ...found.map(({ name, works, what }) => {
      const line = works ? Told.ok : needed(name) ? Told.wrong : Told.absent
      return line("sandboxes", `${name}: ${what}`)
    }),
    ...(offline
      ? [(config.sandbox === "modal" ? Told.ok : Told.absent)("sandboxes", "modal: not asked (--offline)")]
      : [])
  ]
})

/** Each toolset with the tools that work, and what the others lack. */
const toolsets = (here: Here.Here, offline: boolean) =>
  Effect.map(
    Effect.scoped(Effect.map(Toolsets.all(Here.request(here), !offline), (all) => all.flatMap(toolsetLines))).pipe(
      Effect.catchAll(({ message }) => Effect.succeed([Told.wrong("toolsets", message)])),
      Here.within(2 * limit, undefined)
    ),
    (found) => {
      const lines = found ?? [Told.absent("toolsets", `not all looked at within ${2 * limit} seconds`)]
      return lines.map((told) => ({ ...told, what: here.hush(told.what) }))
    }
  )

const toolsetLines = ({ name, tools, missing, lacks }: Toolset): ReadonlyArray<Told.Told> => {
  if (lacks !== null) return [Told.absent(name, lacks)]
  const why = [...new Set(missing.map((one) => one.lacks))]
  return [
    Told.ok(name, tools.map((tool) => tool.name).join(", ")),
    ...why.map((each) =>
      Told.absent(name, `${missing.flatMap((one) => (one.lacks === each ? [one.name] : [])).join(", ")}: ${each}`)
    )
  ]
}

/** Programs of this machine that some tools use. */
const programs = ({ variables }: Here.Here): ReadonlyArray<Told.Told> => {
  const espeak = Espeak.find(variables)
  return [
    Either.match(Program.find(variables), {
      onLeft: (lacks) => Told.absent("programs", `chromium: ${lacks}`),
      onRight: (path) => Told.ok("programs", `chromium: ${path}`)
    }),
    espeak === undefined
      ? Told.absent("programs", "espeak-ng: not installed")
      : Told.ok("programs", `espeak-ng: ${espeak}`)
  ]
}
