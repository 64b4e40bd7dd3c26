/** `--dry_run`: all that a run would check and do, told before anything is paid for or written. */
import { access, constants, stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import { Console, Context, Deferred, Effect, Either, Layer, Logger, LogLevel } from "effect"
import { counted } from "../agent/Preview.ts"
import { Dataset } from "../dataset/Dataset.ts"
import * as JsonlDataset from "../dataset/JsonlDataset.ts"
import * as Models from "../model/openai/Models.ts"
import * as Scripted from "../model/Scripted.ts"
import type { Settings } from "../RunConfig.ts"
import * as Screen from "../report/Screen.ts"
import * as Jsonl from "../store/Jsonl.ts"
import * as Catalogue from "../tools/Catalogue.ts"
import * as Toolbox from "../tools/Toolbox.ts"
import * as Estimate from "./dry/Estimate.ts"
import * as Images from "./dry/Images.ts"
import * as Places from "./dry/Places.ts"
import * as Plan from "./dry/Plan.ts"
import { Register } from "./dry/Register.ts"
import * as Text from "./dry/Text.ts"
import * as Execute from "./Execute.ts"
import { isScripted } from "./Key.ts"
import * as ModelStack from "./ModelStack.ts"
import { refuseDataset, refuseEvents } from "./OwnFile.ts"
import type { Request } from "./Parse.ts"
import * as Toolsets from "./Toolsets.ts"
import { UsageError } from "./UsageError.ts"

/** Tells what a run of `request` would meet; gives 0 when all is ready, else 2. `stop` ends it. */
export const run = (request: Request, stop: Deferred.Deferred<void>) =>
  report(request).pipe(
    Effect.scoped,
    Effect.raceFirst(Effect.flatMap(Deferred.await(stop), () => Effect.interrupt)),
    Effect.provide(Layer.provideMerge(Screen.logger(request.config.verbose), Screen.layer(process.stderr)))
  )

/** What stands in the way of a run, in the order in which it is found. */
class Problems {
  readonly all: Array<string> = []

  /** What the effect gives; undefined where it fails, and a problem more. */
  readonly of = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.map(Effect.either(effect), (outcome) => {
      if (Either.isRight(outcome)) return outcome.right
      this.all.push(outcome.left.message)
      return undefined
    })
}

const report = Effect.fn("DryRun.report")(function* (request: Request) {
  const { config } = request
  const problems = new Problems()
  const folder = resolve(config.output_dir, config.run_name)

  const asked = yield* problems.of(Toolsets.resolve(request))
  const given = asked?.given
  const toolsets = asked?.toolsets ?? []
  const toolNames = asked === undefined ? Catalogue.toolNames : Toolbox.make(toolsets).toolNames
  // What it says of toolsets that are left out stands in the report.
  const distribution =
    given === undefined
      ? undefined
      : yield* problems.of(Logger.withMinimumLogLevel(Toolsets.workable(config, toolsets, given), LogLevel.None))
  yield* problems.of(refuseDataset(config.dataset_file, folder))
  if (config.events !== "") {
    yield* problems.of(refuseEvents(config.events, config.dataset_file, folder))
    yield* problems.of(unwritableEvents(config))
  }
  const readable = yield* enterable(config, folder, problems)
  const register = new Register()
  const dataset = yield* problems.of(opened(config, register))

  const [model, plan, places] = yield* Effect.all(
    [
      checkModel(request, problems),
      dataset === undefined || !readable
        ? Effect.succeed(undefined)
        : problems.of(Plan.make({ config, folder, dataset, register, distribution, toolNames })),
      dataset === undefined ? Effect.succeed(undefined) : Places.inspect(config, folder, dataset)
    ],
    { concurrency: 3 }
  )
  problems.all.push(...(places?.problems ?? []))
  const images = plan === undefined || places === undefined ? undefined : yield* Images.ask(plan, places)
  problems.all.push(...(images?.problems ?? []))
  const estimate = plan === undefined ? undefined : Estimate.make(config, plan)
  if (plan !== undefined && estimate !== undefined) problems.all.push(...spentUp(config, plan, estimate))

  const lines = [
    `${config.run_name}, into ${folder}`,
    ...(dataset === undefined ? [] : Text.rows("prompts", [Text.prompts(dataset, config)])),
    ...(plan === undefined
      ? []
      : [...Text.rows("sessions", Text.plan(plan)), ...Text.rows("batches", [Text.batches(plan, config)])]),
    ...(given === undefined ? [] : Text.rows("toolsets", Text.mix(given, toolsets, plan))),
    ...Text.rows(
      "sandboxes",
      (places?.told ?? []).map(([backend, what]) => `${backend}: ${what}`)
    ),
    ...Text.rows("images", images?.lines ?? []),
    ...Text.rows("model", model),
    ...(plan === undefined || estimate === undefined
      ? []
      : [
          ...Text.rows("calls", Text.calls(estimate, plan, config)),
          ...Text.rows("cost", Text.costs(estimate, plan, config)),
          ...Text.rows("limits", Text.limits(config, estimate))
        ]),
    ""
  ]
  yield* (yield* Screen.Screen).end
  yield* Console.log(lines.join("\n"))
  for (const problem of problems.all) yield* Console.error(`batch-runner: ${problem}`)
  const verdict = problems.all.length === 0 ? "All is ready." : `${counted(problems.all.length, "problem")}.`
  yield* Console.log(`Nothing was run, nothing was written. ${verdict}`)
  return problems.all.length === 0 ? Execute.exitCode.done : Execute.exitCode.notStarted
})

/** The data set for as long as the scope is open, its bad lines named. */
const opened = (config: Settings, register: Register) =>
  Layer.build(
    JsonlDataset.layer({
      path: config.dataset_file,
      maxSamples: config.max_samples ?? undefined,
      onImage: register.note
    })
  ).pipe(
    Effect.map((context) => Context.get(context, Dataset)),
    Effect.tap(Execute.tellBadLines)
  )

/** Whether the run folder, or the room for it, is such that it can be read; what keeps a run from beginning there is a problem. */
const enterable = Effect.fn("DryRun.enterable")(function* (config: Settings, folder: string, problems: Problems) {
  const looked = yield* Effect.either(
    Effect.zipRight(Plan.writable(folder), Jsonl.refuse({ folder, runName: config.run_name, resume: config.resume }))
  )
  if (Either.isRight(looked)) return true
  problems.all.push(looked.left.message)
  return looked.left.reason === "Occupied"
})

/** Lines on the model; what is wrong with it is a problem. */
const checkModel = Effect.fn("DryRun.checkModel")(function* ({ config, apiKey }: Request, problems: Problems) {
  if (isScripted(config.model)) {
    yield* problems.of(Layer.build(Scripted.layer(ModelStack.scriptOf(config))))
    return [`offline model: ${ModelStack.scriptTold(config)}`]
  }
  const checked = yield* Models.check(ModelStack.requestOf(config), apiKey)
  const { found, credit } = checked
  if (found._tag === "Trouble") problems.all.push(`--model: ${found.why}`)
  if (found._tag === "NotListed") {
    const near = found.near.length === 0 ? "" : `; there is ${found.near.join(", ")}`
    problems.all.push(`--model: ${new URL(config.base_url).host} does not list ${config.model}${near}`)
  }
  if (credit !== undefined && credit <= 0) problems.all.push("--api_key: the key has no credit left")
  return Text.model(config, checked)
})

/** Budgets of the run that the next call could pass. */
const spentUp = (config: Settings, { toDo }: Plan.Plan, { spentUsd, spentTokens, session }: Estimate.Estimate) => {
  const calls = Math.max(1, session?.calls ?? 1)
  const [cost, tokens] = [(session?.cost ?? 0) / calls, (session?.tokens ?? 0) / calls]
  return [
    ...(toDo > 0 && config.max_cost !== null && spentUsd + cost > config.max_cost
      ? [
          `--max_cost: earlier sessions have spent $${spentUsd.toFixed(4)} of ${config.max_cost}, and the next call could pass it; give more`
        ]
      : []),
    ...(toDo > 0 && config.max_total_tokens !== null && spentTokens + tokens > config.max_total_tokens
      ? [
          `--max_total_tokens: earlier sessions have used ${spentTokens} of ${config.max_total_tokens}, and the next call could pass it; give more`
        ]
      : [])
  ]
}

/** A file of happenings that could not be written. */
const unwritableEvents = ({ events: path }: Settings) =>
  Effect.tryPromise({
    try: async () => {
      const found = await stat(path).catch(() => undefined)
      if (found === undefined) return
      if (found.isDirectory()) throw new Error("it is a folder")
      await access(path, constants.W_OK)
    },
    catch: (cause) =>
      new UsageError({
        detail: `--events: ${path} cannot be written: ${cause instanceof Error ? cause.message : cause}`
      })
  }).pipe(Effect.zipRight(Plan.writable(dirname(resolve(path)))))
