/** Speech of an endpoint's API, as OpenAI documents it. It reports nothing spent, so nothing is counted. */
import { Effect } from "effect"
import { noUsage } from "../../model/Model.ts"
import type * as Service from "../net/Service.ts"
import * as Paid from "../Paid.ts"
import { maxBytes, type Speaker } from "./Speaker.ts"

/** Seconds for one text. */
const seconds = 180

/** Speaks by `POST /audio/speech`; `voice` is for those who name none. */
export const make = (service: Service.Service, model: string, voice: string): Speaker => {
  const paid = Paid.make()
  return {
    say: Effect.fn("SpeechApi.say")(function* (words) {
      const call = service.call({
        method: "POST",
        path: "/audio/speech",
        json: {
          model,
          input: words.text,
          voice: words.voice || voice || "alloy",
          response_format: words.kind ?? "mp3"
        },
        maxBytes,
        seconds
      })
      const reply = yield* paid(Effect.map(call, (value) => ({ value, usage: noUsage })))
      if (reply.status >= 300) return yield* service.refusal(reply)
      return reply.bytes
    })
  }
}
