/** A data set file as something that any part of can be read at any time: pipes are copied and gzip is unpacked to a scratch file. */
import { constants, openSync, rmSync, type Stats } from "node:fs"
import { type FileHandle, mkdtemp, open, stat } from "node:fs/promises"
import { Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { DatasetError } from "./Dataset.ts"
import * as Lines from "./Lines.ts"

/** Why a file cannot be read, as one line. */
export const unreadable = (path: string) => (cause: unknown) => {
  const text = cause instanceof Error ? cause.message : String(cause)
  const missing = text.startsWith("ENOENT")
  return new DatasetError({
    reason: missing ? "NotFound" : "Unreadable",
    detail: missing
      ? `--dataset_file: there is no file ${path}`
      : `--dataset_file: ${path} cannot be read: ${text.replace(/\s+/g, " ")}`
  })
}

const openFile = (path: string, flags: string): Effect.Effect<FileHandle, DatasetError, Scope.Scope> =>
  Effect.acquireRelease(Effect.tryPromise({ try: () => open(path, flags), catch: unreadable(path) }), (file) =>
    Effect.promise(() => file.close())
  )

/** A scratch file that is gone from the file system already and lives as long as it is open. */
const scratchFile = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => mkdtemp(join(tmpdir(), "batch-runner-dataset-")), catch: unreadable(tmpdir()) }),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  return yield* openFile(join(folder, "rows.jsonl"), "w+")
})

/** Copies what can be read only once to a scratch file. */
const spool = (path: string, chunks: AsyncIterable<Buffer>) =>
  Effect.gen(function* () {
    const scratch = yield* scratchFile
    yield* Effect.tryPromise({
      try: async (signal) => {
        for await (const chunk of chunks) {
          if (signal.aborted) return
          await scratch.appendFile(chunk)
        }
      },
      catch: unreadable(path)
    })
    return scratch
  })

/** What a pipe brings, without a wait that nothing can end: to open one blocks until there is a writer, to listen to it does not. */
const listened = (path: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), writable: false }),
      catch: unreadable(path)
    }),
    (pipe) => Effect.sync(() => pipe.destroy())
  )

/** The file's text where any part of it can be read at any time: a pipe is copied, gzip is unpacked. */
export const seekable = (path: string): Effect.Effect<FileHandle, DatasetError, Scope.Scope> =>
  Effect.gen(function* () {
    const { kind } = yield* Effect.tryPromise({ try: () => stat(path).then(kindOf), catch: unreadable(path) })
    if (kind === "folder" || kind === "device") {
      return yield* new DatasetError({
        reason: "Unreadable",
        detail: `--dataset_file: ${path} is a ${kind}, a JSONL file is needed`
      })
    }
    const file = kind === "pipe" ? yield* spool(path, yield* listened(path)) : yield* openFile(path, "r")
    const mark = Buffer.alloc(2)
    yield* Effect.tryPromise({ try: () => file.read(mark, 0, 2, 0), catch: unreadable(path) })
    return mark[0] === 0x1f && mark[1] === 0x8b ? yield* spool(path, Lines.contents(file, true)) : file
  })

const kindOf = (found: Stats) => ({
  kind: found.isDirectory()
    ? ("folder" as const)
    : found.isCharacterDevice() || found.isBlockDevice()
      ? ("device" as const)
      : found.isFIFO() || found.isSocket()
        ? ("pipe" as const)
        : ("file" as const)
})
