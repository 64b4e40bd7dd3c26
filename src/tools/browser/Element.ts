/** An element by the handle that a snapshot gives it, and what is done to it. */
import { Effect, Either } from "effect"
import type { Locator } from "playwright-core"
import { ToolFailure } from "../Tool.ts"
import { attempt, type PageError, within } from "./Source.ts"
import type { Window } from "./Window.ts"

/** Seconds until an element must be ready to be acted on. */
const ready = 6

/** Letters that are typed one by one: more take longer than a call may. */
const keysAtMost = 500

/** The element that `e5`, `@e5`, `ref=e5` or `[ref=e5]` names in the latest snapshot. */
const find = Effect.fnUntraced(function* (window: Window, given: string) {
  const ref = /^\s*[[@]?\s*(?:ref\s*=\s*)?["']?@?((?:f\d+)?e\d+)["']?\s*\]?\s*$/i.exec(given)?.[1]?.toLowerCase()
  if (ref === undefined) {
    return yield* new ToolFailure({
      error: `ref: expected a handle of a snapshot, such as e5, got ${JSON.stringify(given.slice(0, 100))}`
    })
  }
  const element = window.page.locator(`aria-ref=${ref}`)
  const count = yield* Effect.either(within(5, () => element.count()))
  if (Either.isLeft(count) && count.left.late) return yield* hanging(window)
  if (Either.isLeft(count) || count.right === 0) {
    return yield* new ToolFailure({
      error: `there is no element ${ref} on the page as it is now; take a new browser_snapshot and use a ref of it`
    })
  }
  return { ref, element }
})

/** The tab that is shown does not answer: what was asked of it, it may still do, so it is given up. */
export const hanging = (window: Window) => {
  window.stuck = true
  return new ToolFailure({ error: "the page does not respond any more; browser_navigate opens a fresh one" })
}

const reasons: ReadonlyArray<readonly [RegExp, (found: string) => string]> = [
  [
    /^[^<\n]*(<[^>\n]{1,200}>)[^\n]* intercepts pointer events/m,
    (it) => `${it} lies over it; act on that first, or close it`
  ],
  [/element is not enabled/, () => "it is disabled"],
  [/element is not visible/, () => "it is not visible"],
  [/element is outside of the viewport/, () => "it lies outside of what can be scrolled to"],
  [/element is not stable/, () => "it keeps moving"],
  [/element is not editable|read-?only/, () => "it is read-only"],
  [/element was detached|not attached/, () => "it is gone; take a new browser_snapshot"]
]

/** Why an action failed, in words; a page that does not answer at all is told as that. */
const explained = (window: Window, what: string) => (error: PageError) =>
  Effect.gen(function* () {
    const text = error.log
    for (const [pattern, say] of reasons) {
      const found = pattern.exec(text)
      if (found !== null) return yield* new ToolFailure({ error: `${what}: ${say(found[1] ?? "")}` })
    }
    const lives = yield* Effect.either(within(3, () => window.page.title()))
    if (Either.isLeft(lives) && lives.left.late) return yield* hanging(window)
    const detail = /^Timeout/.test(error.detail) ? `it was not ready within ${ready} seconds` : error.detail
    return yield* new ToolFailure({ error: `${what}: ${detail.split("\n")[0]}` })
  })

/** Clicks an element. */
export const click = Effect.fn("Element.click")(function* (window: Window, given: string) {
  const { ref, element } = yield* find(window, given)
  const { page } = window
  const failed = explained(window, `${ref} could not be clicked`)
  yield* Effect.catchAll(
    within(ready + 2, () => element.click({ timeout: ready * 1000 })),
    // A tab may close itself when it is clicked, or open others before it has answered.
    (error) => (page !== window.page && window.usable ? Effect.void : failed(error))
  )
})

/** Puts a text into an element, in place of what is there; gives what was left of it to press. */
export const type = Effect.fn("Element.type")(function* (window: Window, given: string, text: string) {
  const { ref, element } = yield* find(window, given)
  const failed = explained(window, `${ref} takes no text`)
  const { tag, kind } = yield* Effect.catchAll(
    within(ready, () => element.evaluate((it) => ({ tag: it.tagName, kind: it.getAttribute("type") ?? "" }))),
    failed
  )
  if (tag === "SELECT") return yield* choose(window, ref, element, text)
  if (tag === "INPUT" && /^(checkbox|radio|button|submit|reset|image)$/i.test(kind)) {
    return yield* new ToolFailure({ error: `${ref} is a ${kind.toLowerCase()} and takes no text; use browser_click` })
  }
  if (tag === "INPUT" && kind.toLowerCase() === "file") {
    return yield* new ToolFailure({ error: `${ref} takes a file, and files cannot be uploaded from here` })
  }
  const enters = tag === "INPUT" && /\n$/.test(text)
  const value = enters ? text.replace(/\r?\n$/, "") : text
  const filled = yield* Effect.either(within(ready + 2, () => element.fill(value, { timeout: ready * 1000 })))
  if (Either.isLeft(filled)) {
    // What is no field of text may still listen to keys.
    if (!/Element is not an <input>/.test(filled.left.detail)) return yield* failed(filled.left)
    yield* Effect.catchAll(
      within(ready + 2, () => element.click({ timeout: ready * 1000 })),
      failed
    )
    const nowhere = yield* Effect.catchAll(
      within(ready, () => element.evaluate((it) => it.ownerDocument.activeElement === it.ownerDocument.body)),
      failed
    )
    if (nowhere) {
      return yield* new ToolFailure({
        error: `${ref} is no field of text; take the ref of one, or use browser_press for single keys`
      })
    }
    const { keyboard } = window.page
    yield* Effect.catchAll(
      within(20, () => (value.length > keysAtMost ? keyboard.insertText(value) : keyboard.type(value))),
      // Keys that are still to come must not reach the next page.
      (error) => (error.late ? hanging(window) : failed(error))
    )
  }
  if (enters) yield* attempt(5, () => element.press("Enter", { timeout: 4000 }))
})

const choose = Effect.fnUntraced(function* (window: Window, ref: string, element: Locator, text: string) {
  const wanted = text.trim()
  const options = yield* Effect.catchAll(
    within(ready, () =>
      element.evaluate((it) => [...it.querySelectorAll("option")].map((option) => String(option.textContent)))
    ),
    explained(window, `${ref} could not be read`)
  )
  const at = options.findIndex((option) => option.trim().toLowerCase() === wanted.toLowerCase())
  const choice = at === -1 ? { value: wanted } : { index: at }
  yield* Effect.catchAll(
    within(ready, () => element.selectOption(choice, { timeout: 2000 })),
    () =>
      new ToolFailure({
        error: `${ref} has no option ${JSON.stringify(wanted.slice(0, 100))}; it has ${JSON.stringify(
          options.slice(0, 50).map((option) => option.trim().slice(0, 100))
        )}`
      })
  )
})
