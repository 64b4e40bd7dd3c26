/** Files that a run writes are no files to read from, or to write something else into. */
import { realpathSync, statSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Effect, Either } from "effect"
import * as RunFolder from "../store/RunFolder.ts"
import { UsageError } from "./UsageError.ts"

/** The path without links, also of a file that is not there yet. */
const real = (path: string): string =>
  Either.getOrElse(
    Either.try(() => realpathSync(path)),
    () => (dirname(path) === path ? path : join(real(dirname(resolve(path))), basename(path)))
  )

const same = (one: string, other: string): boolean =>
  real(one) === real(other) ||
  Either.getOrElse(
    Either.try(() => {
      const [a, b] = [statSync(one), statSync(other)]
      return a.isFile() && a.ino === b.ino && a.dev === b.dev
    }),
    () => false
  )

const isOwn = (path: string, folder: string): boolean => {
  const name = basename(real(path))
  return dirname(real(path)) === real(folder) && (RunFolder.isOurs(name) || name.startsWith("."))
}

/** A data set that the run itself would write over. */
export const refuseDataset = (path: string, folder: string): Effect.Effect<void, UsageError> =>
  isOwn(path, folder)
    ? new UsageError({
        detail: `--dataset_file: ${path} is one of the files that the run ${basename(folder)} writes; copy it elsewhere, or give another --run_name`
      })
    : Effect.void

/** Happenings in the middle of what the run reads or writes. */
export const refuseEvents = (path: string, dataset: string, folder: string): Effect.Effect<void, UsageError> => {
  const detail = same(path, dataset)
    ? `--events: ${path} is the data set; give a file of its own`
    : isOwn(path, folder)
      ? `--events: ${path} is one of the files that the run ${basename(folder)} writes; give another name`
      : undefined
  return detail === undefined ? Effect.void : new UsageError({ detail })
}
