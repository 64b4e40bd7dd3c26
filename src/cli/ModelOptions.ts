/** What was typed of the models of a run and of their prices, checked. */
import { Either, Schema } from "effect"
import * as RunConfig from "../RunConfig.ts"
import { UsageError } from "./UsageError.ts"
import { bad, jsonFile, list, notEmpty, type Read, type Typed, text } from "./Values.ts"

const { defaults } = RunConfig

export const modelId = (typed: Typed, name: "model" | "vision_model" | "moa_aggregator"): Read<string> =>
  notEmpty(typed, name, defaults[name], "a model id")

const pricesShape =
  'a JSON object such as {"model": {"prompt": 3, "completion": 15, "cached": 0.3}}, dollars per million tokens, "*" for every other model'

const prices = (typed: Typed): Read<RunConfig.Settings["prices"]> =>
  Either.flatMap(notEmpty(typed, "prices", "", `the path of ${pricesShape}`), () =>
    jsonFile(
      typed,
      "prices",
      Schema.Record({ key: Schema.String, value: RunConfig.Price }),
      defaults.prices,
      pricesShape,
      "error"
    )
  )

/** Prices that a model of the run, or one that its tools ask, is not among are a mistake: its calls would count as nothing. */
export const pricesOf = (typed: Typed, models: ReadonlyArray<string>): Read<RunConfig.Settings["prices"]> =>
  Either.flatMap(prices(typed), (given) => {
    const missing = models.find((model) => model !== "" && !Object.hasOwn(given, model))
    return missing === undefined || Object.keys(given).length === 0 || "*" in given
      ? Either.right(given)
      : Either.left(
          new UsageError({
            detail: `--prices: ${text(typed, "prices")} has no price for ${missing}, only for ${Object.keys(given).join(", ")}; name the model, or "*" for every other`
          })
        )
  })

/** As many as one question of mixture_of_agents asks. */
export const moaModels = (typed: Typed): Read<ReadonlyArray<string>> => {
  const what = "at most 8 model ids, such as a,b"
  const given = list(typed, "moa_models")
  return Either.flatMap(notEmpty(typed, "moa_models", "", what), (value) =>
    given.length <= 8 ? Either.right(given) : Either.left(bad("moa_models", value, what))
  )
}
