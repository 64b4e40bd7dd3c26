/** A run from the command line: the layers of its parts, put together once, and what its end means to a shell. */
import { resolve } from "node:path"
import { Console, Context, Deferred, Effect, Layer } from "effect"
import { Dataset, type DatasetService } from "../dataset/Dataset.ts"
import * as JsonlDataset from "../dataset/JsonlDataset.ts"
import * as Pipeline from "../Pipeline.ts"
import { RunConfig } from "../RunConfig.ts"
import * as Progress from "../report/Progress.ts"
import * as Screen from "../report/Screen.ts"
import * as Summary from "../report/Summary.ts"
import { builtIn } from "../sampling/Distribution.ts"
import * as Sampler from "../sampling/Sampler.ts"
import * as Jsonl from "../store/Jsonl.ts"
import * as Toolbox from "../tools/Toolbox.ts"
import * as Backend from "./Backend.ts"
import * as Listeners from "./Listeners.ts"
import * as ModelStack from "./ModelStack.ts"
import { refuseDataset } from "./OwnFile.ts"
import type { Request } from "./Parse.ts"
import * as Toolsets from "./Toolsets.ts"

/** Exit codes, as the contract gives them. */
export const exitCode = { done: 0, unfinished: 1, notStarted: 2 }

/** Runs everything; `stop` completes with the first signal. */
export const execute = (request: Request, resume: string, stop: Deferred.Deferred<void>) =>
  run(request, resume, stop).pipe(
    Effect.provide(Layer.provideMerge(Screen.logger(request.config.verbose), Screen.layer(process.stderr)))
  )

const run = Effect.fn("Execute.run")(function* (request: Request, resume: string, stop: Deferred.Deferred<void>) {
  let begun = false
  const pipeline = Effect.gen(function* () {
    begun = true
    const report = yield* Pipeline.run({ stop: Deferred.await(stop) })
    yield* (yield* Screen.Screen).end
    if (report.halted !== "") yield* Console.error(`batch-runner: ${report.halted}`)
    yield* Console.log(Summary.render(report, resume))
    return report.toDo === 0 ? exitCode.done : exitCode.unfinished
  })
  // A run that is stopped before its parts are together has nothing to put in order.
  const stopped = Effect.flatMap(Deferred.await(stop), () => Effect.interrupt)
  return yield* Effect.flatMap(birth(request), Layer.build).pipe(
    Effect.raceFirst(stopped),
    Effect.flatMap((parts) => Effect.provide(pipeline, parts)),
    Listeners.hearing(request.config),
    Effect.scoped,
    Effect.catchAll((error) =>
      Effect.as(Console.error(`batch-runner: ${error.message}`), begun ? exitCode.unfinished : exitCode.notStarted)
    )
  )
})

/** Every layer of the run. Building it checks what can be checked before the first prompt. */
const birth = Effect.fn("Execute.birth")(function* (request: Request) {
  const { config, apiKey } = request
  const { given, toolsets } = yield* Toolsets.resolve(request)
  const toolbox = Toolbox.make(toolsets)
  const distribution = yield* Toolsets.workable(config, toolsets, given)
  const folder = resolve(config.output_dir, config.run_name)
  yield* refuseDataset(config.dataset_file, folder)
  const { toolNames } = toolbox
  const model = ModelStack.layer(config, apiKey)
  const dataset = JsonlDataset.layer({
    path: config.dataset_file,
    maxSamples: config.max_samples ?? undefined
  }).pipe(Layer.tap((context) => tellBadLines(Context.get(context, Dataset))))
  const store = Jsonl.layer({ folder, runName: config.run_name, resume: config.resume, toolNames })
  // The run folder is made last: only when nothing else stands in the way.
  const places = Backend.layer(config, folder).pipe(Layer.provideMerge(dataset))
  const checked = store.pipe(Layer.provideMerge(Layer.mergeAll(places, model)))
  return Layer.mergeAll(
    checked,
    Progress.live(ModelStack.vitals).pipe(Layer.provide(model)),
    Layer.succeed(RunConfig, {
      ...config,
      distribution_toolsets: builtIn.includes(given) ? null : Object.fromEntries(given.toolsets)
    }),
    Layer.succeed(Toolbox.Toolbox, toolbox),
    Sampler.layer({ distribution, seed: config.seed })
  )
})

/** Names the lines that were skipped. */
export const tellBadLines = Effect.fnUntraced(function* ({ path, badLines: { count, first } }: DatasetService) {
  for (const { line, why } of first) yield* Effect.logWarning(`${path}:${line}: skipped, ${why}`)
  if (count > first.length) yield* Effect.logWarning(`${path}: ${count} bad lines in all, skipped`)
})
