import { expect, it } from "vitest"
import * as Keys from "../../../src/tools/browser/Keys.ts"
import * as Snapshot from "../../../src/tools/browser/Snapshot.ts"

const tree = (...lines: ReadonlyArray<string>) => lines.join("\n")

it("A compact view has what can be acted on and what says something, and nothing of the boxes around it", () => {
  const page = tree(
    "- generic [active] [ref=e1] [box=8,8,1264,704]:",
    "  - banner [ref=e2] [box=8,8,1264,50]:",
    '    - heading "News" [level=1] [ref=e3] [box=8,8,1264,37]',
    "    - list [ref=e4] [box=8,60,100,40]:",
    "      - listitem [ref=e5] [box=8,60,100,20]:",
    '        - link "Sport" [ref=e6] [cursor=pointer] [box=8,60,40,20]:',
    `          - /url: https://x.test/${"a".repeat(300)}`,
    "      - listitem [ref=e7] [box=8,80,100,20]: plain",
    "    - generic [ref=e8] [cursor=pointer] [box=8,90,100,20]: clickable",
    `  - paragraph [ref=e9] [box=8,120,100,20]: ${"word ".repeat(100)}`,
    "  - iframe [ref=e10] [box=8,150,300,100]:",
    '    - button "Within" [ref=f1e2] [box=0,0,40,20]'
  )
  const { text } = Snapshot.view(page, false)
  expect(text.split("\n").map((line) => line.slice(0, 60))).toEqual([
    '- heading "News" [level=1]',
    '- link "Sport" [ref=e6]:',
    `  - /url: https://x.test/${"a".repeat(35)}`,
    "- plain",
    "- generic [ref=e8]: clickable",
    `- ${"word ".repeat(100).slice(0, 58)}`,
    "- iframe [ref=e10]:",
    '  - button "Within" [ref=f1e2]'
  ])
  expect(text).toMatch(/… \(\d+ more characters\)/)
  expect(Snapshot.view(page, true).text).toContain("- listitem [ref=e7]: plain")
})

it("A long view begins where the page is scrolled to and says what is missing on both sides", () => {
  const button = (at: number) => `- button "b ${at}" [ref=e${at}] [box=0,${(at - 500) * 30},50,20]`
  const page = tree(...Array.from({ length: 2000 }, (_, at) => button(at)))
  const { text } = Snapshot.view(page, false)
  expect(text).toMatch(/^- button "b 500" \[ref=e500\]\n/)
  expect(text).toMatch(
    /\n\[… not shown: 500 lines above \(browser_scroll up\), \d+ lines below \(browser_scroll down, or /
  )
  expect(text.length).toBeLessThan(8400)
  const full = Snapshot.view(page, true).text
  expect(full).toContain('"b 1200"')
  expect(full.length).toBeLessThan(46_000)
  const shown = text.split("\n").length - 1
  expect(Number(/(\d+) lines below/.exec(text)?.[1])).toBe(2000 - 500 - shown)
})

it("A change is told as the lines in its place, and a page that is another is shown whole", () => {
  const view = (...lines: ReadonlyArray<string>) => Snapshot.view(tree(...lines), false)
  const before = view('- button "A" [ref=e1]', '- textbox "B" [ref=e2]', '- link "C" [ref=e3]')
  expect(Snapshot.changed(before, before)).toBe("nothing in the snapshot changed")
  expect(
    Snapshot.changed(before, view('- button "A" [ref=e1]', '- textbox "B" [ref=e2]: text', '- link "C" [ref=e3]'))
  ).toBe('- textbox "B" [ref=e2]: text')
  expect(Snapshot.changed(before, view('- button "A" [ref=e1]', '- link "C" [ref=e3]'))).toMatch(/^1 line.* gone.*"B"/)
  const other = view(...Array.from({ length: 300 }, (_, at) => `- button "other ${at}" [ref=e${at}]`))
  expect(Snapshot.changed(before, other)).toBeUndefined()
})

it("Keys are known by the names that models give them", () => {
  const known = {
    enter: "Enter",
    RETURN: "Enter",
    esc: "Escape",
    "Page Down": "PageDown",
    page_up: "PageUp",
    "ctrl+a": "Control+a",
    "Ctrl + A": "Control+a",
    "cmd+shift+P": "Meta+Shift+P",
    "control+Enter": "Control+Enter",
    f5: "F5",
    " ": "Space",
    "+": "+",
    "ctrl++": "Control++",
    x: "x",
    X: "X",
    ArrowUp: "ArrowUp",
    é: "é"
  }
  for (const [given, key] of Object.entries(known)) expect(Keys.normalise(given), given).toBe(key)
})
