/** Scripts that run inside an instance: what every program is wrapped in, and the first look at what the image offers. */
import * as Shell from "../Shell.ts"

/** Limits of the system on each process, where the program cannot use control groups. */
export interface Rlimits {
  /** KiB of data a process. */
  readonly data: number
  /** Processes of the sandbox; the system counts them for ordinary users only. */
  readonly processes: number
}

const own = ["APPNAME", "BIND", "COMMAND", "CONTAINER", "ENVIRONMENT", "INSTANCE", "NAME"]

// The image's environment, without what the program put around it.
const tidy =
  `unset ${own.map((name) => `APPTAINER_${name} SINGULARITY_${name}`).join(" ")} PROMPT_COMMAND USER_PATH OLDPWD; ` +
  'case "$PS1" in Apptainer*|Singularity*) unset PS1;; esac; ' +
  '[ "$LD_LIBRARY_PATH" = /.singularity.d/libs ] && unset LD_LIBRARY_PATH; ' +
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's
  'export LANG="${LANG:-C.UTF-8}" TERM=dumb; '

const limits = (rlimits: Rlimits | undefined): string =>
  rlimits === undefined
    ? ""
    : `ulimit -d ${rlimits.data} 2>/dev/null; { ulimit -u ${rlimits.processes} || ulimit -p ${rlimits.processes}; } 2>/dev/null; `

/** Arguments that run a program inside with the image's environment and this home. */
export const wrapped = (
  inside: ReadonlyArray<string>,
  options: { readonly home: string; readonly rlimits: Rlimits | undefined }
): ReadonlyArray<string> => [
  "/bin/sh",
  "-c",
  `${tidy}export HOME="$1"; shift; ${limits(options.rlimits)}exec "$@"`,
  "sh",
  options.home,
  ...inside
]

/** What the first look finds. */
export interface Survey {
  readonly shell: string
  readonly home: string
  readonly cwd: string
  /** Why there is no such working directory. */
  readonly blocked: string | undefined
  /** Names of network devices, loopback excepted. */
  readonly devices: ReadonlyArray<string>
}

// Only mkdir is not of the shell itself, and only where something is missing. Later lines may hold anything: the directory is last.
const script = `
for d in /tmp /var/tmp; do [ -d $d ] || mkdir -p -m 1777 $d; done 2>/dev/null
[ -s /etc/hosts ] || { echo '127.0.0.1 localhost sandbox' > /etc/hosts; echo '::1 localhost' >> /etc/hosts; } 2>/dev/null
s=$(command -v bash 2>/dev/null) || s=/bin/sh
case $s in /*) ;; *) s=/bin/sh;; esac
printf 'shell %s\\n' "$s"
for h in /root /home/agent /tmp/agent /tmp; do { [ -d $h ] || mkdir -p $h; } 2>/dev/null && [ -w $h ] && [ -x $h ] && break; done
printf 'home %s\\n' "$h"
while read -r l; do case $l in *:*) l=\${l%%:*}; [ "$l" = lo ] || printf 'device %s\\n' "$l";; esac; done < /proc/net/dev
case $1 in '') c=$2;; '~') c=$h;; '~/'*) c=$h/\${1#??};; /*) c=$1;; *) c=\${2%/}/$1;; esac
[ -d "$c" ] || m=$(LC_ALL=C mkdir -p -- "$c" 2>&1)
if cd -- "$c" 2>/dev/null; then printf 'cwd %s\\n' "$(pwd)"; exit 0; fi
p=$c
while [ ! -e "$p" ] && [ "$p" != "\${p%/*}" ]; do p=\${p%/*}; [ -n "$p" ] || p=/; done
if [ -d "$p" ]; then printf 'blocked %s\\n' "\${m:-$c cannot be entered}"; else printf 'blocked %s is no directory\\n' "$p"; fi
`

/** Arguments of the first look: makes `cwd`, relative to `from`, where it is absent. */
export const look = (cwd: string, from: string): ReadonlyArray<string> => ["/bin/sh", "-c", script, "sh", cwd, from]

/** The first look as a script that an instance runs at its start, in place of the image's own. */
export const startscript = (cwd: string, from: string): string =>
  `#!/bin/sh\nset -- ${Shell.quote(cwd)} ${Shell.quote(from)}\n${script}`

/** Reads what the first look printed; undefined when it did not come to its end. */
export const survey = (printed: string): Survey | undefined => {
  const word = (name: string) => new RegExp(`^${name} (.*)$`, "m").exec(printed)?.[1]
  const shell = word("shell")
  const home = word("home")
  const cwd = /^cwd ([\s\S]*)\n$/m.exec(printed)?.[1]
  const blocked = word("blocked")
  if (shell === undefined || home === undefined || (cwd === undefined && blocked === undefined)) return undefined
  const devices = [...printed.matchAll(/^device (.*)$/gm)].map(([, name = ""]) => name.trim())
  return { shell, home, cwd: cwd ?? "/", blocked, devices }
}

/** The script by which a shell takes over a program whose arguments are too many for the container program to carry. */
export const taken = (inside: ReadonlyArray<string>, fd: number): string =>
  `exec ${inside.map(Shell.quote).join(" ")} ${fd}<&-\n`

/** Environment of the container program itself as it starts a program inside, which inherits it. */
export const environment = (config: string, tmp: string): Record<string, string> => ({
  APPTAINER_CONFIGDIR: config,
  SINGULARITY_CONFIGDIR: config,
  APPTAINER_TMPDIR: tmp,
  SINGULARITY_TMPDIR: tmp,
  HOME: "/"
})
