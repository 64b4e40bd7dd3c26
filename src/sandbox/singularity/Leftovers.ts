/** What dead runners left on this machine, and how it is cleared away: instances, their folders, images half converted. */
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { hostname } from "node:os"
import { basename, join } from "node:path"
import { Effect, Either, type Scope } from "effect"
import * as Child from "../Child.ts"
import * as Owner from "../Owner.ts"
import * as Place from "../Place.ts"
import * as Proc from "../Proc.ts"
import { type Cleaned, cleaned } from "../Sandbox.ts"
import * as Members from "./Members.ts"

const prefix = "batch-runner-singularity-"

let layers = 0

/** Name of one runner's folder of sandboxes, which begins the names of its instances too. */
export const name = (): string => `${prefix}${Owner.here()}-${layers++}`

const abandoned = (name: string): boolean => name.startsWith(prefix) && Owner.isDead(name.slice(prefix.length))

// Caches are shared between machines, and process numbers say nothing about another machine's processes.
const machine = hostname().replaceAll(/[^\w.]/g, "_")

let parts = 0

/** Name of a folder in the cache where an image is being converted. */
export const partName = (): string => `part-${Owner.here()}-${parts++}@${machine}`

const abandonedPart = (name: string): boolean =>
  name.startsWith("part-") && name.endsWith(`@${machine}`) && Owner.isDead(name.slice("part-".length))

const entries = (folder: string): ReadonlyArray<string> =>
  Either.getOrElse(
    Either.try(() => readdirSync(folder)),
    () => []
  )

/** Removes what dead runners left: instances, folders below `root`, half-converted images in `cache`. */
export const remove = ({ root, cache }: { readonly root: string; readonly cache: string }): Effect.Effect<Cleaned> =>
  Effect.gen(function* () {
    const instances = Members.list(abandoned)
    yield* Effect.forEach(instances, Members.end, { concurrency: 8, discard: true })
    const folders = entries(root).filter(abandoned)
    yield* Effect.forEach(folders, (folder) => Place.remove(join(root, folder)), { discard: true })
    const halves = entries(cache).filter(abandonedPart)
    yield* Effect.forEach(halves, (half) => Place.remove(join(cache, half)), { discard: true })
    return [
      ...cleaned(instances.length, "Singularity instance"),
      ...cleaned(folders.length, "folder of Singularity sandboxes", "folders of Singularity sandboxes"),
      ...cleaned(halves.length, "half-converted image")
    ]
  })

// An instance is known by its keeper's title. With its first process the kernel ends all others, and the keeper clears away;
// where the system does not tell a keeper's children, it is ended itself, and they with it.
const watch = `
cat >/dev/null 2>&1
for c in /proc/[0-9]*/comm; do
  read -r n < "$c" || continue
  case $n in starter*) ;; *) continue;; esac
  k=\${c%/comm}
  case $(tr '\\0' ' ' < "$k/cmdline") in *"nstance: "*"[$1-"*) ;; *) continue;; esac
  p=$(cat "$k"/task/*/children)
  kill -9 \${p:-\${k#/proc/}}
done 2>/dev/null
`

/**
 * Sees to it that no instance below `base` outlives this process, however it dies: a shell waits for the end of a pipe that
 * only we hold, and ends them then.
 */
export const guard = (base: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const started = Either.try(() =>
        spawn("/bin/sh", ["-c", watch, "sh", basename(base)], {
          env: { PATH: process.env.PATH ?? "", [Proc.marker]: "batch-runner-guard" },
          cwd: "/",
          detached: true,
          stdio: Child.shielded(["pipe", "ignore", "ignore"])
        })
      )
      if (Either.isLeft(started)) return undefined
      started.right.on("error", () => {})
      started.right.stdin?.on("error", () => {})
      started.right.unref()
      return started.right
    }),
    (process) =>
      Effect.sync(() => {
        if (process?.pid !== undefined) Proc.signal(-process.pid, "SIGKILL")
        process?.stdin?.destroy()
      })
  ).pipe(Effect.asVoid)
