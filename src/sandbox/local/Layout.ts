/** The file system that a prompt's commands see, as arguments of bubblewrap. */
import { existsSync, readlinkSync } from "node:fs"
import { join, posix } from "node:path"
import { children, look, type Step, type System, within } from "./System.ts"

/** Where a private folder of the place is seen inside. */
export const privates = [
  { at: "/workspace", part: "work" },
  { at: "/home/agent", part: "home" },
  { at: "/tmp", part: "tmp" },
  { at: "/dev/shm", part: "shm" }
] as const

export const home = "/home/agent"

/** How the working directory comes to be there. */
export type Cwd =
  /** A folder below one of the private ones, at `part` in the place. */
  | { readonly _tag: "Made"; readonly part: string }
  /** It is part of the system, read-only. */
  | { readonly _tag: "Seen" }
  /** It cannot be: `by` is there and no directory. */
  | { readonly _tag: "Blocked"; readonly by: string }
  /** A private folder is mounted at `at`; `opened` is the read-only ancestor that must make room for it. */
  | { readonly _tag: "Mounted"; readonly at: string; readonly opened: string | undefined }

/** The directory that `cwd` of a spec means: /workspace by default, and where relative paths start. */
export const directory = (cwd: string): string => {
  const path = posix.resolve("/workspace", cwd.replace(/^~(?=\/|$)/, home))
  return path === "/var/tmp" || path.startsWith("/var/tmp/") ? path.slice(4) : path
}

// Links of the system are followed as the sandbox will, but nothing outside of it is looked at.
const follow = (system: System, blind: ReadonlyArray<string>, path: string): string => {
  let rest = path.split("/").filter((part) => part !== "")
  let at = "/"
  for (let steps = 0; rest.length > 0 && steps < 256; steps++) {
    const [part = "", ...after] = rest
    const next = posix.join(at, part)
    const visible = system.roots.some((root) => within(next, root)) && !blind.some((hidden) => within(next, hidden))
    if (visible && look(next)?.isSymbolicLink()) {
      const target = posix.resolve(at, readlinkSync(next))
      rest = [...target.split("/").filter((piece) => piece !== ""), ...after]
      at = "/"
    } else {
      rest = after
      at = next
    }
  }
  return at
}

/** Decides how the absolute directory `cwd` is provided. */
export const plan = (system: System, hidden: ReadonlyArray<Step>, cwd: string): Cwd => {
  const blind = [...system.steps, ...hidden].flatMap((step) => (step._tag === "HideFolder" ? [step.at] : []))
  const path = follow(system, blind, cwd)
  const own = privates.find((one) => within(path, one.at))
  if (own !== undefined) return { _tag: "Made", part: join(own.part, path.slice(own.at.length)) }
  if (path === "/" || within(path, "/proc") || within(path, "/dev")) return { _tag: "Seen" }
  const shown = system.roots.some((root) => within(path, root)) && !blind.some((folder) => within(path, folder))
  if (!shown) return { _tag: "Mounted", at: path, opened: undefined }
  let ancestor = path
  while (look(ancestor) === undefined) ancestor = posix.dirname(ancestor)
  if (look(ancestor)?.isDirectory() !== true) return { _tag: "Blocked", by: ancestor }
  if (ancestor === path) return { _tag: "Seen" }
  return { _tag: "Mounted", at: path, opened: ancestor }
}

const bindings = (step: Step): ReadonlyArray<string> => {
  switch (step._tag) {
    case "Show":
      return ["--ro-bind", step.host, step.at]
    case "Link":
      return ["--symlink", step.to, step.at]
    case "HideFolder":
      return ["--tmpfs", step.at]
    case "HideFile":
      return ["--ro-bind", "/dev/null", step.at]
  }
}

/** A read-only folder gives way to one in memory that shows the same children and has room for another. */
const opening = (folder: string): ReadonlyArray<string> => [
  "--tmpfs",
  folder,
  ...children(folder).flatMap((name): ReadonlyArray<string> => {
    const path = join(folder, name)
    const found = look(path)
    if (found?.isSymbolicLink()) return ["--symlink", readlinkSync(path), path]
    return found?.isDirectory() || found?.isFile() ? ["--ro-bind", path, path] : []
  })
]

const sealed = (steps: ReadonlyArray<Step>) =>
  steps.flatMap((step) => (step._tag === "HideFolder" ? ["--remount-ro", step.at] : []))

/** Parts of /proc that change the machine: read-only inside. */
const steering = ["sys", "sysrq-trigger", "irq", "bus", "fs", "mtrr", "latency_stats", "acpi", "scsi"].map(
  (name) => `/proc/${name}`
)

/** Parts of /proc that tell of the whole machine's memory and keys: empty inside. */
const secretive = ["kcore", "keys", "key-users", "kmsg", "timer_list", "sched_debug"].map((name) => `/proc/${name}`)

/** All that bubblewrap needs to show the system, the place's private folders, and nothing else of the host. */
export const argv = (system: System, hidden: ReadonlyArray<Step>, place: string, cwd: Cwd): ReadonlyArray<string> => {
  const steps = [...system.steps, ...hidden]
  const mounted = cwd._tag === "Mounted" ? cwd : undefined
  const [show, hide] = [
    steps.filter((step) => step._tag === "Show" || step._tag === "Link"),
    steps.filter((step) => step._tag === "HideFolder" || step._tag === "HideFile")
  ]
  const underCwd = (path: string) => mounted !== undefined && within(path, mounted.at)
  return [
    ...show.flatMap(bindings),
    ...(mounted?.opened === undefined ? [] : opening(mounted.opened)),
    ...hide.flatMap(bindings),
    ...["--dev", "/dev", "--proc", "/proc"],
    // To the kernel the commands of root's runner are root's: what steers the whole machine must not be theirs to write.
    ...steering.filter((at) => existsSync(at)).flatMap((at) => ["--ro-bind", at, at]),
    ...secretive.filter((at) => existsSync(at)).flatMap((at) => ["--ro-bind", "/dev/null", at]),
    ...(mounted === undefined ? [] : ["--bind", join(place, "cwd"), mounted.at]),
    ...privates.flatMap((one) => ["--bind", join(place, one.part), one.at]),
    ...[
      ["/tmp", "/var/tmp"],
      ["/run", "/var/run"]
    ].flatMap(([to = "", at = ""]) => (underCwd(at) || mounted?.at.startsWith(`${at}/`) ? [] : ["--symlink", to, at])),
    ...(underCwd("/run") ? [] : ["--dir", "/run"]),
    ...["passwd", "group"].flatMap((name) =>
      look(`/etc/${name}`)?.isFile() ? ["--ro-bind", join(place, "etc", name), `/etc/${name}`] : []
    ),
    ...(mounted?.opened === undefined ? [] : ["--remount-ro", mounted.opened]),
    ...sealed(hide),
    ...["--remount-ro", "/"]
  ]
}

/** The lists of users and groups inside; the people of this machine are not on them. */
export const users = {
  passwd: [
    "root:x:0:0:root:/root:/bin/sh",
    "agent:x:1000:1000:agent:/home/agent:/bin/bash",
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin"
  ]
    .map((line) => `${line}\n`)
    .join(""),
  group: "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"
}
