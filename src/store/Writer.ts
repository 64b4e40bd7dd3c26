/** The one writer of a run folder: lines are appended to their files and forced to disk in groups; each is answered when it is safe. */
import { writeSync } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { dirname } from "node:path"
import { Array, Effect, type Scope } from "effect"
import { storeError, syncFolder } from "./Disk.ts"
import type { StoreError } from "./Store.ts"

/** Where a line came to lie, in bytes of its file, without its line end. */
export interface Position {
  readonly offset: number
  readonly length: number
}

interface Waiting {
  readonly path: string
  readonly line: Buffer
  /** Called in the order of the lines of a file, before the next group is written. */
  readonly safe: (position: Position) => void
  readonly failed: (error: StoreError) => void
}

interface Open {
  readonly file: FileHandle
  size: number
}

export interface Writer {
  /** Appends a line; `entered` is called as soon as it is safe, even when the caller was interrupted meanwhile. */
  readonly append: (
    path: string,
    line: string,
    entered: (position: Position) => void
  ) => Effect.Effect<void, StoreError>
  /** No more lines come for this file. */
  readonly close: (path: string) => Effect.Effect<void>
}

const newline = Buffer.from("\n")

/** Into the page cache at once, which is cheaper than by way of the thread pool; what waits for the disk is the sync. */
const put = async (file: FileHandle, bytes: Buffer): Promise<void> => {
  for (let at = 0; at < bytes.length; ) at += writeSync(file.fd, bytes, at)
}

class Group {
  private waiting: globalThis.Array<Waiting> = []
  private readonly files = new Map<string, Open>()
  private readonly closing = new Set<string>()
  private working: Promise<void> | undefined

  add(line: Waiting): void {
    this.waiting.push(line)
    this.working ??= this.work()
  }

  retire(path: string): void {
    this.closing.add(path)
    this.working ??= this.work()
  }

  /** Waits for all that was handed over, then lets go of every file. */
  async end(): Promise<void> {
    while (this.working !== undefined) await this.working
    for (const { file } of this.files.values()) await file.close()
    this.files.clear()
  }

  private async work(): Promise<void> {
    // One turn of the event loop, so that rows that finish together share one trip to the disk.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.waiting.length > 0) {
      const byFile = Array.groupBy(this.waiting, ({ path }) => path)
      this.waiting = []
      await Promise.all(Object.entries(byFile).map(([path, lines]) => this.append(path, lines)))
    }
    for (const path of this.closing) {
      await this.files.get(path)?.file.close()
      this.files.delete(path)
    }
    this.closing.clear()
    this.working = undefined
    if (this.waiting.length > 0) this.working = this.work()
  }

  private append(path: string, lines: ReadonlyArray<Waiting>): Promise<void> {
    return this.write(path, lines).then(
      (positions) => {
        for (const [at, { safe }] of lines.entries()) safe(positions[at] ?? { offset: 0, length: 0 })
      },
      (cause: unknown) => {
        for (const { failed } of lines) failed(storeError(path)(cause))
      }
    )
  }

  private async write(path: string, lines: ReadonlyArray<Waiting>): Promise<ReadonlyArray<Position>> {
    const target = this.files.get(path) ?? (await this.open(path))
    const before = target.size
    const bytes = Buffer.concat(lines.flatMap(({ line }) => [line, newline]))
    await put(target.file, bytes)
      .then(() => target.file.datasync())
      // Half a line must not stay: what follows it would be lost with it.
      .catch((cause: unknown) => target.file.truncate(before).finally(() => Promise.reject(cause)))
    target.size = before + bytes.length
    let offset = before
    return lines.map(({ line }) => {
      const position = { offset, length: line.length }
      offset += line.length + 1
      return position
    })
  }

  private async open(path: string): Promise<Open> {
    const file = await open(path, "a")
    const { size } = await file.stat()
    const target = { file, size }
    this.files.set(path, target)
    await syncFolder(dirname(path))
    return target
  }
}

/** A writer that lets nothing go before it is on disk. */
export const make: Effect.Effect<Writer, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => new Group()),
    (group) => Effect.promise(() => group.end())
  ),
  (group) => ({
    append: (path, line, entered) =>
      Effect.async<void, StoreError>((resume) => {
        group.add({
          path,
          line: Buffer.from(line),
          safe: (position) => {
            entered(position)
            resume(Effect.void)
          },
          failed: (error) => resume(Effect.fail(error))
        })
      }).pipe(Effect.uninterruptible),
    close: (path) => Effect.sync(() => group.retire(path))
  })
)
