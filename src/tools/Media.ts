/** What tools make, kept under the run folder by content: each file is there once, and whole. */
import { createHash } from "node:crypto"
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises"
import { basename, join } from "node:path"
import { Clock, Effect, Predicate, Random } from "effect"
import { ToolFailure } from "./Tool.ts"

export interface Media {
  /**
   * Keeps the bytes as `<first 32 hex digits of their SHA-256>.<extension>` and gives the path from the run folder,
   * such as `media/….png`; undefined when nothing is kept.
   */
  readonly keep: (bytes: Uint8Array, extension: string) => Effect.Effect<string | undefined, ToolFailure>
}

/** The hash by which a content is known. */
export const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex").slice(0, 32)

/** Files that are being written have names that begin so. */
const unfinished = ".part-"

/** Milliseconds after which what a killed process left unfinished is removed: no write takes so long. */
const abandoned = 60 * 60 * 1000

const codeOf = (cause: unknown): string => (Predicate.hasProperty(cause, "code") ? String(cause.code) : String(cause))

const fullDisk = new Set(["ENOSPC", "EDQUOT", "EFBIG"])

const failed = (cause: unknown): ToolFailure => {
  const code = codeOf(cause)
  return new ToolFailure({
    error: fullDisk.has(code)
      ? "the result cannot be kept: no space is left on the disk of the run; go on without it"
      : `the result cannot be kept in the folder of the run (${code}); go on without it`
  })
}

/** Keeps in `folder`, which is made when it is needed; with an empty name nothing is kept. */
export const make = (folder: string): Media => {
  if (folder === "") return { keep: () => Effect.succeed(undefined) }
  let writes = 0
  const keep = Effect.fn("Media.keep")(function* (bytes: Uint8Array, extension: string) {
    const name = `${hashOf(bytes)}.${extension}`
    const now = yield* Clock.currentTimeMillis
    const chance = yield* Random.nextIntBetween(0, 2 ** 31)
    const first = writes === 0
    const part = join(folder, `${unfinished}${process.pid}-${writes++}-${chance}`)
    yield* Effect.uninterruptible(
      Effect.tryPromise({
        try: async () => {
          await makeFolder(folder)
          if (first) await sweep(folder, now - abandoned)
          await write(folder, join(folder, name), part, bytes)
        },
        catch: failed
      })
    )
    return `${basename(folder)}/${name}`
  })
  return { keep }
}

const makeFolder = (folder: string): Promise<unknown> =>
  mkdir(folder).catch(async (cause: unknown) => {
    if (codeOf(cause) === "ENOENT") return mkdir(folder, { recursive: true })
    if (codeOf(cause) === "EEXIST" && (await stat(folder)).isDirectory()) return
    throw cause
  })

/** Removes what was left unfinished before `before`. */
const sweep = async (folder: string, before: number): Promise<void> => {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(unfinished)) continue
    const path = join(folder, name)
    // Another process may be quicker.
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < before) await rm(path, { force: true })
  }
}

/** Whoever else writes the same writes the same bytes: the last one to rename changes nothing. */
const write = async (folder: string, path: string, part: string, bytes: Uint8Array): Promise<void> => {
  const there = await stat(path).catch(() => undefined)
  if (there?.isFile() === true && there.size === bytes.length) return
  const file = await open(part, "wx", 0o644)
  await file
    .writeFile(bytes)
    .then(() => file.sync())
    .finally(() => file.close())
    .then(() => rename(part, path))
    .catch(async (cause: unknown) => {
      await rm(part, { force: true }).catch(() => undefined)
      throw cause
    })
  const names = await open(folder, "r")
  await names.sync().finally(() => names.close())
}
