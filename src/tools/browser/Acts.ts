/** What a session does with the page before it as a whole: goes there and back, scrolls, presses keys, looks at its pictures. */
import { Effect, Either, Schema } from "effect"
import type { Guard } from "../net/Guard.ts"
import * as Text from "../Text.ts"
import { ToolFailure } from "../Tool.ts"
import * as Element from "./Element.ts"
import * as Keys from "./Keys.ts"
import * as Scripts from "./Scripts.ts"
import { attempt, PageError, within } from "./Source.ts"
import * as Visit from "./Visit.ts"
import type { Window } from "./Window.ts"

/** The address that a model means, when it may be opened. */
export const permitted = Effect.fn("Acts.permitted")(function* (guard: Guard, given: string) {
  const text = given.trim()
  if (text === "about:blank") return text
  const schemed = /^[a-z][a-z0-9+.-]*:(\/\/|(?!\d))/i.test(text)
  const refused = (error: { readonly message: string }) => new ToolFailure({ error: error.message })
  const url = yield* Effect.mapError(guard.url(schemed || text === "" ? text : `https://${text}`), refused)
  yield* Effect.mapError(guard.resolve(url.hostname), refused)
  return url.href
})

/** Waits for what an action sets going, then tells what changed. */
export const afterwards = (window: Window) => Effect.zipRight(Visit.settle(window), Visit.look(window, "change"))

const failed = (what: string) =>
  Effect.mapError((error: PageError) => new ToolFailure({ error: `${what}: ${error.detail}` }))

/** Scrolls, and tells how far the page is. */
export const scroll = Effect.fn("Acts.scroll")(function* (window: Window, direction: "up" | "down") {
  const { page } = window
  const { top, total, moved, ...answer } = yield* within(8, () => page.evaluate(Scripts.scroll(direction))).pipe(
    Effect.flatMap((told) => Schema.decodeUnknown(Scripts.Position)(told)),
    Effect.catchTag("ParseError", () => new PageError({ detail: "the page does not tell where it is" })),
    failed("the page could not be scrolled")
  )
  yield* Visit.settle(window)
  const far = `${Math.round(top)} of ${Math.round(Math.max(0, total - answer.window))} pixels down`
  const position = moved !== 0 ? far : direction === "up" ? "at the top already" : "at the end already"
  return { ...(yield* Visit.look(window, "compact")), position }
})

/** Goes back in the history, or from a tab without one to the tab behind it. */
export const back = Effect.fn("Acts.back")(function* (window: Window) {
  const { page } = window
  const before = page.url()
  yield* attempt(15, () => page.goBack({ waitUntil: "commit", timeout: 12_000 }))
  const moved = page.url() !== before && page.url() !== "about:blank"
  if (!moved) {
    if (!window.leave()) {
      if (page.url() !== before) yield* attempt(15, () => page.goForward({ waitUntil: "commit", timeout: 12_000 }))
      return yield* new ToolFailure({ error: "there is no page before this one" })
    }
    window.note("the tab was closed; the one before is shown again")
  }
  yield* Visit.settle(window)
  return yield* Visit.look(window, "compact")
})

/** Presses keys where the focus is. */
export const press = Effect.fn("Acts.press")(function* (window: Window, key: string) {
  const name = Keys.normalise(key.slice(0, 100))
  if (Keys.pastes(name)) {
    return yield* new ToolFailure({
      error:
        "key: the clipboard is not this session's alone, so nothing is pasted from it; put the text in with browser_type"
    })
  }
  yield* Effect.catchAll(
    within(10, () => window.page.keyboard.press(name)),
    ({ detail, late }) =>
      late
        ? Element.hanging(window)
        : new ToolFailure({
            error: `key: ${detail.slice(0, 200)}; known are names such as Enter, Escape, Tab, Backspace, ArrowDown, F5, single characters, and these joined as in Control+A`
          })
  )
})

const framesAtMost = 20

/** The images of the page and of its frames. */
export const images = Effect.fn("Acts.images")(function* (window: Window) {
  const found: Array<(typeof Scripts.Images.Type)["images"][number]> = []
  let total = 0
  for (const frame of window.page.frames().slice(0, framesAtMost)) {
    const answer = yield* within(5, () => frame.evaluate(Scripts.images)).pipe(
      Effect.flatMap((told) => Schema.decodeUnknown(Scripts.Images)(told)),
      Effect.either
    )
    if (Either.isLeft(answer)) continue
    total += answer.right.total
    found.push(...answer.right.images)
  }
  let spent = 0
  const shown = found.slice(0, Scripts.imagesAtMost).filter((image) => {
    spent += Text.cost(JSON.stringify(image))
    return spent <= Text.resultBytes * 0.9
  })
  return { success: true, url: Visit.place(window), images: shown, total, ...window.told() }
})

/** A picture of the window. */
export const picture = Effect.fn("Acts.picture")(function* ({ page }: Window) {
  const bytes = yield* failed("no picture of the page could be taken")(
    within(20, () => page.screenshot({ type: "jpeg", quality: 80, timeout: 15_000, animations: "disabled" }))
  )
  return { bytes, mime: "image/jpeg" }
})
