/** What of the host a namespace may show: an allow-list of system folders, less what others may not read. */
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs"
import { homedir } from "node:os"
import { join, posix } from "node:path"
import { Either } from "effect"

/** One step of laying out a namespace's file system, with paths as seen inside. */
export type Step =
  | { readonly _tag: "Show"; readonly host: string; readonly at: string }
  | { readonly _tag: "Link"; readonly to: string; readonly at: string }
  /** Nothing is seen of a folder, or of a file. */
  | { readonly _tag: "HideFolder"; readonly at: string }
  | { readonly _tag: "HideFile"; readonly at: string }

export interface System {
  readonly roots: ReadonlyArray<string>
  readonly steps: ReadonlyArray<Step>
}

const candidates = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"]

const attempt = <A>(from: () => A): A | undefined => Either.getOrUndefined(Either.try(from))

/** What lies at a host path, links not followed. */
export const look = (path: string): Stats | undefined => attempt(() => lstatSync(path))

/** Whether `path` is `folder` or lies below it. */
export const within = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`)

/** Names in a host folder; none when it cannot be read. */
export const children = (folder: string): ReadonlyArray<string> => attempt(() => readdirSync(folder)) ?? []

const show = (path: string): Step | undefined => {
  const found = look(path)
  if (found === undefined) return undefined
  if (!found.isSymbolicLink()) return found.isDirectory() ? { _tag: "Show", host: path, at: path } : undefined
  const real = attempt(() => realpathSync(path))
  if (real === undefined) return undefined
  return candidates.some((root) => within(real, root))
    ? { _tag: "Link", to: readlinkSync(path), at: path }
    : { _tag: "Show", host: real, at: path }
}

/** Everything below `folder` that is not for everybody to read. The runner may well be root, who could read all of it. */
const secrets = (folder: string, depth: number, budget: { left: number }): ReadonlyArray<Step> =>
  children(folder).flatMap((name): ReadonlyArray<Step> => {
    const path = join(folder, name)
    const found = budget.left-- > 0 ? look(path) : undefined
    if (found === undefined) return []
    if (found.isFile()) return (found.mode & 0o004) === 0 ? [{ _tag: "HideFile", at: path }] : []
    if (!found.isDirectory()) return []
    if ((found.mode & 0o005) !== 0o005) return [{ _tag: "HideFolder", at: path }]
    return depth > 0 ? secrets(path, depth - 1, budget) : []
  })

/** Files that programs look for in /etc but that are links to places which are not shown. */
const linked = (path: string): ReadonlyArray<Step> => {
  if (look(path)?.isSymbolicLink() !== true) return []
  const real = attempt(() => realpathSync(path))
  const target = attempt(() => posix.resolve(posix.dirname(path), readlinkSync(path)))
  if (real === undefined || target === undefined || candidates.some((root) => within(target, root))) return []
  return [{ _tag: "Show", host: real, at: target.replace(/^\/var\/run\//, "/run/") }]
}

/** Reads the host once; the answer serves every namespace. */
export const survey = (): System => {
  const shown = candidates.flatMap((path) => show(path) ?? [])
  const budget = { left: 20_000 }
  const settings: ReadonlyArray<Step> = existsSync("/etc/environment")
    ? [{ _tag: "HideFile", at: "/etc/environment" }]
    : []
  return {
    roots: shown.map((step) => step.at),
    steps: [
      ...shown,
      ...linked("/etc/resolv.conf"),
      ...linked("/etc/hosts"),
      ...settings,
      ...secrets("/etc", 8, budget),
      ...secrets("/opt", 2, budget),
      ...secrets("/usr/local", 2, budget)
    ]
  }
}

/** Hides host paths that lie in a shown folder; the others are out of sight anyway. A path that is not there yet cannot be hidden. */
export const hidden = (system: System, paths: ReadonlyArray<string>): ReadonlyArray<Step> => {
  const home = attempt(homedir) ?? ""
  const ownHome = home.split("/").length > 2 ? [home] : []
  const real = [...paths, ...ownHome]
    .flatMap((path) => attempt(() => realpathSync(path)) ?? [])
    // System accounts have homes such as /usr/sbin, which nothing could run without.
    .filter((path) => !/^\/usr\/(bin|sbin|lib[^/]*|libexec|share|local)$/.test(path))
  return [...new Set(real)].flatMap((path): ReadonlyArray<Step> => {
    if (real.some((other) => other !== path && within(path, other))) return []
    if (!system.roots.some((root) => within(path, root) && path !== root)) return []
    return [{ _tag: attempt(() => statSync(path).isDirectory()) === true ? "HideFolder" : "HideFile", at: path }]
  })
}
