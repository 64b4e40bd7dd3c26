/** Files that pages give away: small ones go into the sandbox, of others the model hears. */
import { readFile, stat } from "node:fs/promises"
import { Effect } from "effect"
import type { Download } from "playwright-core"
import { Sandbox } from "../../sandbox/Sandbox.ts"
import { attempt, downloadBytes, PageError, within } from "./Source.ts"
import type { Window } from "./Window.ts"

/** Seconds that a download may take. */
const patience = 15
/** Downloads of one result; further ones are cancelled. */
const atMost = 5

/** A download as the model is told of it. */
export interface Told {
  readonly name: string
  readonly url: string
  /** Where it lies in the sandbox. */
  readonly path?: string
  readonly bytes?: number
  readonly error?: string
}

/** Waits for the downloads that began since the last time. */
export const collect = Effect.fn("Downloads.collect")(function* (window: Window) {
  const { downloads } = window
  window.downloads = []
  const told: Array<Told> = []
  for (const [at, download] of downloads.entries()) {
    const about = { name: nameOf(download), url: download.url().slice(0, 300) }
    const end = at < atMost ? keep(download, about.name, window) : new PageError({ detail: "too many at once" })
    told.push(
      yield* Effect.catchTag(end, "PageError", ({ detail, late }) => {
        const error = late ? `not complete within ${patience} seconds, cancelled` : `not kept: ${detail}`
        return Effect.as(
          attempt(5, () => download.cancel()),
          { ...about, error }
        )
      }).pipe(Effect.map((end): Told => ({ ...about, ...end })))
    )
  }
  return told.slice(0, 2 * atMost)
})

const keep = Effect.fnUntraced(function* (download: Download, name: string, window: Window) {
  if (!window.opened.downloads) {
    return yield* new PageError({ detail: "the browser runs elsewhere; fetch the address in another way" })
  }
  const failure = yield* within(patience, () => download.failure())
  const tooLong = `larger than ${downloadBytes / 1_000_000} MB`
  if (failure !== null) return yield* new PageError({ detail: failure === "canceled" ? tooLong : failure })
  const file = yield* within(5, () => download.path())
  const { size } = yield* within(5, () => stat(file))
  if (size > downloadBytes) return yield* new PageError({ detail: tooLong })
  const bytes = yield* within(5, () => readFile(file))
  const sandbox = yield* Sandbox
  const path = `${sandbox.cwd.replace(/\/$/, "")}/downloads/${name}`
  yield* Effect.catchTag(sandbox.write(path, bytes), "FileError", ({ detail }) => new PageError({ detail }))
  yield* attempt(5, () => download.delete())
  return { path, bytes: bytes.length }
})

/** A name that a file can have anywhere. */
const nameOf = (download: Download): string => {
  const name = download
    .suggestedFilename()
    .toWellFormed()
    .replace(/^.*[/\\]/, "")
    .replace(/[\u0000-\u001f\u007f]/g, "")
    .replace(/^\.+/, "")
  const ending = /\.[a-zA-Z0-9]{1,10}$/.exec(name)?.[0] ?? ""
  return name.length <= 100 ? name || "download" : `${name.slice(0, 80)}${ending}`
}
