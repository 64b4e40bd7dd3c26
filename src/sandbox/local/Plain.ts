/** A plain folder as a sandbox, where there is no bubblewrap: processes are kept apart by marks, files are not. */
import { Effect } from "effect"
import type { Space } from "../Host.ts"
import * as Proc from "../Proc.ts"
import { within } from "./System.ts"

export interface Options {
  /** Unique on this machine; the marks of its calls are `<id>.<n>`. */
  readonly id: string
  /** The place's folder: a process at work in it belongs to the session. */
  readonly place: string
  readonly env: Record<string, string>
}

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** The environment of every command. */
export const environment = (home: string, tmp: string): Record<string, string> => ({
  PATH: `${home}/.local/bin:${path}`,
  HOME: home,
  TMPDIR: tmp,
  LANG: "C.UTF-8",
  TERM: "dumb"
})

/** Opens the space; nothing runs until the first command. */
export const open = (options: Options): Space => {
  const owned = (wanted: (call: string | undefined, pid: number) => boolean): ReadonlyArray<number> => {
    const processes = Proc.list(() => true)
    const owner = Proc.owners(processes)
    return processes.flatMap((one) => (wanted(owner(one), one.pid) ? [one.pid] : []))
  }
  return {
    alive: () => true,
    argv: (inside) => inside,
    fds: [],
    env: options.env,
    host: options.place,
    strays: (call) => owned((by) => by === call),
    crowded: () => false,
    end: Effect.asVoid(
      Proc.reap(() =>
        owned(
          (by, pid) =>
            by?.startsWith(`${options.id}.`) === true || within(Proc.workingDirectory(pid) ?? "", options.place)
        )
      )
    )
  }
}
