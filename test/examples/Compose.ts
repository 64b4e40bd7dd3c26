/**
 * A run inside a larger program: the prompts come from a file, the answers from a model of our own, the tools act in
 * sandboxes of our own, the toolsets are ours to choose, and the rows end in a store of our own.
 *
 * Every part of a run is a service. `Pipeline.run()` asks for eight of them, and a layer answers for each:
 *
 *   RunConfig, Dataset, Sampler, Toolbox   what to run
 *   Model, Sandboxes                       with what
 *   Store, Progress                        and where it goes
 */
import {
  Dataset,
  JsonlDataset,
  MemoryStore,
  Model,
  Output,
  Pipeline,
  Progress,
  RunConfig,
  Sampler,
  Sandbox,
  Store,
  Toolbox
} from "batch-runner"
import { Console, Effect, Layer, Ref } from "effect"

/** A model: one answer for each question. This one looks at the clock of its sandbox, then says what it saw. */
const clockReader = Layer.succeed(Model.Model, {
  complete: ({ messages, turn }) => {
    const seen = messages.findLast((message) => message.role === "tool")
    return Effect.succeed<Model.Answer>({
      content: seen === undefined ? "" : `The clock says ${JSON.parse(seen.content).output}.`,
      reasoning: seen === undefined ? "I should look at the clock first." : "Now I know.",
      toolCalls:
        seen === undefined ? [{ id: `call_${turn}`, name: "terminal", arguments: '{"command":"date +%H:%M"}' }] : [],
      finishReason: seen === undefined ? "tool_calls" : "stop",
      usage: { prompt: 20, completion: 10, reasoning: 5, cached: 0, total: 30, cost_usd: 0.001 },
      echo: { role: "assistant" }
    })
  }
})

/** Sandboxes: opening one is a scoped effect, so whatever it takes is given back when the prompt ends. */
const stoppedClocks = Layer.succeed(Sandbox.Sandboxes, {
  open: ({ id }) =>
    Effect.acquireRelease(
      Effect.as(Effect.logDebug(`opened ${id}`), {
        cwd: "/work",
        exec: () => Effect.succeed({ _tag: "Exited" as const, exitCode: 0, output: Output.fromText("12:00") }),
        start: (command) =>
          Effect.fail(new Sandbox.FileError({ path: command, reason: "NotAllowed", detail: "nothing runs on" })),
        started: Effect.succeed([]),
        read: (path) => Effect.fail(new Sandbox.FileError({ path, reason: "NotFound", detail: `no file ${path}` })),
        write: () => Effect.void
      } satisfies Sandbox.SandboxService),
      () => Effect.logDebug(`closed ${id}`)
    )
})

/** A sampler: the same toolsets for every prompt. Those that draw by percentage are made by `Sampler.layer`. */
const terminalForAll = Layer.succeed(Sampler.Sampler, { sample: () => ["terminal"] })

/** A store: one that comes with the program, with a word to say whenever a row is safe. */
const announcingStore = (contents: Ref.Ref<MemoryStore.Contents>) =>
  Layer.effect(
    Store.Store,
    Effect.map(
      Store.Store,
      (store): Store.StoreService => ({
        ...store,
        save: (entry) => Effect.zipRight(store.save(entry), Console.log(`${entry.outcome._tag}: prompt ${entry.place}`))
      })
    )
  ).pipe(
    Layer.provide(
      Layer.unwrapEffect(Effect.map(Toolbox.Toolbox, ({ toolNames }) => MemoryStore.layer({ toolNames, contents })))
    )
  )

/** Runs the prompts of a file and gives their final answers, in their order. */
export const answers = Effect.fn("Compose.answers")(function* (path: string) {
  const contents = yield* Ref.make(MemoryStore.empty)
  const config = RunConfig.make({ dataset_file: path, batch_size: 10, run_name: "clocks", num_workers: 2 })
  const parts = Layer.mergeAll(
    Layer.succeed(RunConfig.RunConfig, config),
    JsonlDataset.layer({ path, maxSamples: undefined }),
    clockReader,
    stoppedClocks,
    terminalForAll,
    announcingStore(contents),
    Progress.silent
  ).pipe(Layer.provideMerge(Toolbox.layer({ commandTimeout: config.command_timeout })))

  // The run is an effect like any other: before it, after it and beside it there is room for yours.
  const report = yield* Effect.gen(function* () {
    const { index } = yield* Dataset.Dataset
    yield* Console.log(`${index.size} prompts`)
    return yield* Pipeline.run()
  }).pipe(Effect.provide(parts))

  const { entries } = yield* Ref.get(contents)
  const rows = entries
    .toSorted((a, b) => a.place - b.place)
    .flatMap(({ outcome }) => (outcome._tag === "Kept" ? [outcome.row] : []))
  return { report, answers: rows.map((row) => row.conversations.at(-1)?.value ?? "") }
})
