/** HTML by its source alone, in time that grows with its length and no faster: what is no text cut out, or all but the text. Pure. */

/** `html` without elements of these names and what is in them; one that never ends is left out to the end of its tag. */
export const without = (html: string, ...names: ReadonlyArray<string>): string =>
  names.reduce((left, name) => withoutOne(left, name), html)

const withoutOne = (html: string, name: string): string => {
  const open = new RegExp(`<${name}(?=[\\s/>])`, "gi")
  const close = new RegExp(`</${name}[^<>]*>`, "gi")
  const out: Array<string> = []
  let from = 0
  for (let start = open.exec(html); start !== null; start = open.exec(html)) {
    close.lastIndex = start.index
    if (close.exec(html) === null) break
    out.push(html.slice(from, start.index))
    from = close.lastIndex
    open.lastIndex = from
  }
  return out.join("") + html.slice(from)
}

/** `html` without comments. */
export const withoutComments = (html: string): string => {
  const out: Array<string> = []
  let from = 0
  for (;;) {
    const start = html.indexOf("<!--", from)
    const end = start < 0 ? -1 : html.indexOf("-->", start + 4)
    if (end < 0) return out.join("") + html.slice(from)
    out.push(html.slice(from, start))
    from = end + 3
  }
}

/** Elements that need no end, or whose end follows from what comes after. */
const unended = new Set(
  "area base br col embed hr img input link meta param source track wbr p li dt dd tr td th thead tbody tfoot option optgroup colgroup rb rt rp".split(
    " "
  )
)

/** How many elements lie within each other at most, and how many there are. */
export const shape = (html: string): { readonly depth: number; readonly count: number } => {
  let level = 0
  let depth = 0
  let count = 0
  for (const [, slash, name = "", closed] of html.matchAll(/<(\/?)([a-z][a-z0-9-]*)[^<>]*?(\/?)>/gi)) {
    count++
    if (closed === "/" || unended.has(name.toLowerCase())) continue
    level = slash === "/" ? Math.max(0, level - 1) : level + 1
    depth = Math.max(depth, level)
  }
  return { depth, count }
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  copy: "©",
  laquo: "«",
  raquo: "»",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”"
}

const unescaped = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal, hex, name: string | undefined) => {
    if (name !== undefined) return entities[name.toLowerCase()] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ""
  })

const block =
  /<\/?(?:address|article|aside|blockquote|body|br|dd|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|head|header|hr|html|li|main|nav|ol|option|p|pre|section|table|tr|ul)(?=[\s/>])[^<>]*>/gi

/** The text of a page without its form; a line for each block. */
export const textOf = (html: string): string =>
  unescaped(
    withoutComments(without(html, "script", "style", "noscript", "template", "svg", "head", "title"))
      .replace(/\s+/g, " ")
      .replace(block, "\n")
      .replace(/<\/?t[dh][^<>]*>/gi, " ")
      .replace(/<[a-z!/?][^<>]*>/gi, "")
  )
    .split("\n")
    .map((line) => line.replace(/[^\S\n]+/g, " ").trim())
    .filter((line) => line !== "")
    .join("\n")

/** What stands in the page's `title`; empty for none. */
export const titleOf = (html: string): string =>
  unescaped(/<title[^<>]*>([^<]{0,2000})/i.exec(html)?.[1] ?? "")
    .replace(/\s+/g, " ")
    .trim()
