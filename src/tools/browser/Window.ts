/** What one session has before it: the page that is shown, the tabs behind it, and what happened by itself since the last look. */
import type { Dialog, Download, Page, Request } from "playwright-core"
import type { View } from "./Snapshot.ts"
import { downloadBytes, type Opened } from "./Source.ts"

/** A question or word of a page that was answered by itself. */
export interface Answered {
  readonly type: string
  readonly message: string
  readonly answer: string
}

/** Tabs of a session; further ones are closed at once. */
const tabsAtMost = 8
const toldAtMost = 20

const waitedFor = new Set(["document", "xhr", "fetch", "script", "stylesheet"])

export class Window {
  readonly opened: Opened
  /** The tab that is shown. */
  page: Page
  /** Whether a page was ever asked for. */
  visited = false
  /** Whether the page that is shown does not answer any more. */
  stuck = false
  /** Documents that were shown so far. */
  documents = 0
  /** The latest view that the model has of the page. */
  seen: { readonly view: View; readonly documents: number } | undefined
  /** The latest document that could not be loaded. */
  failed: { readonly url: string; readonly error: string } | undefined
  /** Requests under way that a page is not complete without. */
  readonly underWay = new Set<Request>()
  /** Downloads that the model was not told of yet. */
  downloads: Array<Download> = []
  private readonly loading = new Set<Download>()
  private notes: Array<string> = []
  private dialogs: Array<Answered> = []
  private readonly crashed = new WeakSet<Page>()
  private readonly watched = new WeakSet<Page>()
  private readonly quiet = new WeakSet<Page>()

  constructor(opened: Opened) {
    this.opened = opened
    this.page = opened.page
    const { context } = opened
    this.watch(opened.page)
    context.on("page", (page) => this.enter(page))
    context.on("request", (request) => {
      if (waitedFor.has(request.resourceType())) this.underWay.add(request)
    })
    context.on("requestfinished", (request) => this.underWay.delete(request))
    context.on("requestfailed", (request) => this.broke(request))
  }

  /** Tells the model with the next result. */
  note(text: string): void {
    if (this.notes.length < toldAtMost && !this.notes.includes(text)) this.notes.push(text)
  }

  /** What is to be told, once. */
  told(): { readonly notes?: ReadonlyArray<string>; readonly dialogs?: ReadonlyArray<Answered> } {
    const { notes, dialogs } = this
    this.notes = []
    this.dialogs = []
    return { ...(notes.length > 0 && { notes }), ...(dialogs.length > 0 && { dialogs }) }
  }

  /** Whether the page that is shown is one to work with. */
  get usable(): boolean {
    return !this.stuck && !this.crashed.has(this.page) && !this.page.isClosed()
  }

  /** Puts a fresh tab in the place of the one that is shown. */
  async replace(): Promise<void> {
    const before = this.page
    const fresh = await this.opened.context.newPage()
    this.watch(fresh)
    this.show(fresh)
    this.stuck = false
    this.underWay.clear()
    this.quiet.add(before)
    before.close().catch(() => {})
  }

  /** Closes the tab that is shown when another is behind it; tells whether there was one. */
  leave(): boolean {
    const { page } = this
    const behind = this.behind(page)
    if (behind === undefined) return false
    this.quiet.add(page)
    this.show(behind)
    this.stuck = false
    page.close().catch(() => {})
    return true
  }

  private show(page: Page): void {
    this.page = page
    this.documents++
  }

  private behind(page: Page): Page | undefined {
    return this.opened.context.pages().findLast((other) => other !== page && !other.isClosed())
  }

  private watch(page: Page): void {
    if (this.watched.has(page)) return
    this.watched.add(page)
    page.on("dialog", (dialog) => this.answer(dialog))
    page.on("download", (download) => this.load(download))
    page.on("crash", () => this.crashed.add(page))
    page.on("close", () => this.gone(page))
    page.on("filechooser", () => this.note("the page asks for a file to upload, which is not supported here"))
    page.on("framenavigated", (frame) => {
      if (frame.parentFrame() !== null) return
      this.documents++
      if (page === this.page) this.underWay.clear()
    })
    if (this.opened.downloads) this.bound(page).catch(() => {})
  }

  /** A tab that a page opened is shown from now on. */
  private enter(page: Page): void {
    if (page === this.page || this.watched.has(page)) return
    // One of our own has no opener and is shown by who made it.
    page
      .opener()
      .then((opener) => {
        if (opener === null) return
        if (this.opened.context.pages().length > tabsAtMost) {
          this.note(`the page opened more than ${tabsAtMost} tabs; further ones were closed`)
          this.quiet.add(page)
          page.close().catch(() => {})
        } else if (!page.isClosed()) {
          this.watch(page)
          this.show(page)
          this.note("a new tab was opened and is shown now; browser_back closes it and returns to the one before")
        }
      })
      .catch(() => {})
  }

  private gone(page: Page): void {
    if (page !== this.page || this.quiet.has(page)) return
    const behind = this.behind(page)
    if (behind === undefined) return
    this.show(behind)
    this.note("the tab closed itself; the one before is shown now")
  }

  private load(download: Download): void {
    this.downloads.push(download)
    this.loading.add(download)
    const ended = () => this.loading.delete(download)
    download.failure().then(ended, ended)
  }

  private answer(dialog: Dialog): void {
    const type = dialog.type()
    const answer = type === "prompt" ? dialog.defaultValue() : "accepted"
    if (this.dialogs.length < toldAtMost) {
      this.dialogs.push({ type, message: dialog.message().slice(0, 1000), answer: answer.slice(0, 200) })
    }
    dialog.accept(type === "prompt" ? answer : undefined).catch(() => {})
  }

  private broke(request: Request): void {
    this.underWay.delete(request)
    if (!request.isNavigationRequest()) return
    const error = request.failure()?.errorText ?? ""
    // What became a download, or was given up for another page, is no failure.
    if (error === "" || error.includes("ERR_ABORTED")) return
    const frame = request.frame()
    if (frame.parentFrame() === null && frame.page() === this.page) this.failed = { url: request.url(), error }
  }

  /** Ends downloads that grow too long, as the browser counts them. */
  private async bound(page: Page): Promise<void> {
    const session = await this.opened.context.newCDPSession(page)
    session.on("Page.downloadProgress", ({ receivedBytes, state }) => {
      if (state !== "inProgress" || receivedBytes <= downloadBytes) return
      for (const download of this.loading) if (download.page() === page) download.cancel().catch(() => {})
    })
    await session.send("Page.enable")
  }
}
