/**
 * A run with tools of our own: a tool is a schema of its arguments and an effect that gives its result; tools that are
 * switched on or off as one are a toolset; a toolbox holds our toolsets beside those that come with the program.
 */
import {
  type Distribution,
  JsonlDataset,
  Local,
  MemoryStore,
  Pipeline,
  Progress,
  RunConfig,
  Sampler,
  Sandbox,
  Scripted,
  Tool,
  Toolbox,
  Toolset
} from "batch-runner"
import { Effect, Layer, Ref, Schema } from "effect"

/** A tool: the model sees name, description and schema; what it may do about a failure stands in the failure. */
const lookUp = Tool.make({
  name: "look_up",
  description: "Look up how many of a part are in stock.",
  parameters: Schema.Struct({
    part: Schema.String.annotations({ description: "Name of the part, such as bolt" })
  }),
  run: ({ part }) =>
    part === "bolt"
      ? Effect.succeed({ part, in_stock: 40 })
      : new Tool.ToolFailure({ error: `part: there is no ${part}; there are bolts only, ask for bolt` })
})

/** A tool may use its prompt's sandbox. */
const order = Tool.make({
  name: "order",
  description: "Order parts. Orders are kept in orders.txt.",
  parameters: Schema.Struct({
    count: Schema.Int.annotations({ description: "How many" })
  }),
  run: ({ count }) =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      yield* sandbox.exec(`echo ${count} >> orders.txt`, { timeout: 10 })
      return { ordered: count }
    })
})

const stock = Toolset.make({ name: "stock", description: "Look up and order parts", tools: [lookUp, order] })

/** Our toolset in every session, a terminal in half of them. */
const distribution: Distribution.Distribution = {
  name: "shop",
  description: "stock, with a terminal now and then",
  toolsets: [
    ["stock", 100],
    ["terminal", 50]
  ]
}

/** Runs the prompts of a file; gives the rows. Their statistics count our tools beside all others. */
export const rows = Effect.fn("OwnTools.rows")(function* (path: string, script: Scripted.Script) {
  const contents = yield* Ref.make(MemoryStore.empty)
  const config = RunConfig.make({ dataset_file: path, batch_size: 10, run_name: "shop", model: "scripted" })
  const toolbox = Toolbox.layer({ commandTimeout: config.command_timeout }, stock)
  const store = Layer.unwrapEffect(
    Effect.map(Toolbox.Toolbox, ({ toolNames }) => MemoryStore.layer({ toolNames, contents }))
  )
  const parts = Layer.mergeAll(
    Layer.succeed(RunConfig.RunConfig, config),
    JsonlDataset.layer({ path, maxSamples: undefined }),
    Scripted.fromScript(script),
    Local.layer({ network: true, hide: [] }),
    Sampler.layer({ distribution, seed: config.seed }),
    store,
    Progress.silent
  ).pipe(Layer.provideMerge(toolbox))
  yield* Effect.provide(Pipeline.run(), parts)
  const { trajectories } = yield* Ref.get(contents)
  return trajectories.map((line) => JSON.parse(line))
})
