/** What a run would do with its data set as its folder stands: read only, nothing held, mended or made. */
import { access, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import type { DatasetService } from "../../dataset/Dataset.ts"
import type { Settings } from "../../RunConfig.ts"
import type * as Statistics from "../../report/Statistics.ts"
import type { Distribution } from "../../sampling/Distribution.ts"
import * as Sampler from "../../sampling/Sampler.ts"
import { folderError } from "../../store/Disk.ts"
import * as Lock from "../../store/Lock.ts"
import { changes } from "../../store/Recorded.ts"
import * as Resume from "../../store/Resume.ts"
import * as RunFolder from "../../store/RunFolder.ts"
import * as Scan from "../../store/Scan.ts"
import * as Session from "../../store/Session.ts"
import type { Register } from "./Register.ts"

export interface Plan {
  /** Sessions of the data set, and what becomes of them. */
  readonly sessions: number
  readonly doneBefore: number
  readonly leftOut: number
  readonly toDo: number
  /** Prompts with at least one session to do. */
  readonly prompts: number
  readonly nextBatch: number
  /** Sessions to do that have each toolset, of `mixed` that were drawn. */
  readonly mix: ReadonlyMap<string, number>
  readonly mixed: number
  /** Prompts to do by image, empty for none, and how many name further ones. */
  readonly images: ReadonlyMap<string, number>
  readonly otherImages: number
  /** Figures of all earlier sessions, and how many finished rows they hold. */
  readonly sums: Statistics.Statistics
  readonly rows: number
  /** Who works on the run at this moment. */
  readonly holder: string | undefined
  /** Settings that differ from the last session's. */
  readonly differences: ReadonlyArray<string>
}

/** Sessions whose toolsets are drawn at most: a share of so many is exact enough. */
const drawnAtMost = 1_000_000

/** Steps between two moments in which signals are heard. */
const stride = 5000

/** Fails when the run folder could not be made or written to. */
export const writable = (folder: string) => {
  const nearest = (path: string): Promise<string> =>
    stat(path).then(
      () => path,
      () => (dirname(path) === path ? path : nearest(dirname(path)))
    )
  return Effect.tryPromise({
    // With the slash, a file in the way is told as what it is.
    try: () => nearest(folder).then((path) => access(join(path, "/"), 2 | 1)),
    catch: folderError(folder)
  })
}

export interface Parts {
  readonly config: Settings
  readonly folder: string
  readonly dataset: DatasetService
  readonly register: Register
  /** Undefined when it cannot be used: nothing is drawn. */
  readonly distribution: Distribution | undefined
  readonly toolNames: ReadonlyArray<string>
}

export const make = Effect.fn("Plan.make")(function* (parts: Parts) {
  const { config, folder, dataset } = parts
  const earlier = yield* RunFolder.sessions(folder, false)
  const { books, nextBatch } = yield* Scan.run(folder, Session.toolNames(earlier, parts.toolNames), { mend: false })
  for (const session of earlier) books.enterReleased(session)
  const last = earlier.at(-1)
  const done = Resume.match(books.ledger, dataset.index, config.samples_per_prompt)
  const failed = Resume.failed(books.failures, dataset.index, done)
  const leftOut = [...failed.leftOut(config.retry_failed).values()].reduce((sum, count) => sum + count, 0)
  const sessions = dataset.index.size * config.samples_per_prompt
  const plan: Plan = {
    sessions,
    doneBefore: done.count,
    leftOut,
    toDo: sessions - done.count - leftOut,
    nextBatch,
    ...(yield* walk(parts, done, failed)),
    sums: books.sums,
    rows: books.ledger.size,
    holder: yield* Lock.holder(folder),
    differences: last === undefined ? [] : changes(last.config, config)
  }
  return plan
})

/** Goes through what is to do once: its prompts, its toolsets, its images. */
const walk = Effect.fn("Plan.walk")(function* (
  { config, dataset, register, distribution }: Parts,
  done: Resume.Done,
  failed: Resume.Failed
) {
  const { index } = dataset
  const mix = new Map<string, number>()
  const images = new Map<string, number>()
  let [prompts, mixed, otherImages, steps] = [0, 0, 0, 0]
  for (let place = 0; place < done.prompts; place++) {
    if (++steps % stride === 0) yield* Effect.sleep(0)
    const runs = (sample: number) => !done.has(place, sample) && failed.runs(place, sample, config.retry_failed)
    let any = false
    for (let sample = 0; sample < done.samples && !any; sample++) any = runs(sample)
    if (!any) continue
    prompts++
    const image = register.at(place)
    if (image === undefined) otherImages++
    else images.set(image || config.image, (images.get(image || config.image) ?? 0) + 1)
    if (distribution === undefined) continue
    const of = { key: index.key(place), occurrence: index.occurrence(place) }
    for (let sample = 0; sample < done.samples && mixed < drawnAtMost; sample++) {
      if (++steps % stride === 0) yield* Effect.sleep(0)
      if (!runs(sample)) continue
      mixed++
      for (const toolset of Sampler.sample(distribution, config.seed, { ...of, sample })) {
        mix.set(toolset, (mix.get(toolset) ?? 0) + 1)
      }
    }
  }
  return { prompts, mix, mixed, images, otherImages }
})
