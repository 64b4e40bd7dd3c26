/** The shell script that runs a server: it comes over standard input, so that no list of processes shows what it sets. */
import { quote } from "../../sandbox/Shell.ts"

/** The byte that opens the script's own lines among the server's. */
export const ownByte = 0x1d

/** What such a line says when there is no such program. */
export const noProgram = "none"

const end = "\x04 end of script"

/** What the shell is started with. */
export const command = `s=; while IFS= read -r l && [ "$l" != '${end}' ]; do s="$s$l\n"; done; eval "$s"`

export interface Launch {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  /** Whether all ends with the shell's input, as when the runner dies: where nothing else sees to it. */
  readonly guarded: boolean
}

/** What goes to the shell's input first. The end of the server is told on a line, then what it said last on standard error. */
export const text = ({ command, args, env, guarded }: Launch): string => {
  const words = [command, ...args].map(quote).join(" ")
  const server = [
    "exec 3>&1",
    `{ ${words} 2>&1 >&3 3>&-; printf '\\n\\035%s\\n' $? >&3; } | { t=$(tail -c 2000 | tr -d '\\000'); printf '\\n%s\\n' "$t"; } >&3`
  ]
  return [
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`),
    `command -v ${quote(command)} >/dev/null 2>&1 || { printf '\\n\\035${noProgram}\\n'; exit 127; }`,
    ...(guarded ? ["{ cat; sleep 1; kill -KILL 0; } | {", ...server, "kill -KILL 0", "}"] : server),
    end,
    ""
  ].join("\n")
}
