/** What stands in for a machine at Modal: a namespace with processes, files and a first process of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { lstatSync, readlinkSync } from "node:fs"
import type { Readable } from "node:stream"

/** What the image of every box gives. */
export const image = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
  FROM_IMAGE: "1"
}
export const workdir = "/app"

/** Bytes of a command's output that wait for a reader, and those kept to be read once more. */
const [ahead, kept] = [1_000_000, 4_000_000]

const system = ["/bin", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/sbin", "/usr"].flatMap((path) => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return []
  return found.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path]
})

/** A command's output, read from any place that is still kept. */
class Tape {
  private chunks: Array<Buffer> = []
  private first = 0
  private end = 0
  private sent = 0
  private over = false
  private readonly waiting = new Set<() => void>()

  constructor(private readonly from: Readable) {
    from.on("data", (data: Buffer) => {
      this.chunks.push(data)
      this.end += data.length
      if (this.end - this.sent > ahead) from.pause()
      this.wake()
    })
    const done = () => {
      this.over = true
      this.wake()
    }
    from.on("close", done)
    from.on("end", done)
    from.on("error", done)
  }

  private wake() {
    for (const one of this.waiting) one()
    this.waiting.clear()
  }

  private at(offset: number): Buffer | undefined {
    let place = this.first
    for (const chunk of this.chunks) {
      if (offset < place + chunk.length) return chunk.subarray(offset - place)
      place += chunk.length
    }
    return undefined
  }

  /** Pieces of the output from `offset` on, until its end or until `stop`. */
  async *read(offset: number, stop: AbortSignal): AsyncGenerator<Buffer> {
    let at = offset
    stop.addEventListener("abort", () => this.wake(), { once: true })
    if (at < this.first) throw new Error(`the output before ${this.first} is no longer kept`)
    while (!stop.aborted) {
      const piece = this.at(at)
      if (piece !== undefined) {
        at += piece.length
        this.sent = Math.max(this.sent, at)
        while (this.chunks[0] !== undefined && this.first + this.chunks[0].length < this.sent - kept) {
          this.first += this.chunks.shift()?.length ?? 0
        }
        if (this.end - this.sent <= ahead) this.from.resume()
        yield piece
      } else if (this.over) return
      else {
        await new Promise<void>((resolve) => this.waiting.add(resolve))
      }
    }
  }
}

/** One command in a box. */
export class Exec {
  readonly output: Tape
  readonly ended: Promise<number>
  written = 0
  closed = false

  constructor(private readonly child: ChildProcess) {
    if (child.stdout === null) throw new Error("a command without output")
    this.output = new Tape(child.stdout)
    child.stdin?.on("error", () => {})
    this.ended = new Promise((resolve) => {
      child.on("error", () => resolve(127))
      child.on("exit", (code, signal) => {
        child.stdin?.destroy()
        this.closed = true
        resolve(code ?? (signal === "SIGKILL" ? 137 : 1))
      })
    })
  }

  /** Appends to the standard input; what was taken before is not taken twice. */
  write(offset: number, data: Uint8Array, eof: boolean): Promise<void> {
    const { stdin } = this.child
    const fresh = data.subarray(Math.max(0, this.written - offset))
    if (this.closed || stdin === null) return Promise.resolve()
    this.written += fresh.length
    if (eof) this.closed = true
    return new Promise((resolve) => {
      const done = () => resolve()
      stdin.once("close", done)
      if (eof) stdin.end(fresh, done)
      else stdin.write(fresh, done)
    })
  }

  leave() {
    this.child.kill("SIGKILL")
    this.child.stdin?.destroy()
    this.child.stdout?.destroy()
  }
}

export class Box {
  readonly execs = new Map<string, Exec>()

  private constructor(
    private readonly holder: ChildProcess,
    private readonly pid: number,
    /** Settled with its exit code when the first process has ended. */
    readonly ended: Promise<number>
  ) {}

  static async open(options: { readonly entrypoint: ReadonlyArray<string>; readonly network: boolean }): Promise<Box> {
    const holder = spawn(
      "bwrap",
      [
        ...["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
        ...(options.network ? [] : ["--unshare-net"]),
        ...["--die-with-parent", "--new-session", "--as-pid-1", "--info-fd", "3"],
        ...[...system, "--dev", "/dev", "--proc", "/proc", "--dir", "/tmp", "--dir", "/root", "--dir", workdir],
        ...["--chdir", workdir, "--", ...options.entrypoint]
      ],
      { env: image, cwd: "/", detached: true, stdio: ["ignore", "ignore", "pipe", "pipe"] }
    )
    let said = ""
    holder.stderr?.on("data", (data) => {
      said = (said + data).slice(0, 1000)
    })
    const ended = new Promise<number>((resolve) => {
      holder.on("error", (cause) => {
        said ||= cause.message
        resolve(127)
      })
      holder.on("exit", (code, signal) => resolve(code ?? (signal === "SIGKILL" ? 137 : 1)))
    })
    const info = holder.stdio[3]
    const pid = await Promise.race([
      ended.then(() => undefined),
      new Promise<number>((resolve) => {
        let text = ""
        info?.on("data", (data: Buffer) => {
          text += data.toString()
          const found = /"child-pid": *(\d+)/.exec(text)?.[1]
          if (found !== undefined) resolve(Number(found))
        })
      })
    ])
    if (pid === undefined) throw new Error(`bwrap made no box for the Modal server of the tests: ${said.trim()}`)
    const box = new Box(holder, pid, ended)
    const over = ended.then(() => true)
    // The number is told before the first process runs its program; commands must find everything in its place.
    for (let tries = 0; tries < 100; tries++) {
      if ((await box.start("ready", ["/bin/true"], workdir, {}).ended) === 0) return box
      if (await Promise.race([over, new Promise((resolve) => setTimeout(() => resolve(false), 10))])) return box
    }
    box.kill()
    throw new Error(`the box of the Modal server of the tests runs no commands: ${said.trim()}`)
  }

  start(id: string, argv: ReadonlyArray<string>, cwd: string, env: Record<string, string>): Exec {
    const given = Object.entries({ ...image, ...env }).map(([name, value]) => `${name}=${value}`)
    const child = spawn(
      "bash",
      [
        "-c",
        // Standard input must be a pipe, which Node's are not. What waits for the command stands outside of the box's
        // processes: nsenter itself would stop with a command that is stopped, and never see that it was killed.
        `exec nsenter --no-fork --target ${this.pid} --user --preserve-credentials --mount --pid --ipc --uts --net --wdns="$0" -- \
        /bin/sh -c '"$@"; exit $?' sh /usr/bin/env -i "$@" < <(exec cat 2>/dev/null)`,
        ...[cwd, ...given, ...argv]
      ],
      { env: { PATH: image.PATH }, cwd: "/", detached: true, stdio: ["pipe", "pipe", "ignore"] }
    )
    const exec = new Exec(child)
    this.execs.set(id, exec)
    return exec
  }

  /** Ends every process in it. */
  kill() {
    const signal = (pid: number) => {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It has ended.
      }
    }
    if (this.holder.exitCode === null && this.holder.signalCode === null) signal(this.pid)
    if (this.holder.pid !== undefined && this.holder.exitCode === null && this.holder.signalCode === null)
      signal(this.holder.pid)
    for (const exec of this.execs.values()) exec.leave()
  }
}
