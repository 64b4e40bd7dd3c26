/** What a document is, by what its server says and by its first bytes: servers are wrong often. Pure. */

/** How a document is read; `what` of others names their type for people. */
export type Kind =
  | { readonly _tag: "Html" }
  | { readonly _tag: "Pdf" }
  | { readonly _tag: "Json" }
  | { readonly _tag: "Text" }
  | { readonly _tag: "Other"; readonly what: string }

const marks: ReadonlyArray<readonly [type: string, mark: RegExp]> = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF.{4}WEBP/s],
  ["audio or video", /^(?:RIFF.{4}(?:WAVE|AVI )|ID3|OggS|fLaC|.{4}ftyp|\x1aE\xdf\xa3)/s],
  ["application/zip", /^PK[\x03\x05]/],
  ["application/gzip", /^\x1f\x8b/],
  ["application/x-xz", /^\xfd7zXZ/],
  ["a program", /^(?:\x7fELF|MZ.\x00)/s],
  ["font", /^wOF[F2]/]
]

const json = /^(?:application|text)\/(?:[a-z0-9.-]+\+)?json$|^application\/(?:ld\+|x-)?json/
const text =
  /^text\/|[/+](?:xml|yaml|x-yaml|toml|csv|javascript|x-javascript|ecmascript|typescript|sql|graphql|x-sh|x-tex|rtf|markdown|x-ndjson|jsonl|jsonlines|json-seq|x-httpd-php|x-python)$/
const html = /^(?:text\/html|application\/xhtml\+xml|application\/vnd\.wap\.xhtml\+xml)$/
/** What servers say when they do not know. */
const vague =
  /^(?:|application\/(?:octet-stream|x-download|force-download|binary)|binary\/octet-stream|unknown\/unknown|\*\/\*)$/

/** `contentType`: in lower case, without parameters. */
export const of = (contentType: string, bytes: Uint8Array): Kind => {
  const start = Buffer.from(bytes.subarray(0, 1024)).toString("latin1")
  if (/^[\s\x00]{0,64}%PDF-/.test(start) || (contentType === "application/pdf" && start.includes("%PDF-"))) {
    return { _tag: "Pdf" }
  }
  const seen = marks.find(([, mark]) => mark.test(start))?.[0]
  if (seen !== undefined) return { _tag: "Other", what: seen }
  if (html.test(contentType)) return { _tag: "Html" }
  if (json.test(contentType)) return { _tag: "Json" }
  if (text.test(contentType)) return { _tag: "Text" }
  if (vague.test(contentType)) return guessed(start)
  return { _tag: "Other", what: contentType }
}

const guessed = (start: string): Kind => {
  const first = start.replace(/^\xef\xbb\xbf/, "").trimStart()
  if (/^(?:<!doctype html|<(?:html|head|body|title|meta|div|p|h1)[\s>])/i.test(first)) return { _tag: "Html" }
  // Text has none of these, in any charset but those of two bytes a letter, which have a mark.
  if (/^(?:\xfe\xff|\xff\xfe)/.test(start) || !/[\x00-\x08\x0e-\x1a\x1c-\x1f]/.test(start)) {
    return /^[[{]/.test(first) ? { _tag: "Json" } : { _tag: "Text" }
  }
  return { _tag: "Other", what: "application/octet-stream" }
}
