/** The shell scripts of a search: `find` names the files in order, NUL between them, and the sandbox's own grep matches. */
import { Either } from "effect"
import * as Shell from "../Shell.ts"
import * as ExtendedRegex from "./ExtendedRegex.ts"
import * as Glob from "./Glob.ts"

/** What the script prints after its heading: matching lines, file names, lines per file, names by pattern, or only a number. */
export type Mode = "content" | "files_only" | "count" | "names"

export interface Search {
  readonly mode: Mode
  /** The regular expression; for names the file pattern. */
  readonly pattern: string
  readonly path: string
  readonly glob: string
  readonly context: number
  /** Bytes printed at most. */
  readonly cap: number
}

/** Folders never entered below the path of a search. */
export const skipped = [".git", ".hg", ".svn", "node_modules"] as const

/**
 * Prints a record separator, a word (`directory`, `file`, `missing`, `special`, `invalid`) and a newline, then for
 * - content: path, NUL, line number, `:` (`-` for a line of context), line, newline;
 * - files_only, names: path, NUL;
 * - count: path, NUL, number, newline.
 */
export const results = (search: Search): string =>
  `${prologue(search)}\n${search.mode === "names" ? "list" : search.mode} | head -c ${search.cap}\n`

/** Prints the same heading, then how many records `results` would print without its cap; for content, matching lines. */
export const total = (search: Search): string =>
  `${prologue(search)}\n${
    search.mode === "content"
      ? "s=0; numbers | { while read -r n; do s=$((s + n)); done; echo $s; }"
      : `${search.mode === "names" ? "list" : search.mode} | tr -cd '\\000' | wc -c`
  }\n`

const prologue = (search: Search): string => `
LC_ALL=C.UTF-8; export LC_ALL; CDPATH=; exec 2>/dev/null
${Shell.pathVariable(search.path)}
order() { LC_ALL=C sort -z; }
[ "$(printf 'a\\000' | sort -z | tr '\\000' b)" = ab ] || order() { cat; }
if [ -d "$p" ]; then
  cd "$p" || { printf '\\036locked\\n'; exit; }
  kind=directory
  list() { ${find(search)} | order; }
elif [ -f "$p" ]; then
  kind=file
  list() { ${search.mode === "names" ? `find "$p" ${tests(search)} -print0` : `printf '%s\\000' "$p"`}; }
elif [ -e "$p" ]; then printf '\\036special\\n'; exit
else printf '\\036missing\\n'; exit; fi
${search.mode === "names" ? "" : matcher(search)}
printf '\\036%s\\n' $kind
`

const find = (search: Search): string => {
  const prune = `-type d \\( ${skipped.map((name) => `-name ${name}`).join(" -o ")} \\) -prune`
  const type = search.mode === "names" ? "\\( -type f -o -type l \\)" : "-type f"
  return `find . ${prune} -o ${type} ${tests(search)} -print0`
}

const tests = ({ mode, pattern, glob }: Search): string =>
  mode === "names" ? `${Glob.test(pattern)} ${Glob.test(glob)}` : Glob.test(glob)

/**
 * Defines content, files_only and count with what this sandbox's grep can do. Only NUL bytes make a file binary: `-I` in a
 * UTF-8 locale leaves out lines that are no UTF-8 as well, so it chooses the files in the C locale, and `-a` matches.
 */
const matcher = ({ pattern, context }: Search): string => {
  const extended = ExtendedRegex.translate(pattern)
  const simple = Either.match(extended, {
    onLeft: (why) => `printf '\\036invalid\\n%s' ${Shell.quote(why)}; exit`,
    onRight: ({ pattern, ignoreCase }) => `o=-E${ignoreCase ? "i" : ""}; pat=${Shell.quote(pattern)}`
  })
  const around = context === 0 ? "" : `-C ${context}`
  return `
pat=${Shell.quote(pattern)}; o=-P
printf 'a\\n' | grep -q -P -e a || { ${simple}; }
export pat o
e=$(printf '\\n' | grep $o -e "$pat" 2>&1 >/dev/null)
[ $? -le 1 ] || { printf '\\036invalid\\n%s' "$e"; exit; }
if [ $(printf 'a\\n' | grep -H --null -I -e a | tr -cd '\\000' | wc -c) -eq 1 ]; then
  text() { list | LC_ALL=C xargs -0 -r grep -l --null -I -e '' --; }
  content() { text | xargs -0 -r grep $o -n -H --null -a ${around} -e "$pat" -- | cut -b 1-6000; }
  files_only() { text | xargs -0 -r grep $o -l --null -a -e "$pat" --; }
  count() { files_only | xargs -0 -r grep $o -c -H --null -a -e "$pat" --; }
  numbers() { files_only | xargs -0 -r grep $o -c -h -a -e "$pat" --; }
else
  each() { list | xargs -0 -r sh -c 'grep -q $o -e "$pat" "$@" || exit 0
    for f do
      grep -q $o -e "$pat" "$f" || continue
      a=$(head -c 8192 <"$f" | wc -c); b=$(head -c 8192 <"$f" | tr -d "\\000" | wc -c)
      [ $((a)) -eq $((b)) ] || continue
      '"$1"'
    done' sh; }
  content() { each 'grep -n $o ${around} -e "$pat" "$f" | cut -b 1-1500 | while IFS= read -r l; do printf "%s\\000%s\\n" "$f" "$l"; done'; }
  files_only() { each 'printf "%s\\000" "$f"'; }
  count() { each 'printf "%s\\000%d\\n" "$f" "$(grep -c $o -e "$pat" "$f")"'; }
  numbers() { each 'grep -c $o -e "$pat" "$f"'; }
fi
`
}
