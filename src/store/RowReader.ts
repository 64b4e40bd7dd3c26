/** Copies lines from many files into one in a given order, with memory for a few lines at a time. */
import { closeSync, openSync, readSync } from "node:fs"
import type { FileHandle } from "node:fs/promises"

export interface Where {
  readonly path: string
  readonly offset: number
  readonly length: number
}

const openAtMost = 64
const block = 1 << 20

/** Descriptors of the files read last. */
class Readers {
  private readonly files = new Map<string, number>()

  read({ path, offset, length }: Where): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    let got = 0
    while (got < length) {
      const more = readSync(this.descriptor(path), bytes, got, length - got, offset + got)
      if (more === 0) break
      got += more
    }
    return bytes.subarray(0, got)
  }

  close(): void {
    for (const descriptor of this.files.values()) closeSync(descriptor)
    this.files.clear()
  }

  private descriptor(path: string): number {
    const open = this.files.get(path)
    if (open !== undefined) return open
    if (this.files.size >= openAtMost) this.close()
    const descriptor = openSync(path, "r")
    this.files.set(path, descriptor)
    return descriptor
  }
}

/** `each` may change a line; lines are ended in `to`. */
export const copy = async (job: {
  readonly lines: Iterable<number>
  readonly where: (line: number) => Where
  readonly each: (bytes: Buffer, line: number) => Buffer
  readonly to: FileHandle
}): Promise<void> => {
  const readers = new Readers()
  const newline = Buffer.from("\n")
  const run = async () => {
    let parts: Array<Buffer> = []
    let size = 0
    for (const line of job.lines) {
      const bytes = job.each(readers.read(job.where(line)), line)
      parts.push(bytes, newline)
      size += bytes.length + 1
      if (size < block) continue
      await job.to.appendFile(Buffer.concat(parts))
      parts = []
      size = 0
    }
    await job.to.appendFile(Buffer.concat(parts))
  }
  await run().finally(() => readers.close())
}
