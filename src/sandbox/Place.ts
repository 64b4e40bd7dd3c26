/** The folders of local sandboxes on the host: named after their owner, removed with it, and after a dead owner too. */
import { execFile } from "node:child_process"
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import * as Owner from "./Owner.ts"
import * as Proc from "./Proc.ts"
import { type Cleaned, cleaned, SandboxError } from "./Sandbox.ts"

const prefix = "batch-runner-"

let layers = 0

/** Folder of one runner's sandboxes below `root`: `batch-runner-<owner>-<n>`. */
export const base = (root: string): string => join(root, `${prefix}${Owner.here()}-${layers++}`)

/** Whether the owner that a folder's name tells of is dead for certain. */
export const abandoned = (name: string): boolean => name.startsWith(prefix) && Owner.isDead(name.slice(prefix.length))

/** Makes folders of one place, readable by nobody else. */
export const make = (folder: string, parts: ReadonlyArray<string>): Effect.Effect<void, SandboxError> =>
  Effect.try({
    try: () => {
      for (const part of parts) mkdirSync(join(folder, part), { recursive: true, mode: 0o700 })
    },
    catch: (cause) =>
      new SandboxError({
        reason: "StartFailed",
        detail: `The sandbox's folder ${folder} could not be made: ${cause instanceof Error ? cause.message : cause}`
      })
  })

/** Writes a file of a place's own, such as its list of users. */
export const put = (path: string, text: string): Effect.Effect<void, SandboxError> =>
  Effect.try({
    try: () => writeFileSync(path, text),
    catch: (cause) => new SandboxError({ reason: "StartFailed", detail: `${path} could not be written: ${cause}` })
  })

const limit = 20_000

/**
 * Removes a folder with all it holds, also where modes forbid it or paths are longer than a system call takes; gives up
 * after 20 seconds. A program does it, for it must not keep our threads busy.
 */
export const remove = (folder: string): Effect.Effect<void> =>
  Effect.async((resume) => {
    const script = 'rm -rf -- "$1" 2>/dev/null || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; } 2>/dev/null'
    const options = { timeout: limit, killSignal: "SIGKILL", env: { PATH: process.env.PATH ?? "" } } as const
    Either.match(
      Either.try(() => execFile("/bin/sh", ["-c", script, "sh", folder], options, () => resume(Effect.void))),
      {
        onLeft: () => {
          Either.try(() => rmSync(folder, { recursive: true, force: true }))
          resume(Effect.void)
        },
        onRight: () => {}
      }
    )
  })

/**
 * Ends what dead runners left: a bubblewrap whose parent dies before it may go on waits for ever. No other process is looked
 * at: one that is stuck in the kernel would hold us up as long.
 */
const endAbandoned = () => {
  for (const { pid, call } of Proc.list((pid) => Proc.program(pid) === "bwrap")) {
    if (call !== undefined && abandoned(call)) Proc.signal(pid, "SIGKILL")
  }
}

/** Removes what dead runners left below `root`, and the processes that they left on this machine */
export const removeAbandoned = (root: string): Effect.Effect<Cleaned> =>
  Effect.suspend(() => {
    endAbandoned()
    const names = Either.getOrElse(
      Either.try(() => readdirSync(root)),
      () => []
    )
    const found = names.filter(abandoned).slice(0, 1000)
    return Effect.as(
      Effect.forEach(found, (name) => remove(join(root, name)), { discard: true }),
      cleaned(found.length, "folder of local sandboxes", "folders of local sandboxes")
    )
  })
