/**
 * A session's bubblewrap namespace: one process holds it open, and each command joins it by `nsenter`, at half the price of
 * bubblewrap for each. It needs `bwrap`, and `nsenter`, `setpriv` and `setsid` of util-linux.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, openSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Readable } from "node:stream"
import { Effect, Either } from "effect"
import * as Child from "../Child.ts"
import * as Fifo from "../Fifo.ts"
import * as Host from "../Host.ts"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"

export interface Options {
  /** Unique on this machine. */
  readonly id: string
  /** Arguments of bubblewrap that lay out the file system. */
  readonly layout: ReadonlyArray<string>
  readonly network: boolean
  readonly env: Record<string, string>
  readonly pipes: Fifo.Pool
}

/** Milliseconds for a namespace to come up. */
const limit = 10_000

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Inside one is no root: a program that is started there has no capabilities, whoever the runner is.
const identity = ["--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--hostname", "sandbox"]
const unshared = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]

const failed = (detail: string) => new SandboxError({ reason: "StartFailed", detail })

/** Where a program of the system lies: the runner's own PATH is no matter, and that of the commands is theirs to fill. */
const find = (program: string): Effect.Effect<string, SandboxError> => {
  const found = path.split(":").find((folder) => {
    return Either.isRight(Either.try(() => accessSync(join(folder, program), constants.X_OK)))
  })
  return found === undefined ? failed(`${program} is not installed`) : Effect.succeed(join(found, program))
}

/** Whether we may join any namespace as we are: root on the machine may, root in a container often may not. */
const mighty = (): boolean => {
  const status = Either.getOrElse(
    Either.try(() => readFileSync("/proc/self/status", "latin1")),
    () => ""
  )
  const effective = BigInt(`0x${/CapEff:\s*([0-9a-f]+)/.exec(status)?.[1] ?? "0"}`)
  const needed = (1n << 21n) | (1n << 18n) // CAP_SYS_ADMIN, CAP_SYS_CHROOT
  return process.geteuid?.() === 0 && (effective & needed) === needed
}

/** The process id that bubblewrap reports on its information pipe; undefined when it ends without. */
const childPid = (pipe: Readable): Promise<number | undefined> =>
  new Promise((resolve) => {
    let text = ""
    pipe.on("data", (data) => {
      text += data
      const found = /"child-pid": *(\d+)/.exec(text)?.[1]
      if (found !== undefined) resolve(Number(found))
    })
    pipe.on("error", () => resolve(undefined))
    pipe.on("close", () => resolve(undefined))
  })

/** Settled with true when the first line came. */
const firstLine = (pipe: Readable): Promise<boolean> =>
  new Promise((resolve) => {
    pipe.once("data", () => resolve(true))
    pipe.on("error", () => resolve(false))
    pipe.on("close", () => resolve(false))
  })

const isReadable = (stream: unknown): stream is Readable =>
  typeof stream === "object" && stream !== null && "readable" in stream

