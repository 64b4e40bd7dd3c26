/** An HTML page as Markdown: its main text where one stands out, else all of it, with links and images by their whole addresses. */
import { gfm } from "@joplin/turndown-plugin-gfm"
import { Readability } from "@mozilla/readability"
import { parseHTML } from "linkedom"
import Turndown from "turndown"
import * as PlainHtml from "./PlainHtml.ts"
import type { Page } from "./Reading.ts"

/** What is no text, cut out of the source: it is most of a page's bytes. */
const mute = ["style", "template", "svg", "script", "noscript", "iframe", "object", "canvas", "math-svg"]

/** Nesting and elements beyond this take minutes, and no page for people has them. */
const deepest = 400
const most = 150_000

/** Characters of HTML that become Markdown at most: a result holds far less. */
const longest = 400_000

/** Characters of a main text that are too few where the page has more. */
const few = 250

/** The page as Markdown; undefined for one that is too large or too deep to be read in its form. */
export const toPage = (source: string, url: string): Page | undefined => {
  const html = PlainHtml.withoutComments(PlainHtml.without(source, ...mute))
  const { depth, count } = PlainHtml.shape(html)
  if (depth > deepest || count > most) return undefined
  const document = prepared(html, url)
  // What finds the main text takes the page apart.
  const whole = document.body.innerHTML
  const text = lengthOf(document.body.textContent)
  const article = new Readability(document, { disableJSONLD: true, keepClasses: true }).parse()
  const main = lengthOf(article?.textContent)
  const enough = main >= few || main * 3 >= text
  const title = (article?.title || PlainHtml.titleOf(html)).trim()
  return { title, ...markdown(enough && article?.content ? article.content : whole) }
}

const lengthOf = (text: string | null | undefined): number => (text ?? "").replace(/\s+/g, " ").length

/** The parser puts nothing where it belongs by itself: head and body are made here. */
const prepared = (html: string, url: string) => {
  const content = html.replace(/<!doctype[^<>]*>|<\/?(?:html|head|body)(?=[\s/>])[^<>]*>|<\?xml[^<>]*>/gi, "")
  const { document } = parseHTML(`<!doctype html><html><head></head><body>${content}</body></html>`)
  const base = resolved(document.querySelector("base[href]")?.getAttribute("href") ?? "", url) ?? url
  const title = document.querySelector("body title")
  if (title !== null) document.head.append(title)
  for (const gone of document.querySelectorAll("base, link, body title, input, select, button, textarea, [hidden]")) {
    gone.remove()
  }
  for (const link of document.querySelectorAll("a[href]")) {
    const to = resolved(link.getAttribute("href") ?? "", base)
    if (to === undefined) link.removeAttribute("href")
    else link.setAttribute("href", to)
  }
  for (const image of document.querySelectorAll("img")) {
    const named = image.getAttribute("src") ?? ""
    const to = resolved(/^data:|^$/i.test(named) ? (image.getAttribute("data-src") ?? "") : named, base)
    if (to === undefined) image.remove()
    else image.setAttribute("src", to)
  }
  return document
}

/** The whole address; undefined for what leads nowhere from here: scripts, data, and what is none. */
const resolved = (address: string, base: string): string | undefined => {
  const trimmed = address.trim()
  if (trimmed === "" || !URL.canParse(trimmed, base)) return undefined
  const { protocol, href } = new URL(trimmed, base)
  return ["http:", "https:", "mailto:", "tel:", "ftp:"].includes(protocol) && href.length < 2000 ? href : undefined
}

const markdown = (html: string): Pick<Page, "text" | "left"> => {
  const writer = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-", hr: "---" })
  writer.use(gfm)
  const text = writer
    .turndown(html.slice(0, longest))
    // A link around nothing that can be shown, such as an icon.
    .replace(/(?<!!)\[\s*\]\([^()\s]*\)/g, "")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()
  const share = html.length > longest ? html.length / longest - 1 : 0
  return { text, left: Math.round(text.length * share) }
}
