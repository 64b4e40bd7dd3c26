/** The first look into a container: where its user's home is, whether there is bash, and its working directory, made if absent. */
import { posix } from "node:path"

/** What a survey found. */
export interface Found {
  readonly home: string
  /** Absolute path of the shell for commands. */
  readonly shell: string
  /** Absolute working directory. */
  readonly cwd: string
  /** `none`: it could not be made, for `why`. `bare`: it was made. `there`: it was there before. */
  readonly directory: "none" | "bare" | "there"
  readonly why: string
  /** The part of `cwd` that is there, as far as it is. */
  readonly above: string
  /** Numbers of the user of commands. */
  readonly uid: number
  readonly gid: number
  /** Programs that we need and that are missing, in words; empty for none. */
  readonly lacks: string
}

/**
 * A script of POSIX sh that looks, prints what it found, and goes on with `then`. Its first argument is the `cwd` of a
 * spec: empty for the directory where it runs, relative ones start there.
 */
export const script = (then: string): string => `
cwd=$1 home=\${HOME:-/} found=there why= uid=0 gid=0
case $cwd in
  '~') cwd=$home;;
  '~/'*) cwd=$home/\${cwd#??};;
esac
if [ -n "$cwd" ] && [ ! -d "$cwd" ]; then
  if why=$(LC_ALL=C mkdir -p -- "$cwd" 2>&1); then found=bare; else found=none; fi
fi
case $cwd in /*) ;; *) cwd=$(pwd)/$cwd;; esac
above=$cwd
while [ -n "$above" ] && [ ! -e "$above" ]; do above=\${above%/*}; done
while read -r name number rest; do
  case $name in Uid:) uid=$number;; Gid:) gid=$number;; esac
done </proc/self/status
shell=$(command -v bash) || shell=/bin/sh
lacks=
for program in cat mkdir sleep; do
  command -v $program >/dev/null || lacks="$lacks\${lacks:+, }$program"
done
printf '\\036'
printf '%s\\000' "$home" "$shell" "$cwd" "$found" "$why" "$above" "$uid" "$gid" "$lacks"
printf '\\036'
${then}`

/** Reads what the script printed; undefined while it is not complete. */
export const read = (text: string): Found | undefined => {
  const [, report, after] = text.split("\x1e")
  if (report === undefined || after === undefined) return undefined
  const [home = "", shell = "", cwd = "", directory, why = "", above = "", uid, gid, lacks = ""] = report.split("\0")
  return {
    home: posix.resolve("/", home),
    // An alias or a function answers without a path.
    shell: shell.startsWith("/") ? shell : "/bin/sh",
    cwd: posix.resolve("/", cwd),
    directory: directory === "none" || directory === "bare" ? directory : "there",
    why: why.trim().replaceAll(/\s+/g, " "),
    above: posix.resolve("/", above),
    uid: Number(uid) || 0,
    gid: Number(gid) || 0,
    lacks
  }
}

/** One line for people: why the working directory cannot be. */
export const blocked = (cwd: string, why: string): string =>
  `cwd: ${JSON.stringify(cwd.slice(0, 200))} cannot be the working directory: ${why.replace(/^mkdir: /, "") || "it could not be made"}`

/** Why a directory of that name cannot be anywhere; undefined when it may. */
export const unfit = (cwd: string): string | undefined => {
  if (/[\0\x1e]/.test(cwd)) return "it has a control character"
  if (Buffer.byteLength(cwd) > 3000 || cwd.split("/").some((part) => Buffer.byteLength(part) > 255)) {
    return "its name is too long"
  }
  return undefined
}
