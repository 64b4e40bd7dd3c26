/** A service's answer, and what one that is no success means in words. Pure. */
import { Option, Schema } from "effect"
import * as Diagnosis from "../../model/openai/Diagnosis.ts"
import * as Failure from "../../model/openai/Failure.ts"
import type { Call } from "./Api.ts"

export interface Reply {
  readonly status: number
  readonly header: (name: string) => string | null
  /** Of an answer that is no success, the beginning. */
  readonly bytes: Uint8Array
}

/** Bytes of an answer that is no success, at most. */
export const lookedAt = 100_000

export const textOf = ({ bytes }: Reply): string =>
  Buffer.from(bytes)
    .toString("utf8")
    .replace(/^\uFEFF/, "")

const parsed = Schema.decodeOption(Schema.parseJson())

/** The beginning of a body as JSON, or as the text that it is. */
export const bodyOf = ({ bytes, ...reply }: Reply): unknown => {
  const text = textOf({ ...reply, bytes: bytes.subarray(0, lookedAt) })
  return Option.getOrElse(parsed(text), (): unknown => text)
}

/** What an answer that is no success says, in its own words. */
export const wordsOf = (reply: Reply): string => Failure.words(bodyOf(reply)).trim()

const reasonOf = (reply: Reply): string => Diagnosis.reasonOf({ status: reply.status, body: bodyOf(reply), model: "" })

/** Whether the service says that it did nothing, and may do it later. */
export const isBusy = (reply: Reply): boolean => reply.status === 503 || reasonOf(reply) === "RateLimited"

/** Whether what is wrong may pass. */
export const passes = (reply: Reply): boolean =>
  isBusy(reply) || (reply.status >= 400 && reply.status !== 501 && reasonOf(reply) === "Overloaded")

/** What an answer that is no success means, for a model. */
export const meaningOf = (reply: Reply, { service, key }: Pick<Call, "service" | "key">): string => {
  const { status } = reply
  if (status >= 300 && status < 400) {
    return `${service} has moved to ${reply.header("location") ?? "another address"}: its address must be set anew`
  }
  const words = wordsOf(reply)
  return `${service} ${toldOf(reply, key)}${words === "" ? "" : `: ${words}`}`
}

const toldOf = (reply: Reply, key: Call["key"]): string => {
  const { status } = reply
  if (status === 401 || status === 403) {
    const place = key?.name === undefined ? "" : ` in ${key.name}`
    return `${key === undefined ? "wants a key, or refuses this call" : `refuses the key${place}`} (HTTP ${status})`
  }
  if (reasonOf(reply) === "NoCredit") return `has no credit left (HTTP ${status}); go on without this tool`
  return status === 429 ? "takes no more calls now (HTTP 429): try again later" : `answers HTTP ${status}`
}
