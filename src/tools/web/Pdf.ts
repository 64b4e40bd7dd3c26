/** A PDF as text, page by page, as far as a result goes. */
import { getDocumentProxy } from "unpdf"
import type { Page } from "./Reading.ts"

/** Pages that are looked at, at most. */
const pagesAtMost = 500

/** Reads pages until there are `enough` characters; fails when it is none, or needs a password. */
export const toPage = async (bytes: Uint8Array, enough: number): Promise<Page> => {
  const pdf = await getDocumentProxy(new Uint8Array(bytes), {
    verbosity: 0,
    useSystemFonts: true,
    disableFontFace: true
  })
  const title = await pdf.getMetadata().then(
    ({ info }: { readonly info: object }) => ("Title" in info && typeof info.Title === "string" ? info.Title : ""),
    () => ""
  )
  const parts: Array<string> = []
  let size = 0
  let read = 0
  while (read < Math.min(pdf.numPages, pagesAtMost) && size < enough) {
    read++
    const text = await pageText(pdf, read)
    size += text.length
    parts.push(`## Page ${read} of ${pdf.numPages}\n\n${text}`)
  }
  const shown = parts.join("\n\n").replaceAll("\0", "").toWellFormed()
  if (size === 0)
    return { title, text: `[${counted(pdf.numPages)} without any text: images, perhaps scanned]`, left: 0 }
  // What was not read is taken to be like what was.
  return { title, text: shown, left: Math.round((shown.length / read) * (pdf.numPages - read)) }
}

const counted = (pages: number): string => (pages === 1 ? "1 page" : `${pages} pages`)

type Document = Awaited<ReturnType<typeof getDocumentProxy>>

interface Content {
  readonly items: ReadonlyArray<{ readonly str?: string; readonly hasEOL?: boolean }>
}

/** The part of a page that is used: the package's types do not reach its inner ones. */
interface PdfPage {
  readonly getTextContent: () => Promise<Content>
  readonly cleanup: () => void
}

/** A page that is damaged is empty, not the end of the document. */
const pageText = (pdf: Document, number: number): Promise<string> =>
  pdf
    .getPage(number)
    .then((page: PdfPage) => page.getTextContent().finally(() => page.cleanup()))
    .then(
      ({ items }: Content) =>
        items
          .map(({ str = "", hasEOL }) => (hasEOL === true ? `${str}\n` : str))
          .join("")
          .split("\n")
          .map((line) => line.trimEnd())
          .join("\n")
          .replace(/\n{3,}/g, "\n\n")
          .trim(),
      () => ""
    )
