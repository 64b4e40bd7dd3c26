/** How a page is come to and looked at, so that every result says where the model is and what is there. */
import { Effect, Either } from "effect"
import { ToolFailure } from "../Tool.ts"
import * as Downloads from "./Downloads.ts"
import * as Scripts from "./Scripts.ts"
import * as Snapshot from "./Snapshot.ts"
import { attempt, type PageError, within } from "./Source.ts"
import type { Window } from "./Window.ts"

/** Seconds until a page must have answered at all, and until it must be there. */
const answers = 20
const loads = 10

const urlAtMost = 2000

/** Where the model is. */
export const place = (window: Window): string => window.page.url().slice(0, urlAtMost)

/** Waits until the page is there and quiet, but not for ever. */
export const settle = Effect.fn("Visit.settle")(function* (window: Window) {
  yield* Effect.sleep(100)
  const { page } = window
  const there = yield* Effect.either(
    within(loads, () => page.waitForLoadState("domcontentloaded", { timeout: loads * 1000 }))
  )
  if (Either.isLeft(there) && !page.isClosed()) {
    window.note("the page is still loading; this is what is there so far")
    return
  }
  yield* attempt(5, () => page.waitForLoadState("load", { timeout: 5000 }))
  let quiet = 0
  for (let look = 0; look < 20 && quiet < 2; look++) {
    quiet = window.underWay.size === 0 ? quiet + 1 : 0
    yield* Effect.sleep(100)
  }
})

/** Opens an address that is permitted. */
export const open = Effect.fn("Visit.open")(function* (window: Window, url: string) {
  if (!window.usable) {
    yield* Effect.mapError(
      within(20, () => window.replace()),
      ({ detail }) => new ToolFailure({ error: `no fresh page could be opened: ${detail}` })
    )
  }
  window.visited = true
  window.failed = undefined
  const { page } = window
  const before = window.downloads.length
  const go = Effect.either(within(answers + 5, () => page.goto(url, { waitUntil: "commit", timeout: answers * 1000 })))
  const first = yield* go
  // The browser's own page on the address before may come only now, and in the way of this one.
  const late = Either.isLeft(first) && /interrupted by another navigation to "chrome-error:/.test(first.left.detail)
  const gone = late ? yield* go : first
  if (Either.isRight(gone)) return gone.right?.status()
  const { detail } = gone.left
  // What ends without a page: a file, or an answer without content.
  if (/Download is starting/.test(detail) || (/ERR_ABORTED/.test(detail) && window.downloads.length > before)) {
    return undefined
  }
  if (/ERR_ABORTED/.test(detail)) {
    window.note("the address answers without a page of its own (no content); the page before is still shown")
    return undefined
  }
  if (/interrupted by another navigation/.test(detail) && !page.url().startsWith("chrome-error:")) return undefined
  const why = notOpened(window, url, gone.left)
  window.failed = undefined
  return yield* new ToolFailure({ error: `${url.slice(0, 500)} was not opened: ${why}` })
})

const known: ReadonlyArray<readonly [RegExp, string]> = [
  [/ERR_NAME_NOT_RESOLVED/, "there is no such host"],
  [/ERR_TOO_MANY_REDIRECTS/, "it redirects too many times"],
  [/ERR_CONNECTION_REFUSED/, "nothing listens there (connection refused)"],
  [/ERR_UNSAFE_PORT/, "browsers do not use that port"],
  [/ERR_EMPTY_RESPONSE/, "the server closed the connection without an answer"],
  [/ERR_SSL|ERR_CERT/, "its encryption or certificate is not in order"],
  [/ERR_CONNECTION_(RESET|CLOSED)/, "the server broke the connection"]
]

const notOpened = (window: Window, url: string, error: PageError): string => {
  const last = window.failed?.url ?? url
  const why = window.opened.why(last)
  if (why !== undefined) return last === url ? why : `it led to ${last.slice(0, 500)}: ${why}`
  if (error.late || /Timeout/.test(error.detail)) return `no answer within ${answers} seconds`
  const told = `${error.detail} ${window.failed?.error ?? ""}`
  const code = /ERR_[A-Z0-9_]+/.exec(told)?.[0]
  const words = known.find(([pattern]) => pattern.test(told))?.[1]
  return words === undefined ? (code ?? error.detail) : `${words}${code === undefined ? "" : ` (${code})`}`
}

/** Tells of a page that could not be loaded, where it was a click or a script that led there. */
const ledAstray = (window: Window): void => {
  if (window.failed === undefined) return
  const { url, error } = window.failed
  window.failed = undefined
  window.note(`${url.slice(0, 500)} was not opened: ${window.opened.why(url) ?? /ERR_\w+/.exec(error)?.[0] ?? error}`)
}

const hangs = new ToolFailure({
  error: "the page does not respond any more; browser_navigate opens a fresh one"
})

/** The result of a call: where the model is and what it sees there, or what changed since it last saw it. */
export const look = Effect.fn("Visit.look")(function* (window: Window, how: "compact" | "full" | "change") {
  const downloads = yield* Downloads.collect(window)
  ledAstray(window)
  const { page } = window
  const refused = yield* Effect.promise(() => window.opened.refuses(page.url()))
  if (refused !== undefined) {
    yield* attempt(10, () => page.goto("about:blank"))
    return yield* new ToolFailure({ error: refused })
  }
  const title = yield* Effect.either(within(4, () => page.title()))
  if (Either.isLeft(title) && title.left.late) {
    window.stuck = true
    return yield* hangs
  }
  const tree = yield* Effect.either(within(21, () => page.ariaSnapshot({ mode: "ai", boxes: true, timeout: 20_000 })))
  const shown = Either.isRight(tree) ? seen(window, tree.right, how) : { snapshot: yield* textOf(window) }
  return {
    success: true,
    url: place(window),
    title: Either.getOrElse(title, () => "").slice(0, 500),
    ...shown,
    ...window.told(),
    ...(downloads.length > 0 && { downloads })
  }
})

const seen = (window: Window, tree: string, how: "compact" | "full" | "change") => {
  const view = Snapshot.view(tree, how === "full")
  const before = window.seen
  // Only like is compared with like.
  if (how !== "full") window.seen = { view, documents: window.documents }
  const same = how === "change" && before !== undefined && before.documents === window.documents
  const change = same ? Snapshot.changed(before.view, view) : undefined
  return change === undefined ? { snapshot: view.text } : { changed: change }
}

/** The mere text of a page whose tree takes too long. */
const textOf = Effect.fnUntraced(function* (window: Window) {
  const { page } = window
  const text = yield* Effect.either(within(5, () => page.evaluate(Scripts.text)))
  if (Either.isLeft(text)) {
    window.stuck = text.left.late
    return yield* hangs
  }
  window.note("the page is too large for a snapshot in time: this is its text alone, without refs")
  return String(text.right).slice(0, Snapshot.compactBudget / 2)
})
