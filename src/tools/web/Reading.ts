/** A document as Markdown, whatever its type: what a worker does with the bytes of one page. Hostile input may make it take long, or fail. */
import * as Charset from "./Charset.ts"
import * as Kind from "./Kind.ts"
import * as PlainHtml from "./PlainHtml.ts"

/** The bytes of a document, and what is known of them. */
export interface Source {
  readonly url: string
  readonly contentType: string
  readonly charset: string
  readonly bytes: Uint8Array
  /** Whether there was more. */
  readonly cut: boolean
  /** Whether only the text of a page is wanted: its form took too long. */
  readonly plain: boolean
}

/** What a page holds. */
export interface Page {
  readonly title: string
  /** The beginning, as Markdown. */
  readonly text: string
  /** About how many characters there are beyond. */
  readonly left: number
}

/** Characters of text that leave the worker at most: more than any result holds. */
const kept = 60_000

/** Characters of JSON that are laid out anew at most. */
const layoutAtMost = 1_000_000

/** Fails with a sentence for the model. */
export const read = async (source: Source): Promise<Page> => {
  const { title, text, left } = await readWhole(source)
  const note = source.cut ? "\n\n[… the document is longer than what was fetched …]" : ""
  return text.length > kept
    ? { title, text: text.slice(0, kept).toWellFormed(), left: left + text.length - kept }
    : { title, text: text + note, left }
}

const readWhole = async ({ url, contentType, charset, bytes, cut, plain }: Source): Promise<Page> => {
  const kind = Kind.of(contentType, bytes)
  switch (kind._tag) {
    case "Html": {
      const html = await Charset.decode(bytes, charset)
      const page = plain
        ? undefined
        : await import("./Html.ts").then(({ toPage }) => toPage(html, url)).catch(() => undefined)
      return page ?? { title: PlainHtml.titleOf(html), text: PlainHtml.textOf(html), left: 0 }
    }
    case "Pdf": {
      if (cut) return Promise.reject(new Error(`the PDF is larger than ${Math.floor(bytes.length / 1e6)} MB`))
      const { toPage } = await import("./Pdf.ts")
      return toPage(bytes, kept).catch((error: unknown) => Promise.reject(new Error(pdfWords(error))))
    }
    case "Json": {
      const text = await Charset.decode(bytes, charset)
      return { title: "", text: text.length > layoutAtMost ? text : await laidOut(text), left: 0 }
    }
    case "Text":
      return { title: "", text: await Charset.decode(bytes, charset), left: 0 }
    case "Other":
      return Promise.reject(
        new Error(
          `it is no page or text but ${kind.what.slice(0, 100)}, which cannot be read${kind.what.startsWith("image/") ? ": look at images with vision_analyze" : ""}`
        )
      )
  }
}

const laidOut = (text: string): Promise<string> =>
  Promise.resolve()
    .then(() => JSON.stringify(JSON.parse(text), null, 2))
    .catch(() => text)

const pdfWords = (error: unknown): string =>
  error instanceof Error && error.name === "PasswordException"
    ? "the PDF can only be read with a password"
    : "the PDF is damaged and cannot be read"
