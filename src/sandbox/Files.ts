/** Reading and writing files by a POSIX shell inside, so that paths and links mean what they mean there; busybox suffices. */
import { posix } from "node:path"
import { Effect } from "effect"
import { type FileContent, FileError, type SandboxError, type SandboxService } from "./Sandbox.ts"
import * as Shell from "./Shell.ts"

/** What a backend lends: a place to run scripts. */
export interface Runner {
  readonly cwd: string
  readonly home: string
  /** Runs `script` by `sh` with `args` as $1, …; `exitCode` is undefined after a time-out. */
  readonly run: (
    script: string,
    options: {
      readonly args: ReadonlyArray<string>
      readonly stdin: Uint8Array | undefined
      /** Bytes of standard output and standard error to give back, from the first on. */
      readonly limit: number
      /** Seconds. */
      readonly timeout: number
    }
  ) => Effect.Effect<{ readonly exitCode: number | undefined; readonly output: Uint8Array }, SandboxError>
}

/** Seconds for one file; only a device or a stuck disk takes long. */
const timeout = 60

/** A path of any use must fit the kernel's own limit. */
const longestPath = 4095

// The first line is a word and a number; the content follows. What is no regular file is never opened.
const reading = `
p=$1; LC_ALL=C; export LC_ALL
no() { printf '%s 0\\n' "$1"; exit 0; }
if [ -d "$p" ]; then no folder; fi
if [ ! -e "$p" ]; then
  if [ -L "$p" ]; then no dangling; fi
  m=$(ls -d -- "$p" 2>&1)
  case $m in *ermission*) no denied;; *ot\\ a\\ dir*) no notdir;; *too\\ long*) no long;; *ymbolic\\ link*) no loop;; esac
  no missing
fi
if [ ! -f "$p" ]; then no special; fi
if [ ! -r "$p" ]; then no denied; fi
exec 2>/dev/null
n=$(stat -L -c %s -- "$p") || n=$(wc -c < "$p")
printf 'ok %s\\n' "$n"
exec head -c "$2" -- "$p"
`

const writing = `
p=$1; LC_ALL=C; export LC_ALL
if [ -d "$p" ]; then echo "Is a directory"; exit 3; fi
if [ -e "$p" ] && [ ! -f "$p" ]; then echo "Not a regular file"; exit 3; fi
mkdir -p -- "$2" || exit 3
cat > "$p" || exit 3
`

const isBad = (path: string): string | undefined => {
  if (path === "") return "the path is empty"
  if (path.includes("\0")) return "the path holds a NUL character"
  if (Buffer.byteLength(path) > longestPath) return "the path is too long"
  return undefined
}

const error = (path: string, reason: FileError["reason"], detail: string) => new FileError({ path, reason, detail })

const unreadable = (path: string, word: string): FileError => {
  switch (word) {
    case "folder":
      return error(path, "NotAFile", `${path} is a directory, not a file`)
    case "special":
      return error(path, "NotAFile", `${path} is not a regular file (a pipe, socket or device)`)
    case "dangling":
      return error(path, "NotFound", `${path} is a symbolic link to something that does not exist`)
    case "missing":
      return error(path, "NotFound", `${path} does not exist`)
    case "notdir":
      return error(path, "NotFound", `${path} does not exist: a part of the path is a file`)
    case "denied":
      return error(path, "NotAllowed", `no permission to read ${path}`)
    case "long":
      return error(path, "BadPath", `the path ${path} is too long`)
    case "loop":
      return error(path, "BadPath", `${path} is a loop of symbolic links`)
    default:
      return error(path, "Other", `${path} could not be read: ${word.trim() || "the shell gave no answer"}`)
  }
}

const unwritable = (path: string, message: string): FileError => {
  if (/no space|quota/i.test(message)) {
    return error(path, "NoSpace", `no space left to write ${path}; the file may be incomplete`)
  }
  if (/read-only/i.test(message)) return error(path, "NotAllowed", `${path} lies on a read-only file system`)
  if (/permission|not permitted/i.test(message)) return error(path, "NotAllowed", `no permission to write ${path}`)
  if (/is a directory/i.test(message)) return error(path, "NotAFile", `${path} is a directory, not a file`)
  if (/regular file/i.test(message)) {
    return error(path, "NotAFile", `${path} is not a regular file (a pipe, socket or device)`)
  }
  if (/not a directory|file exists/i.test(message)) {
    return error(path, "BadPath", `${path} cannot be made: a part of the path is a file, not a directory`)
  }
  if (/too long/i.test(message)) return error(path, "BadPath", `the path ${path} is too long`)
  if (/symbolic link/i.test(message)) return error(path, "BadPath", `${path} is a loop of symbolic links`)
  if (/nonexistent|no such/i.test(message)) {
    return error(path, "NotFound", `${path} cannot be made: it leads through a link to something that does not exist`)
  }
  return error(path, "Other", `${path} could not be written: ${message.trim() || "the shell gave no answer"}`)
}

const stuck = (path: string) => error(path, "Other", `${path} did not answer within ${timeout} seconds`)

/** Bytes of the first line at most. */
const headerLimit = 64

/** `read` and `write` of a sandbox over its `run`. */
export const make = (runner: Runner): Pick<SandboxService, "read" | "write"> => ({
  read: Effect.fn("Sandbox.read")(function* (given, options) {
    const bad = isBad(given)
    if (bad !== undefined) return yield* error(given, "BadPath", bad)
    const path = Shell.absolute(given, runner)
    const wanted = Math.max(0, Math.floor(options.maxBytes))
    const { exitCode, output } = yield* runner.run(reading, {
      args: [path, `${wanted}`],
      stdin: undefined,
      limit: wanted + headerLimit,
      timeout
    })
    if (exitCode === undefined) return yield* stuck(path)
    const end = output.indexOf(0x0a)
    const header = new TextDecoder().decode(output.subarray(0, end < 0 ? output.length : end))
    const [word = "", size = ""] = header.split(" ")
    if (word !== "ok" || end < 0) return yield* unreadable(path, /^[a-z]+ 0$/.test(header) ? word : header)
    const bytes = output.slice(end + 1, end + 1 + wanted)
    if (exitCode !== 0 && bytes.length === 0 && Number(size) > 0 && wanted > 0) {
      return yield* error(path, "Other", `${path} could not be read`)
    }
    // Files of /proc say that they are empty.
    const content: FileContent = { bytes, size: Math.max(Number(size) || 0, bytes.length) }
    return content
  }),
  write: Effect.fn("Sandbox.write")(function* (given, bytes) {
    const bad = isBad(given)
    if (bad !== undefined) return yield* error(given, "BadPath", bad)
    if (given.endsWith("/")) return yield* error(given, "BadPath", `${given} names a directory, not a file`)
    const path = Shell.absolute(given, runner)
    const { exitCode, output } = yield* runner.run(writing, {
      args: [path, posix.dirname(path)],
      stdin: bytes,
      limit: 2000,
      timeout
    })
    if (exitCode === undefined) return yield* stuck(path)
    if (exitCode !== 0) return yield* unwritable(path, new TextDecoder().decode(output))
  })
})
