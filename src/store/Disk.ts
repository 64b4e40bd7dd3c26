/** Files that are either wholly there or not: replaced in one step and forced to disk, with errors that people can act on. */
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Effect } from "effect"
import { StoreError } from "./Store.ts"

const codeOf = (cause: unknown): string => (cause instanceof Error && "code" in cause ? String(cause.code) : "")

/** What went wrong with a path, as one line. */
export const storeError =
  (path: string) =>
  (cause: unknown): StoreError => {
    if (cause instanceof StoreError) return cause
    const code = codeOf(cause)
    if (code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG") {
      return new StoreError({
        reason: "NoSpace",
        detail: `${path}: no space left on the disk; free some, then go on with --resume`
      })
    }
    if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
      return new StoreError({ reason: "NotAllowed", detail: `${path}: not allowed to this user (${code})` })
    }
    const text = cause instanceof Error ? cause.message : String(cause)
    return new StoreError({ reason: "Other", detail: `${path}: ${text.replace(/\s+/g, " ")}` })
  }

/** Why the folder of a run cannot be made, as one line. */
export const folderError =
  (path: string) =>
  (cause: unknown): StoreError => {
    const code = codeOf(cause)
    return code === "EEXIST" || code === "ENOTDIR"
      ? new StoreError({
          reason: "NotAllowed",
          detail: `--output_dir: the folder ${path} cannot be made, as a file is in its way; give another one, or another --run_name`
        })
      : storeError(path)(cause)
  }

/** Makes a folder with its parents; Node's own recursive `mkdir` never returns where a file system refuses with ENOENT (autofs, /proc). */
export const makeFolder = (path: string): Promise<void> =>
  mkdir(path).catch(async (cause: unknown) => {
    if (codeOf(cause) === "ENOENT" && dirname(path) !== path) {
      await makeFolder(dirname(path))
      return mkdir(path)
    }
    if (codeOf(cause) === "EEXIST" && (await stat(path)).isDirectory()) return
    throw cause
  })

/** Forces the names in a folder to disk. */
export const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(path, "r")
  await folder.sync().finally(() => folder.close())
}

const fill = async (path: string, write: (file: FileHandle) => Promise<void>): Promise<void> => {
  const file = await open(path, "w")
  await write(file)
    .then(() => file.sync())
    .finally(() => file.close())
}

/** Replaces a file by what `write` puts into a new one; on failure the old one stays. */
export const replaceWith = (
  path: string,
  write: (file: FileHandle) => Promise<void>
): Effect.Effect<void, StoreError> => {
  const fresh = join(dirname(path), `.${basename(path)}.new`)
  return Effect.tryPromise({
    try: async () => {
      await fill(fresh, write)
      await rename(fresh, path)
      await syncFolder(dirname(path))
    },
    catch: storeError(path)
  }).pipe(Effect.tapError(() => Effect.promise(() => rm(fresh, { force: true }).catch(() => undefined))))
}

/** Replaces a file by a text. */
export const replace = (path: string, text: string): Effect.Effect<void, StoreError> =>
  replaceWith(path, (file) => file.writeFile(text))
