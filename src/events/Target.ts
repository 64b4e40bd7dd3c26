/** Where lines of happenings go, by what it is: a file that is appended to, a pipe that is never waited for, a stream of our own. */
import { closeSync, constants, fstatSync, openSync, readSync, statSync, write } from "node:fs"
import { Effect, Either, Schema } from "effect"

/** A path that no lines can go to. */
export class TargetError extends Schema.TaggedError<TargetError>()("TargetError", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

/** What became of one write. */
export type Written =
  | { readonly _tag: "Wrote"; readonly bytes: number }
  /** It takes nothing just now. */
  | { readonly _tag: "Busy" }
  /** A pipe that nobody reads. */
  | { readonly _tag: "Readerless" }
  /** The path is no longer that of the file, and a new one was made; nothing was written. */
  | { readonly _tag: "Moved" }
  | { readonly _tag: "Failed"; readonly why: string }

export interface Target {
  /** Writes some of these bytes, which hold something. */
  readonly write: (next: Buffer) => Effect.Effect<Written>
  readonly close: Effect.Effect<void>
}

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

const refused = (path: string, why: string) =>
  new TargetError({ detail: `--events: ${path} cannot be written: ${why}` })

const attempt = <A>(use: () => A): Either.Either<A, string> => Either.try({ try: use, catch: codeOf })

/** A write that waits in the thread pool, if anywhere. */
const put = (fd: number, bytes: Buffer): Effect.Effect<Written> =>
  Effect.async((resume) =>
    write(fd, bytes, 0, bytes.length, null, (error, count) =>
      resume(Effect.succeed(error === null ? { _tag: "Wrote", bytes: count } : failed(codeOf(error))))
    )
  )

const failed = (code: string): Written => {
  if (code === "EAGAIN") return { _tag: "Busy" }
  return code === "EPIPE" || code === "ENXIO" ? { _tag: "Readerless" } : { _tag: "Failed", why: code }
}

/** Opens what `path` names for appending, or makes a file of that name. */
export const open = (path: string): Effect.Effect<Target, TargetError> =>
  Effect.suspend(() => {
    const own = ownStream(path)
    if (own !== undefined) return Effect.succeed(stream(own))
    const found = attempt(() => statSync(path))
    if (Either.isLeft(found)) return found.left === "ENOENT" ? file(path) : refused(path, found.left)
    if (found.right.isFIFO()) return pipe(path)
    if (found.right.isFile()) return file(path)
    if (found.right.isCharacterDevice()) return device(path)
    return refused(path, `it is ${found.right.isDirectory() ? "a folder" : "no file, pipe or terminal"}`)
  })

/** Standard output or error by a name of it, where only its own descriptor does: a second one would overwrite what the first writes. */
const ownStream = (path: string): number | undefined => {
  const name = /^\/(?:dev|proc\/self)\/(?:std(out|err)|fd\/([12]))$/.exec(path)
  if (name === null) return
  const fd = name[1] === "out" || name[2] === "1" ? 1 : 2
  const found = attempt(() => fstatSync(fd))
  return Either.isRight(found) && (found.right.isFile() || found.right.isSocket()) ? fd : undefined
}

const stream = (fd: number): Target => ({ write: (next) => put(fd, next), close: Effect.void })

const device = (path: string): Effect.Effect<Target, TargetError> =>
  Either.match(
    attempt(() => openSync(path, O_WRONLY | O_NONBLOCK | O_NOCTTY)),
    {
      onLeft: (why) => refused(path, why),
      onRight: (fd) => Effect.succeed({ write: (next) => put(fd, next), close: closing(fd) })
    }
  )

const closing = (fd: number) => Effect.sync(() => void attempt(() => closeSync(fd)))

/** A named pipe is opened as soon as it has a reader: to wait for one in `open` is a wait that nothing can end. */
const pipe = (path: string): Effect.Effect<Target, TargetError> =>
  Either.match(
    attempt(() => openSync(path, O_WRONLY | O_NONBLOCK)),
    {
      onLeft: (why) => (why === "ENXIO" ? Effect.succeed(reopening(path, -1)) : refused(path, why)),
      onRight: (fd) => Effect.succeed(reopening(path, fd))
    }
  )

const reopening = (path: string, first: number): Target => {
  let fd = first
  const close = Effect.suspend(() => {
    const old = fd
    fd = -1
    return old < 0 ? Effect.void : closing(old)
  })
  return {
    write: (next) =>
      Effect.suspend(() => {
        if (fd < 0) {
          const again = attempt(() => openSync(path, O_WRONLY | O_NONBLOCK))
          if (Either.isLeft(again)) return Effect.succeed(failed(again.left))
          fd = again.right
        }
        return Effect.tap(put(fd, next), ({ _tag }) => (_tag === "Readerless" ? close : Effect.void))
      }),
    close
  }
}

/** Opened, with what is known of it. A last line that has no end gets one before anything else. */
const opened = (path: string) => {
  const fd = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o666)
  const { dev, ino, size } = fstatSync(fd)
  return { fd, dev, ino, torn: size > 0 && lastByte(path, size) !== 10 }
}

const lastByte = (path: string, size: number): number | undefined => {
  const last = Buffer.alloc(1)
  const reading = attempt(() => openSync(path, constants.O_RDONLY))
  if (Either.isLeft(reading)) return 10
  const read = attempt(() => readSync(reading.right, last, 0, 1, size - 1))
  closeSync(reading.right)
  return Either.isRight(read) ? last[0] : 10
}

const newline = Buffer.from("\n")

const file = (path: string): Effect.Effect<Target, TargetError> =>
  Either.match(
    attempt(() => opened(path)),
    { onLeft: (why) => refused(path, why), onRight: (first) => Effect.succeed(appending(path, first)) }
  )

const appending = (path: string, first: ReturnType<typeof opened>): Target => {
  let now = first
  /** Whether what was written last is a whole line. */
  let whole = true
  const isThere = () => {
    const found = attempt(() => statSync(path))
    return Either.isRight(found) && found.right.ino === now.ino && found.right.dev === now.dev
  }
  const moved = Effect.suspend(() => {
    const again = attempt(() => opened(path))
    if (Either.isLeft(again)) return Effect.succeed<Written>({ _tag: "Failed", why: again.left })
    const old = now.fd
    now = again.right
    whole = true
    return Effect.as(closing(old), { _tag: "Moved" } as const)
  })
  const noted = (next: Buffer, result: Written): Written => {
    if (result._tag === "Wrote") whole = next[result.bytes - 1] === 10
    // What comes next is another line.
    if (result._tag === "Failed") now = { ...now, torn: now.torn || !whole }
    return result
  }
  const ended = (result: Written): Written => {
    if (result._tag !== "Wrote") return result
    now = { ...now, torn: false }
    whole = true
    return { _tag: "Wrote", bytes: 0 }
  }
  return {
    write: (next) =>
      Effect.suspend(() => {
        if (!isThere()) return moved
        return now.torn
          ? Effect.map(put(now.fd, newline), ended)
          : Effect.map(put(now.fd, next), (result) => noted(next, result))
      }),
    close: Effect.suspend(() => closing(now.fd))
  }
}
