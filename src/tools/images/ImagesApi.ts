/** Pictures of an endpoint's images API, as OpenAI documents it, or as OpenRouter does. */
import { Effect, Option, Predicate, Schema } from "effect"
import { noUsage, type Price } from "../../model/Model.ts"
import * as Prices from "../../model/Prices.ts"
import type { Service } from "../net/Access.ts"
import * as Reply from "../net/Reply.ts"
import type * as Paid from "../Paid.ts"
import type { ToolFailure } from "../Tool.ts"
import type { ToolSession } from "../ToolSession.ts"
import { NoSuchApi, type Ratio, type Wish } from "./Painter.ts"
import * as Picture from "./Picture.ts"

/** Seconds for one picture: the slowest models take two minutes. */
const timeout = 300

const square = "1024x1024"

/** The sizes that a model knows; one that is not known is tried with those of the newer ones. */
const sizeOf = (model: string, ratio: Ratio): string => {
  const name = model.slice(model.lastIndexOf("/") + 1).toLowerCase()
  if (name.startsWith("dall-e-2")) return square
  const [long, short] = name.startsWith("dall-e-3") ? ["1792x1024", "1024x1792"] : ["1536x1024", "1024x1536"]
  return ratio === "landscape" ? long : ratio === "portrait" ? short : square
}

/** What tells one images API from another: where it is, and how a picture's shape is asked for. */
export interface Api {
  readonly path: string
  readonly shape: (model: string, ratio: Ratio) => object
  /** Further fields that it wants for a model. */
  readonly fields: (model: string) => object
}

/** That of OpenAI and those who follow it. */
export const openAi: Api = {
  path: "/images/generations",
  shape: (model, ratio) => ({ size: sizeOf(model, ratio) }),
  // Only these give addresses unless they are told, and only these take the word.
  fields: (model) => ({ n: 1, ...(/(^|\/)dall-e/i.test(model) ? { response_format: "b64_json" } : {}) })
}

/** That of OpenRouter: the same for models of every kind, and it tells what a picture costs. */
export const openRouter: Api = {
  path: "/images",
  shape: (_, ratio) => ({ aspect_ratio: { landscape: "3:2", square: "1:1", portrait: "2:3" }[ratio] }),
  fields: () => ({})
}

/** Which one an endpoint has. */
export const apiOf = ({ hostname }: URL): Api => (/(^|\.)openrouter\.ai$/i.test(hostname) ? openRouter : openAi)

const Field = Schema.optional(Schema.NullOr(Schema.String))
const Body = Schema.parseJson(
  Schema.Struct({
    data: Schema.Array(Schema.Struct({ b64_json: Field, url: Field })),
    usage: Schema.optional(Schema.Unknown)
  })
)
const decode = Schema.decodeUnknownOption(Body)

export interface Options {
  readonly api: Api
  readonly service: Service
  readonly model: string
  readonly price: Price | undefined
  readonly read: Picture.Read
  readonly paid: ReturnType<typeof Paid.make>
}

/** Draws by one call. Fails with `NoSuchApi` where there is no such API for the model. */
export const make = ({ api, service, model, price, read, paid }: Options) => {
  let sized = true
  const post = ({ prompt, ratio }: Wish) =>
    Effect.map(
      service.call({
        method: "POST",
        path: api.path,
        json: { model, prompt, ...api.fields(model), ...(sized ? api.shape(model, ratio) : {}) },
        maxBytes: Picture.maxAnswerBytes,
        timeout
      }),
      (reply) => {
        const body = reply.status < 300 ? decode(Reply.textOf(reply)) : Option.none()
        const usage = Option.match(body, { onNone: () => noUsage, onSome: ({ usage }) => usageOf(usage, price) })
        return { value: { reply, body }, usage }
      }
    )
  const drawn = Effect.fn("ImagesApi.draw")(function* (
    wish: Wish
  ): Effect.fn.Return<Picture.Picture, ToolFailure | NoSuchApi, ToolSession> {
    let { reply, body } = yield* paid(post(wish))
    if (sized && refusesSize(reply)) {
      sized = false
      ;({ reply, body } = yield* paid(post(wish)))
    }
    if (reply.status >= 300) {
      const refusal = service.refusal(reply)
      return yield* isElsewhere(reply, model) ? new NoSuchApi({ detail: refusal.error }) : refusal
    }
    const first = Option.flatMapNullable(body, ({ data }) => data[0])
    const given = Option.getOrUndefined(first)
    if (given?.b64_json) return yield* Picture.fromBase64(given.b64_json)
    if (given?.url) return yield* read(given.url)
    const said = Option.isSome(body) ? "an empty list" : Reply.wordsOf(reply)
    return yield* service.failure(`no picture came from ${service.service}: ${said}`)
  })
  return drawn
}

const refusesSize = (reply: Reply.Reply): boolean =>
  (reply.status === 400 || reply.status === 422) && /\bsizes?\b|dimension|resolution|aspect/i.test(Reply.wordsOf(reply))

/** Whether it is the API that is missing, rather than the model or what it is asked. */
const isElsewhere = (reply: Reply.Reply, model: string): boolean => {
  const { status } = reply
  const words = Reply.wordsOf(reply)
  if (status === 405 || status === 501) return true
  if (status === 404) return !/model_not_found/.test(JSON.stringify(Reply.bodyOf(reply))) && !words.includes(model)
  return (status === 400 || status === 422) && /not support|unsupported|not implemented/i.test(words)
}

/** The images API counts tokens under names of its own. */
const usageOf = (usage: unknown, price: Price | undefined) => {
  const own = Predicate.isRecord(usage) ? usage : {}
  return Prices.read({ prompt_tokens: own.input_tokens, completion_tokens: own.output_tokens, ...own }, price).usage
}
