/** Which toolsets a session gets: drawn from a distribution, the same for the same seed and content whenever and wherever it runs. */
import { hash } from "node:crypto"
import { Context, Layer } from "effect"
import type { ContentKey } from "../dataset/ContentKey.ts"
import type { Distribution } from "./Distribution.ts"

/** One session of a run: the content of its prompt, which of the equal prompts it is, and which of its samples. */
export interface Draw {
  readonly key: ContentKey
  readonly occurrence: number
  readonly sample: number
}

export interface SamplerService {
  /** Names of the toolsets that are on, never none. */
  readonly sample: (draw: Draw) => ReadonlyArray<string>
}

export class Sampler extends Context.Tag("batch-runner/Sampler")<Sampler, SamplerService>() {}

/** A number in [0, 100), evenly spread over all texts. */
const percentOf = (text: string): number =>
  (Number.parseInt(hash("sha1", text, "hex").slice(0, 13), 16) / 2 ** 52) * 100

/** Each toolset is switched on independently; if none came up, the likeliest one is on. */
export const sample = (distribution: Distribution, seed: number, draw: Draw): ReadonlyArray<string> => {
  const { key, occurrence, sample } = draw
  const on = distribution.toolsets
    .filter(
      ([toolset, percent]) =>
        percent >= 100 ||
        (percent > 0 && percentOf(`${seed}|${key.high}|${key.low}|${occurrence}|${sample}|${toolset}`) < percent)
    )
    .map(([toolset]) => toolset)
  return on.length > 0 ? on : distribution.toolsets.slice(0, 1).map(([toolset]) => toolset)
}

/** Draws from `distribution`, which holds only toolsets that can work here. */
export const layer = (options: { readonly distribution: Distribution; readonly seed: number }): Layer.Layer<Sampler> =>
  Layer.succeed(Sampler, { sample: (draw) => sample(options.distribution, options.seed, draw) })
