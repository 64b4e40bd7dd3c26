/** A page's accessibility tree as a model reads it: what can be acted on and what says something, from where the page is scrolled to. Pure. */
import * as Text from "../Text.ts"

/** One line of a tree. */
interface Line {
  /** Steps of indentation. */
  readonly depth: number
  /** The line without its indentation and its box. */
  readonly text: string
  /** Where it lies in the window, in CSS pixels from its upper edge. */
  readonly top: number
  readonly bottom: number
}

/** Characters, as they cost, of a compact view and of a full one. */
export const compactBudget = 8000
export const fullBudget = 45_000

/** Roles that a user acts on. */
const interactive =
  /^- ['"]?(button|link|textbox|searchbox|checkbox|radio|combobox|listbox|option|menuitem\w*|tab|switch|slider|spinbutton|treeitem|gridcell|iframe)\b/

/** Whether a line is more than a box around others: it has a name, a text, or is one to act on. */
const says = (text: string): boolean =>
  interactive.test(text) || text.includes("[cursor=pointer]") || /^- ['"]?\w+ "|: \S|^- \/|^- text/.test(text)

const box = / \[box=(-?[\d.]+),(-?[\d.]+),(-?[\d.]+),(-?[\d.]+)\]/

/** The lines of a tree that holds boxes. What has none lies where its parent does, as does all within a frame. */
const lines = (tree: string): ReadonlyArray<Line> => {
  const above: Array<Line & { readonly frame: boolean }> = []
  return tree.split("\n").flatMap((raw) => {
    const text = raw.trimStart()
    if (text === "") return []
    const depth = (raw.length - text.length) / 2
    while (above.length > 0 && (above.at(-1)?.depth ?? 0) >= depth) above.pop()
    const parent = above.at(-1)
    const place = parent?.frame === true ? null : box.exec(text)
    const top = place === null ? (parent?.top ?? 0) : Number(place[2])
    const bottom = place === null ? (parent?.bottom ?? 0) : top + Number(place[4])
    const line = { depth, text: text.replace(box, ""), top, bottom }
    above.push({ ...line, frame: parent?.frame === true || text.startsWith("- iframe") })
    return [line]
  })
}

const textAtMost = 200
const urlAtMost = 120

const shortened = (text: string, most: number): string =>
  text.length > most ? `${Text.head(text, most)}… (${text.length - most} more characters)` : text

/** Without boxes around others, without handles of what is only read, long texts shortened. */
const compacted = (all: ReadonlyArray<Line>): ReadonlyArray<Line> => {
  const kept: Array<number> = []
  return all.flatMap((line) => {
    while (kept.length > 0 && (kept.at(-1) ?? 0) >= line.depth) kept.pop()
    if (!says(line.text)) return []
    const depth = kept.length
    kept.push(line.depth)
    const acted = interactive.test(line.text) || line.text.includes("[cursor=pointer]")
    const text = acted
      ? line.text.replace(" [cursor=pointer]", "")
      : line.text.replace(/ \[ref=\w+\]/, "").replace(/^- (paragraph|generic|listitem|cell)( \[active\])?: /, "- ")
    return [{ ...line, depth, text: shortened(text, text.startsWith("- /url:") ? urlAtMost : textAtMost) }]
  })
}

const rendered = ({ depth, text }: Line): string => `${"  ".repeat(depth)}${text}`

/** A page as it was shown. */
export interface View {
  /** All lines, to tell later what changed. */
  readonly all: ReadonlyArray<string>
  /** What the model is shown. */
  readonly text: string
}

/** What to show of a tree; a long one begins where the page is scrolled to. */
export const view = (tree: string, full: boolean): View => {
  const found = lines(tree)
  const kept = full ? found : compacted(found)
  const all = kept.map(rendered)
  const budget = full ? fullBudget : compactBudget
  if (Text.cost(all.join("\n")) <= budget) return { all, text: all.join("\n") }
  const from = kept.findIndex(({ bottom }, at) => bottom > 0 && kept.slice(at, at + 3).every((next) => next.bottom > 0))
  const start = from === -1 ? Math.max(0, kept.length - 50) : from
  const shown: Array<string> = []
  let spent = 0
  for (const line of all.slice(start)) {
    spent += Text.cost(line) + 2
    if (spent > budget) break
    shown.push(line)
  }
  // One line alone may be too long.
  const body = shown.length > 0 ? shown.join("\n") : Text.bound(all[start] ?? "", budget)
  const below = all.length - start - Math.max(1, shown.length)
  const missing = [
    start === 0 ? "" : `${start} lines above (browser_scroll up)`,
    below <= 0
      ? ""
      : `${below} lines below (browser_scroll down${full ? "" : ", or browser_snapshot with full=true for more at once"})`
  ].filter((part) => part !== "")
  return { all, text: `${body}\n[… not shown: ${missing.join(", ")} …]` }
}

/** Characters, as they cost, of what is told as a change. */
const changeBudget = 4000

/** What changed between two views, as the new lines in its place; undefined when it is simpler to see the whole. */
export const changed = (before: View, after: View): string | undefined => {
  const [old, now] = [before.all, after.all]
  const least = Math.min(old.length, now.length)
  let head = 0
  while (head < least && old[head] === now[head]) head++
  let tail = 0
  while (tail < least - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++
  const gone = old.length - tail - head
  const fresh = now.slice(head, now.length - tail)
  if (gone === 0 && fresh.length === 0) return "nothing in the snapshot changed"
  if (fresh.length === 0)
    return `${gone} line${gone === 1 ? " of the snapshot is" : "s of the snapshot are"} gone, such as: ${Text.head(old[head] ?? "", 200).trim()}`
  const text = fresh.join("\n")
  return Text.cost(text) > changeBudget ? undefined : text
}
