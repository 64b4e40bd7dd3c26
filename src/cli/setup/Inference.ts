/** Whether the endpoint takes the key and has the models: by its list, else by one small question. */
import { Duration, Effect, Either } from "effect"
import * as Model from "../../model/Model.ts"
import * as OpenAi from "../../model/OpenAi.ts"
import * as Models from "../../model/openai/Models.ts"
import { isScripted } from "../Key.ts"
import * as ModelStack from "../ModelStack.ts"
import { type Here, request, within } from "./Here.ts"
import * as Told from "./Told.ts"

export interface Inference {
  readonly told: Told.Told
  /** Models that the endpoint lists; none where it tells none. */
  readonly ids: ReadonlySet<string>
}

const subject = "endpoint"

/** Seconds in which an endpoint must have answered. */
const limit = 20

const nothing: ReadonlySet<string> = new Set()

/** What is to be looked at when a key is refused. */
const checkKey = ({ config, keyFrom }: Here): string =>
  keyFrom === undefined ? `; ${new URL(config.base_url).host} wants another key` : `; check ${keyFrom}`

/** Looks; `asks` allows one small question that costs next to nothing, where there is no list of models. */
export const check = Effect.fn("Inference.check")(function* (here: Here, { asks }: { readonly asks: boolean }) {
  const { config, key, keyFrom } = here
  const inference = (told: Told.Told, ids = nothing): Inference => ({ told, ids })
  if (isScripted(config.model)) return inference(Told.ok(subject, "none is needed: the model is scripted"))
  if (Either.isLeft(key)) return inference(Told.wrong(subject, key.left.message))
  const { host, pathname } = new URL(config.base_url)
  const at = `${host}${pathname}`
  const by = keyFrom === undefined ? "" : `, key of ${keyFrom}`
  const checked = yield* Models.check(ModelStack.requestOf(config), key.right).pipe(within(limit, undefined))
  if (checked === undefined) return inference(Told.wrong(subject, `${at}: no answer within ${limit} seconds`))
  const { found, ids } = checked
  switch (found._tag) {
    case "Listed":
      return inference(Told.ok(subject, `${at} works: it lists ${config.model} among ${found.models} models${by}`), ids)
    case "NotListed": {
      const near = found.near.length === 0 ? "" : `; there is ${here.hush(found.near.join(", "))}`
      return inference(Told.wrong(subject, `${at}: it does not list ${config.model}${near}; give another --model`), ids)
    }
    case "Trouble":
      return inference(Told.wrong(subject, `${at}: ${here.hush(found.why)}${checkKey(here)}`))
    case "NotTold":
      return asks
        ? inference(yield* question(here, at, by))
        : inference(Told.ok(subject, `${at} answers: ${here.hush(found.why)}${by}`))
  }
})

/** One completion of a few tokens. */
const question = Effect.fn("Inference.question")(function* (here: Here, at: string, by: string) {
  const layer = OpenAi.layer(
    { ...ModelStack.requestOf(here.config), maxTokens: 16, callLimit: Duration.seconds(limit) },
    request(here).apiKey
  )
  const answer = yield* Effect.flatMap(Model.Model, ({ complete }) =>
    complete({
      messages: [{ role: "user", content: "Say yes." }],
      tools: [],
      prompt: "",
      turn: 0,
      sample: 0,
      place: 0,
      occurrence: 0
    })
  ).pipe(Effect.either, Effect.provide(layer), Effect.scoped)
  return Either.match(answer, {
    onLeft: ({ message }) => Told.wrong(subject, `${at}: ${here.hush(message)}${checkKey(here)}`),
    onRight: () => Told.ok(subject, `${at} works: ${here.config.model} has answered${by}`)
  })
})

/** What a list of models says of one of them; undefined where it says nothing against it. */
export const unlisted = (ids: ReadonlySet<string>, model: string): string | undefined =>
  ids.size === 0 || model === "" || Models.listed(ids, model) ? undefined : `the endpoint does not list ${model}`
