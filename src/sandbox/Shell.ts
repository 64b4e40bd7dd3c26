/** Texts for a POSIX shell: how a command is handed over, and how the shell tells that it has begun. */
import { posix } from "node:path"

/** The byte that opens the mark, the first line a script of ours prints: its own process id, or `-` when the directory is missing. */
export const markByte = 0x1e

/** Whole commands above this many bytes are refused: the kernel allows 2 MiB for all arguments and the environment. */
export const maxBytes = 1_500_000

/** Quotes `text` as one word of a shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Puts the mark in front of a script and closes `fds`, the descriptors that only its starter needed. */
export const marked = (script: string, fds: ReadonlyArray<number>): string =>
  `printf '\\036%s\\n' $$;${fds.map((fd) => ` exec ${fd}<&-;`).join("")} ${script}`

// Linux allows 128 KiB for one argument; a character takes at most three bytes for each of JavaScript's units.
const pieces = (command: string): ReadonlyArray<string> => {
  const cut: Array<string> = []
  for (let from = 0; from < command.length; ) {
    const to = from + 32_000
    const high = command.charCodeAt(to - 1)
    const end = high >= 0xd800 && high <= 0xdbff && to < command.length ? to - 1 : to
    cut.push(command.slice(from, end))
    from = end
  }
  return cut
}

/**
 * Arguments that run `command` in `cwd` as `<shell> -c` would: same line numbers, no positional parameters, standard input
 * untouched. A long command is spread over several arguments. `eval` keeps a syntax error from hiding the mark.
 */
export const command = (
  shell: string,
  text: string,
  options: { readonly cwd: string; readonly fds: ReadonlyArray<number> }
): ReadonlyArray<string> => {
  const parts = pieces(text)
  const words = parts.map((_, index) => `\${${index + 2}}`).join("")
  const close = options.fds.map((fd) => ` exec ${fd}<&-;`).join("")
  const script =
    `cd -- "$1" 2>/dev/null && printf '\\036%s\\n' $$ || { printf '\\036-\\n'; exit 0; };` +
    `${close} unset OLDPWD; eval "set --; ${words}"`
  return [shell, "-c", script, posix.basename(shell), options.cwd, ...parts]
}

/** Why a command cannot be handed to a shell at all; undefined when it can. */
export const unfit = (text: string): string | undefined => {
  if (text.includes("\0")) return "the command holds a NUL character, which no shell can take"
  const length = Buffer.byteLength(text)
  if (length > maxBytes)
    return `the command is ${length} bytes long, the limit is ${maxBytes}: write it to a file first`
  return undefined
}

/** Makes a path absolute: relative ones start at `cwd`, `~` is `home`. */
export const absolute = (path: string, at: { readonly cwd: string; readonly home: string }): string => {
  if (path === "~" || path.startsWith("~/")) return posix.join(at.home, path.slice(1))
  return posix.resolve(at.cwd, path)
}
