/** Pictures of FAL's queue: a request is handed in, looked after until it is done, and its result fetched. FAL names no price, so nothing is counted. */
import { Clock, Duration, Effect, Exit, Option, Schema } from "effect"
import { noUsage } from "../../model/Model.ts"
import type { Service } from "../net/Access.ts"
import type * as Api from "../net/Api.ts"
import { textOf } from "../net/Reply.ts"
import type * as Paid from "../Paid.ts"
import type { Painter, Ratio, Wish } from "./Painter.ts"
import * as Picture from "./Picture.ts"

/** What is used when the user names none: quick, cheap, and for every use. */
export const defaultModel = "fal-ai/flux/schnell"

const sizes: Readonly<Record<Ratio, string>> = {
  landscape: "landscape_16_9",
  square: "square_hd",
  portrait: "portrait_16_9"
}
const aspects: Readonly<Record<Ratio, string>> = { landscape: "16:9", square: "1:1", portrait: "9:16" }

/** Milliseconds for a picture, its time in the queue included. */
const longest = 180_000
/** Milliseconds between two looks. */
const between = { first: 300, most: 3000 }

const Ticket = Schema.parseJson(
  Schema.Struct({ request_id: Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]{1,100}$/)) })
)
const State = Schema.parseJson(Schema.Struct({ status: Schema.String, error: Schema.optional(Schema.Unknown) }))
const Image = Schema.Struct({ url: Schema.String })
const Result = Schema.parseJson(
  Schema.Struct({ images: Schema.optional(Schema.Array(Image)), image: Schema.optional(Image) })
)
const [readTicket, readState, readResult] = [
  Schema.decodeUnknownOption(Ticket),
  Schema.decodeUnknownOption(State),
  Schema.decodeUnknownOption(Result)
]

export interface Options {
  readonly service: Service
  /** How the service knows the tries for one picture. */
  readonly purchase: NonNullable<Api.Call["purchase"]>
  readonly model: string
  readonly read: Picture.Read
  readonly paid: ReturnType<typeof Paid.make>
}

/** Draws by a model of FAL's. */
export const make = ({ service, purchase, model, read, paid }: Options): Painter => {
  const small = { maxBytes: 1_000_000, timeout: 30 }
  // Models of one app share its requests: `fal-ai/flux/schnell` is of `fal-ai/flux`.
  const requests = `/${model.split("/").slice(0, 2).join("/")}/requests`
  let sized = true

  const finished = Effect.fnUntraced(function* (id: string) {
    const end = (yield* Clock.currentTimeMillis) + longest
    for (let pause = between.first; ; pause = Math.min(between.most, pause * 1.5)) {
      const reply = yield* service.call({ method: "GET", path: `${requests}/${id}/status`, ...small })
      if (reply.status >= 300) return yield* service.refusal(reply)
      const state = Option.getOrUndefined(readState(textOf(reply)))
      if (state === undefined) return yield* service.failure(`${service.service} does not say how the request is doing`)
      if (state.status === "COMPLETED") return
      if (state.status !== "IN_QUEUE" && state.status !== "IN_PROGRESS") {
        return yield* service.failure(`the request ended as ${state.status}; try other words`)
      }
      if ((yield* Clock.currentTimeMillis) + pause > end) {
        return yield* service.failure(`no picture within ${longest / 1000} seconds; try again later`)
      }
      yield* Effect.sleep(Duration.millis(pause))
    }
  })

  /** A request that nobody waits for any more is taken back, as far as that still goes. */
  const cancel = (id: string) =>
    service
      .call({ method: "PUT", path: `${requests}/${id}/cancel`, ...small })
      .pipe(Effect.interruptible, Effect.timeout("2 seconds"), Effect.ignore)

  /** The last answer: the result, or what stood in its way. */
  const asked = Effect.fnUntraced(function* ({ prompt, ratio }: Wish) {
    const shape = sized ? { image_size: sizes[ratio] } : { aspect_ratio: aspects[ratio] }
    const reply = yield* service.call({
      method: "POST",
      path: `/${model}`,
      json: { prompt, num_images: 1, ...shape },
      purchase,
      ...small
    })
    if (reply.status >= 300) return reply
    const ticket = Option.getOrUndefined(readTicket(textOf(reply)))
    if (ticket === undefined) return yield* service.failure(`${service.service} did not take the request`)
    yield* Effect.onExit(finished(ticket.request_id), (exit) =>
      Exit.isSuccess(exit) ? Effect.void : cancel(ticket.request_id)
    )
    return yield* service.call({
      method: "GET",
      path: `${requests}/${ticket.request_id}`,
      maxBytes: Picture.maxAnswerBytes,
      timeout: 60
    })
  })
  const bill = (wish: Wish) => paid(Effect.map(asked(wish), (value) => ({ value, usage: noUsage })))

  return {
    draw: Effect.fn("Fal.draw")(function* (wish) {
      let reply = yield* bill(wish)
      if (sized && (reply.status === 400 || reply.status === 422) && /image_size/.test(textOf(reply))) {
        sized = false
        reply = yield* bill(wish)
      }
      if (reply.status >= 300) return yield* service.refusal(reply)
      const result = Option.getOrUndefined(readResult(textOf(reply)))
      const url = (result?.images?.[0] ?? result?.image)?.url
      if (url === undefined) return yield* service.failure(`no picture came from ${service.service}; try other words`)
      return yield* read(url)
    })
  }
}
