/** Speech of an endpoint's API, as OpenAI documents it. It reports nothing spent, so nothing is counted. */
import { Effect } from "effect"
import { noUsage } from "../../model/Model.ts"
import type { Service } from "../net/Access.ts"
import * as Reply from "../net/Reply.ts"
import * as Paid from "../Paid.ts"
import { maxBytes, type Speaker, type Words } from "./Speaker.ts"

/** Seconds for one text. */
const timeout = 180

/** Speaks by `POST /audio/speech`; `voice` is for those who name none. */
export const make = (service: Service, model: string, voice: string): Speaker => {
  const paid = Paid.make()
  const asked = ({ text, voice: named, kind = "mp3" }: Words) => {
    const json = { model, input: text, voice: named || voice || "alloy", response_format: kind }
    const call = service.call({ method: "POST", path: "/audio/speech", json, maxBytes, timeout })
    return paid(Effect.map(call, (value) => ({ value, usage: noUsage })))
  }
  return {
    say: Effect.fn("SpeechApi.say")(function* (words) {
      let reply = yield* asked(words)
      // Every model makes MP3; the file is named by what it holds.
      if (words.kind !== undefined && words.kind !== "mp3" && refusesFormat(reply)) {
        reply = yield* asked({ ...words, kind: "mp3" })
      }
      if (reply.status >= 300) return yield* service.refusal(reply)
      return reply.bytes
    })
  }
}

const refusesFormat = (reply: Reply.Reply): boolean =>
  (reply.status === 400 || reply.status === 422) && /format/i.test(Reply.wordsOf(reply))
