/** What went wrong with a call, in words for people: short, on one line, and without the key. Pure. */
import { Duration, Option, Predicate } from "effect"

/** The characters of an endpoint's own words that a message keeps. */
const longest = 300
/** What is looked at before that, so that a hostile body costs little. */
const lookedAt = 4000
/** A piece of a key this long is never shown. */
const keyPiece = 8

/** The endpoint's own words in an error body of any of the usual shapes; empty when there are none. */
export const words = (body: unknown): string => wordsAt(body, 0)

/** A hostile body may nest without end: what lies deeper than any real one is not looked at. */
const wordsAt = (body: unknown, depth: number): string => {
  if (Predicate.isString(body)) {
    return body.slice(0, lookedAt).replace(/<[^<>]*>/g, " ")
  }
  if (depth > 6) {
    return ""
  }
  if (Array.isArray(body)) {
    return wordsAt(body[0], depth + 1)
  }
  if (!Predicate.isRecord(body)) {
    return ""
  }
  const inner = body.error ?? body.message ?? body.detail ?? body.msg
  if (inner === undefined || inner === null) {
    return plainFields(body)
  }
  // OpenRouter hands on what the provider behind it said.
  const raw = Predicate.isRecord(body.metadata) ? wordsAt(body.metadata.raw, depth + 1) : ""
  return [wordsAt(inner, depth + 1), raw].filter((part) => part !== "").join(": ")
}

const plainFields = (body: Readonly<Record<string, unknown>>): string =>
  Object.entries(body)
    .slice(0, 20)
    .flatMap(([name, value]) =>
      Predicate.isString(value) || Predicate.isNumber(value) ? [`${name}: ${String(value).slice(0, longest)}`] : []
    )
    .join(", ")

/** One line of at most 300 characters, with `***` in the place of the key and of every longer piece of it. */
export const oneLine = (text: string, key: string): string => {
  const flat = withoutKey(text.slice(0, lookedAt), key)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim()
  return (flat.length > longest ? `${flat.slice(0, longest).trimEnd()}…` : flat).toWellFormed()
}

/** Replaces the key, and each piece of it of eight characters or more (or as many as `piece`), by `***`. */
export const withoutKey = (text: string, key: string, piece = keyPiece): string => {
  const size = Math.min(piece, key.length)
  if (size === 0) {
    return text
  }
  const pieces = new Set(Array.from({ length: key.length - size + 1 }, (_, from) => key.slice(from, from + size)))
  const out: Array<string> = []
  let shown = 0
  for (let at = 0; at + size <= text.length; at++) {
    if (!pieces.has(text.slice(at, at + size))) {
      continue
    }
    let end = at + size
    while (end < text.length && pieces.has(text.slice(end - size + 1, end + 1))) {
      end++
    }
    out.push(text.slice(shown, at), "***")
    shown = end
    at = end - 1
  }
  return out.join("") + text.slice(shown)
}

/**
 * The longest wait that `retry-after-ms` and `retry-after` (seconds or an HTTP date) ask for, whatever stands there twice.
 * `now`: milliseconds since the epoch.
 */
export const retryAfter = (
  header: (name: string) => string | null | undefined,
  now: number
): Option.Option<Duration.Duration> => {
  const given = header("retry-after") ?? ""
  const seconds = numbers(given)
  const date = seconds.length > 0 ? Number.NaN : Date.parse(given)
  const waits = [
    ...numbers(header("retry-after-ms") ?? ""),
    ...seconds.map((each) => each * 1000),
    ...(Number.isNaN(date) ? [] : [Math.max(0, date - now)])
  ]
  return waits.length === 0 ? Option.none() : Option.some(Duration.millis(Math.max(...waits)))
}

/** The numbers of a header, which is a list when it was sent more than once. */
const numbers = (text: string): ReadonlyArray<number> =>
  text.split(",").flatMap((each) => (/^\s*\d+(?:\.\d*)?\s*$/.test(each) ? [Number(each)] : []))

const causes: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "connection refused"],
  ["ECONNRESET", "the connection was reset"],
  ["EPIPE", "the connection was closed"],
  ["ENOTFOUND", "no such host"],
  ["EAI_AGAIN", "the name lookup failed"],
  ["EHOSTUNREACH", "no route to the host"],
  ["ENETUNREACH", "no route to the network"],
  ["ETIMEDOUT", "connecting took too long"],
  ["UND_ERR_CONNECT_TIMEOUT", "connecting took too long"],
  ["CERT_HAS_EXPIRED", "its certificate has expired"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "its certificate is self-signed"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "its certificate is self-signed"],
  ["UND_ERR_SOCKET", "the connection was closed"],
  ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "the connection was closed"]
])

/** The machine's code of a failed connection, such as ECONNREFUSED; empty for none. */
export const codeOf = (cause: unknown): string =>
  Predicate.isRecord(cause) && Predicate.isString(cause.code) ? cause.code : ""

/** Codes of connections that could not be made. */
const unmade =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_[A-Z]+|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|EPROTO|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|UND_ERR_PRX_TLS|ERR_SSL_[A-Z0-9_]+|ERR_TLS_[A-Z0-9_]+|[A-Z_]*(?:CERT|CRL)[A-Z_]*|UNABLE_TO_[A-Z_]+|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED)$/

/** Endings before there was a connection that have no code of their own: inside TLS, and at a proxy. */
const unmadeWords = /^(?:Client network socket disconnected before secure TLS|Proxy response )/

/** Whether no connection could be made, rather than that one broke: nothing was asked of the endpoint then. */
export const neverConnected = (cause: unknown): boolean => {
  const code = codeOf(cause)
  // The same codes come from a connection that dies at work; but for that of TLS, which cannot begin.
  const call = Predicate.isRecord(cause) ? cause.syscall : undefined
  if ((call === "read" || call === "write") && code !== "EPROTO") return false
  return unmade.test(code) || (Predicate.isError(cause) && unmadeWords.test(cause.message))
}

/** Why there was no connection, or why it broke, in a few words. */
export const connectionWords = (cause: unknown): string => {
  const code = codeOf(cause)
  const known = causes.get(code)
  if (known !== undefined) {
    return known
  }
  const message = Predicate.isError(cause) ? cause.message : ""
  return message === "" ? code || "the connection failed" : message
}