/** Asks the operating system for descriptors of namespaces; closes those it got when one is refused. */
const descriptors = (paths: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<number>, SandboxError> =>
  Effect.suspend(() => {
    const opened = paths.map((one) => Either.try(() => openSync(one, "r")))
    const fds = opened.flatMap((one) => (Either.isRight(one) ? [one.right] : []))
    if (fds.length === paths.length) return Effect.succeed(fds)
    fds.forEach(Fifo.close)
    return failed(`The sandbox's namespace could not be opened: ${opened.find(Either.isLeft)?.left}`)
  })

interface Holder {
  readonly process: ChildProcess
  /** The first process inside, by its number outside. */
  readonly pid: number
  /** A process in the user namespace around the session's own; undefined when there is none. */
  readonly outer: number | undefined
}

// An ordinary user may join all parts of the session's namespace only as root of a user namespace around it.
const around = ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--dev-bind", "/", "/"]

const hold = (options: Options): Effect.Effect<Holder, SandboxError> =>
  Effect.gen(function* () {
    const bwrap = yield* find("bwrap")
    const direct = mighty()
    // On its command line, which the commands can read, the layout would show paths of the host.
    const layout = yield* options.pipes.holding(Buffer.from(options.layout.map((word) => `${word}\0`).join("")))
    const argv = [
      ...(direct ? [] : [...around, "--die-with-parent", "--info-fd", "4", "--", bwrap]),
      ...[...unshared, ...(options.network ? [] : ["--unshare-net"]), ...identity],
      ...["--die-with-parent", "--new-session", "--args", "5", "--info-fd", "3"],
      // Its word says that all is in place; the end of its input, which we hold, ends it.
      ...["--", "/bin/sh", "-c", "echo; exec cat >/dev/null 2>&1 3<&- 4<&- 5<&-"]
    ]
    const process = yield* Effect.try({
      try: () =>
        spawn(bwrap, argv, {
          // PID 1 inside shows its environment to the commands.
          env: { PATH: path, [Proc.marker]: `${options.id}.0` },
          cwd: "/",
          detached: true,
          stdio: Child.shielded(["pipe", "pipe", "pipe", "pipe", direct ? "ignore" : "pipe", layout])
        }),
      catch: (cause) => failed(`bwrap could not be started: ${cause}`)
    }).pipe(Effect.ensuring(Effect.sync(() => Fifo.close(layout))))
    let said = ""
    process.stderr?.on("data", (data) => {
      said = (said + data).slice(0, 2000)
    })
    process.stderr?.on("error", () => {})
    process.stdin?.on("error", () => {})
    process.on("error", (cause) => {
      said ||= cause.message
    })
    const [, ready, , inner, outside] = process.stdio
    const pid = (stream: unknown) => (isReadable(stream) ? childPid(stream) : Promise.resolve(undefined))
    const known = Effect.promise(() =>
      Promise.all([pid(inner), pid(direct ? undefined : outside), isReadable(ready) ? firstLine(ready) : false])
    )
    const [held, outer, up] = (yield* Proc.atMost(known, limit)) ?? []
    if (held !== undefined && up === true && (direct || outer !== undefined)) return { process, pid: held, outer }
    if (process.pid !== undefined) Proc.signal(-process.pid, "SIGKILL")
    process.stdin?.destroy()
    yield* Proc.pause(20)
    return yield* failed(`The sandbox's namespace could not be made: ${said.trim() || "bwrap gave no answer"}`)
  })

/** Ends the holder, and waits until no process of its namespace is left. */
const end = (holder: Holder, space: string, fds: ReadonlyArray<number>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { process } = holder
    const ended = () => process.exitCode !== null || process.signalCode !== null
    // The number may be another process's by now; the name of its namespace tells. The kernel ends all others with this one.
    const found = Proc.pidNamespace(holder.pid) === space
    if (found) Proc.signal(holder.pid, "SIGKILL")
    // Its parent ends when it has seen that, and leaves nothing dead to the machine's first process.
    for (let waits = 0; found && !ended() && waits < 100; waits++) yield* Proc.pause(2)
    if (process.pid !== undefined && !ended()) Proc.signal(-process.pid, "SIGKILL")
    holder.process.stdin?.destroy()
    holder.process.stdout?.destroy()
    holder.process.stderr?.destroy()
    yield* Proc.reap(() => Proc.list((pid) => Proc.pidNamespace(pid) === space).map((one) => one.pid))
    fds.forEach(Fifo.close)
  })

/** Opens a namespace; its `end` closes it. */
export const open = (options: Options): Effect.Effect<Host.Space, SandboxError> =>
  Effect.gen(function* () {
    const [nsenter, setpriv, setsid] = yield* Effect.all([find("nsenter"), find("setpriv"), find("setsid")])
    const holder = yield* hold(options)
    const space = Proc.pidNamespace(holder.pid)
    const kinds = ["user", "mnt", "pid", "ipc", "uts", ...(options.network ? [] : ["net"])]
    const names = kinds.map((kind) => `/proc/${holder.pid}/ns/${kind}`)
    if (holder.outer !== undefined) names.push(`/proc/${holder.outer}/ns/user`)
    const fds = yield* descriptors(names).pipe(Effect.tapError(() => end(holder, space ?? "", [])))
    let ended = false
    const option = (kind: string) => (kind === "mnt" ? "--mount" : `--${kind}`)
    const prefix = [
      ...(holder.outer === undefined
        ? []
        : [nsenter, `--user=/proc/self/fd/${fds.length + 2}`, "--preserve-credentials", "--"]),
      nsenter,
      ...kinds.map((kind, index) => `${option(kind)}=/proc/self/fd/${index + 3}`),
      ...["--preserve-credentials", "--", setpriv, "--no-new-privs", "--pdeathsig", "KILL", setsid]
    ]
    return {
      alive: () => !ended && holder.process.exitCode === null && holder.process.signalCode === null,
      argv: (inside) => [...prefix, ...inside],
      fds,
      env: options.env,
      host: "/",
      ...Host.ofNamespace(space),
      end: Effect.suspend(() => {
        if (ended) return Effect.void
        ended = true
        return end(holder, space ?? "", fds)
      })
    }
  })

/** The environment of every command inside. */
export const environment = (home: string): Record<string, string> => ({
  PATH: `${home}/.local/bin:${path}`,
  HOME: home,
  USER: "agent",
  LANG: "C.UTF-8",
  TERM: "dumb"
})
