/**
 * Pipes between us and a command, as named pipes that lose their name at once. Node's own are sockets, and on a socket
 * `echo x > /dev/stderr` and `cat /dev/stdin` fail inside the command.
 */
import { execFile } from "node:child_process"
import { closeSync, constants, mkdirSync, openSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import { SandboxError } from "./Sandbox.ts"

/** Descriptors of a pipe's two ends. `theirs` blocks, as commands expect; `ours` does not. */
export interface Ends {
  readonly ours: number
  readonly theirs: number
}

export interface Pool {
  /** A pipe that we read. */
  readonly output: Effect.Effect<Ends, SandboxError>
  /** A pipe that we write. */
  readonly input: Effect.Effect<Ends, SandboxError>
  /** A descriptor from which a command reads `bytes`. */
  readonly holding: (bytes: Uint8Array) => Effect.Effect<number, SandboxError>
}

/** Pipes made by one run of `mkfifo`. */
const batch = 64

/** Closes a descriptor that may be closed already. */
export const close = (fd: number): void => {
  Either.try(() => closeSync(fd))
}

const failed = (detail: string) => new SandboxError({ reason: "StartFailed", detail })

/** Pipes are made in `folder`, which is made when the first is wanted. */
export const pool = (folder: string): Pool => {
  const gate = Effect.unsafeMakeSemaphore(1)
  const ready: Array<string> = []
  let made = 0

  const fill = Effect.async<void, SandboxError>((resume) => {
    Either.try(() => mkdirSync(folder, { recursive: true, mode: 0o700 }))
    const paths = Array.from({ length: batch }, () => join(folder, `${made++}`))
    execFile("mkfifo", ["-m", "600", ...paths], { env: { PATH: process.env.PATH ?? "" } }, (error) => {
      if (error === null) ready.push(...paths)
      resume(error === null ? Effect.void : Effect.fail(failed(`No pipe could be made in ${folder}: ${error.message}`)))
    })
  })

  const take = gate.withPermits(1)(
    Effect.uninterruptible(
      Effect.gen(function* () {
        if (ready.length === 0) yield* fill
        return ready.pop() ?? ""
      })
    )
  )

  /** Opens in the given order, and closes what was opened when one of them fails. */
  const open = (use: (opening: (path: string, flags: number) => number) => Ends, path: string) => {
    const opened: Array<number> = []
    return Effect.try({
      try: () =>
        use((name, flags) => {
          const fd = openSync(name, flags, 0o600)
          opened.push(fd)
          return fd
        }),
      catch: (cause) => failed(`A pipe for a command could not be opened: ${cause}`)
    }).pipe(
      Effect.tapError(() => Effect.sync(() => opened.forEach(close))),
      Effect.ensuring(Effect.sync(() => void Either.try(() => unlinkSync(path))))
    )
  }

  const { O_CREAT, O_EXCL, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
  return {
    output: Effect.flatMap(take, (path) =>
      open((opening) => {
        const ours = opening(path, O_RDONLY | O_NONBLOCK)
        return { ours, theirs: opening(path, O_WRONLY) }
      }, path)
    ),
    input: Effect.flatMap(take, (path) =>
      open((opening) => {
        // A first reader lets us open the other end without waiting; theirs is opened anew, without O_NONBLOCK.
        const first = opening(path, O_RDONLY | O_NONBLOCK)
        const ours = opening(path, O_WRONLY | O_NONBLOCK)
        const theirs = opening(path, O_RDONLY)
        close(first)
        return { ours, theirs }
      }, path)
    ),
    holding: (bytes) => {
      const path = join(folder, `in-${made++}`)
      return open((opening) => {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        const ours = opening(path, O_WRONLY | O_CREAT | O_EXCL)
        writeFileSync(ours, bytes)
        const theirs = opening(path, O_RDONLY)
        close(ours)
        return { ours, theirs }
      }, path).pipe(Effect.map((ends) => ends.theirs))
    }
  }
}
