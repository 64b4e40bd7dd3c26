/** A whole run in this process: a data set in a file, a model with a script, sandboxes and a store as the test says. */
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Logger, Ref } from "effect"
import * as JsonlDataset from "../../src/dataset/JsonlDataset.ts"
import type { Model } from "../../src/model/Model.ts"
import * as Scripted from "../../src/model/Scripted.ts"
import * as RunConfig from "../../src/RunConfig.ts"
import * as Progress from "../../src/report/Progress.ts"
import * as Sampler from "../../src/sampling/Sampler.ts"
import * as Jsonl from "../../src/store/Jsonl.ts"
import * as Memory from "../../src/store/Memory.ts"
import type { Store, StoreError } from "../../src/store/Store.ts"
import * as Catalogue from "../../src/tools/Catalogue.ts"
import * as Setting from "../../src/tools/Setting.ts"
import * as Toolbox from "../../src/tools/Toolbox.ts"
import * as Boxes from "./Boxes.ts"
import * as Folder from "./Folder.ts"

export type Line = Scripted.Script["default"][number]

export const toolbox = Toolbox.make(
  await Effect.runPromise(Effect.scoped(Catalogue.catalogue(Setting.make({ commandTimeout: 20 }))))
)

/** What a test says of its run; the rest is made up. */
export interface About {
  /** Rows of the data set. */
  readonly rows: ReadonlyArray<string | object>
  readonly prompts?: Readonly<Record<string, ReadonlyArray<Line>>>
  readonly default?: ReadonlyArray<Line>
  readonly model?: Layer.Layer<Model>
  readonly config?: Partial<RunConfig.Settings>
  /** A store in memory by default. */
  readonly store?: Layer.Layer<Store, StoreError>
  readonly boxes?: Boxes.Options
  readonly toolsets?: ReadonlyArray<readonly [string, number]>
}

/** What a run left behind for the test to look at. */
export interface Left {
  readonly contents: Ref.Ref<Memory.Contents>
  readonly boxes: Ref.Ref<Boxes.Log>
  readonly log: Ref.Ref<ReadonlyArray<string>>
}

export class Traces extends Context.Tag("test/Traces")<Traces, Left>() {}

const answer: Line = { reasoning: "Easy.", content: "Done." }

export const config = (more: Partial<RunConfig.Settings> = {}): RunConfig.Settings =>
  RunConfig.make({ dataset_file: "rows.jsonl", batch_size: 2, run_name: "test", model: "scripted", ...more })

/** A store in a run folder of the name `test`. */
export const folderStore = (folder: string, options: Partial<Jsonl.Options> = {}): Layer.Layer<Store, StoreError> =>
  Jsonl.layer({
    folder,
    runName: "test",
    resume: true,
    toolNames: toolbox.toolNames,
    ...options
  })

/** Everything that a run needs. */
export const layer = (about: About) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const path = join(yield* Folder.scoped, "rows.jsonl")
      const rows = about.rows.map((row) => (typeof row === "string" ? { prompt: row } : row))
      yield* Effect.promise(() => writeFile(path, rows.map((row) => `${JSON.stringify(row)}\n`).join("")))
      const left: Left = {
        contents: yield* Ref.make(Memory.empty),
        boxes: yield* Ref.make(Boxes.nothing),
        log: yield* Ref.make<ReadonlyArray<string>>([])
      }
      const settings = config(about.config)
      const { seed, max_samples } = settings
      const listener = Logger.make(({ logLevel, message }) => {
        Effect.runSync(Ref.update(left.log, (all) => [...all, `${logLevel.label} ${String(message)}`]))
      })
      return Layer.mergeAll(
        JsonlDataset.layer({
          path,
          maxSamples: max_samples ?? undefined
        }),
        about.model ?? Scripted.fromScript({ prompts: about.prompts ?? {}, default: about.default ?? [answer] }),
        about.store ?? Memory.layer({ toolNames: toolbox.toolNames, contents: left.contents }),
        Boxes.layer(left.boxes, about.boxes),
        Sampler.layer({
          distribution: {
            name: "test",
            description: "",
            toolsets: about.toolsets ?? [
              ["terminal", 100],
              ["todo", 100]
            ]
          },
          seed
        }),
        Progress.silent,
        Layer.succeed(RunConfig.RunConfig, settings),
        Layer.succeed(Toolbox.Toolbox, toolbox),
        Layer.succeed(Traces, left),
        Logger.replace(Logger.defaultLogger, listener)
      )
    })
  )
