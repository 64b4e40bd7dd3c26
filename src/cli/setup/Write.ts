/** Writes the user's config file: wholly or not at all, and at no moment readable by others. */
import { chmod, mkdir, open, readlink, rename, rm, stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { Effect, Predicate, Redacted } from "effect"
import type { ConfigFile } from "../ConfigFile.ts"
import { UsageError } from "../UsageError.ts"

const codeOf = (cause: unknown): string => (Predicate.hasProperty(cause, "code") ? String(cause.code) : "")

/** Makes a folder that only its owner enters, with its parents. */
const makeFolder = (path: string): Promise<void> =>
  mkdir(path, { mode: 0o700 }).catch(async (cause: unknown) => {
    if (codeOf(cause) === "ENOENT" && dirname(path) !== path) {
      await makeFolder(dirname(path))
      return mkdir(path, { mode: 0o700 })
    }
    if (codeOf(cause) === "EEXIST" && (await stat(path)).isDirectory()) return
    throw cause
  })

/** Links that lead to links, followed at most so often. */
const linksAtMost = 40

/** Where a file lies or would lie, behind the links that lead there. */
const behind = async (path: string, links = linksAtMost): Promise<string> => {
  const target = await readlink(path).catch(() => undefined)
  return target === undefined || links === 0 ? path : behind(resolve(dirname(path), target), links - 1)
}

const render = ({ options, variables }: Pick<ConfigFile, "options" | "variables">): string => {
  const plain = [...variables].map(([name, value]) => [name, Redacted.value(value)])
  return `${JSON.stringify({ options: Object.fromEntries(options), variables: Object.fromEntries(plain) }, null, 2)}\n`
}

/** Puts the text into a new file beside the old one, and that in its place. */
const replace = async (path: string, text: string): Promise<void> => {
  const fresh = join(dirname(path), `.config.json.${process.pid}.new`)
  await rm(fresh, { force: true })
  const written = async () => {
    const file = await open(fresh, "wx", 0o600)
    await file
      .writeFile(text)
      .then(() => file.sync())
      .finally(() => file.close())
    await rename(fresh, path)
  }
  await written().catch(async (cause: unknown) => {
    await rm(fresh, { force: true }).catch(() => undefined)
    throw cause
  })
  const folder = await open(dirname(path), "r")
  await folder.sync().finally(() => folder.close())
}

const reasonOf = (cause: unknown): string => {
  const code = codeOf(cause)
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") return `this user may not write there (${code})`
  if (code === "ENOSPC" || code === "EDQUOT") return `there is no space left on the disk (${code})`
  if (code === "EEXIST" || code === "ENOTDIR") return `a file stands in the way of its folder (${code})`
  return code === "" ? String(cause) : code
}

/** Replaces the file; where it is a link, what it leads to. The old one stays when that fails. */
export const write = Effect.fn("Write.write")(function* (file: ConfigFile) {
  const { path } = file
  yield* Effect.tryPromise({
    try: async () => {
      await makeFolder(dirname(path))
      // A folder of our own that others may enter is none of theirs; one that belongs to somebody else stays as it is.
      await chmod(dirname(path), 0o700).catch(() => undefined)
      const place = await behind(path)
      await makeFolder(dirname(place))
      await replace(place, render(file))
    },
    catch: (cause) =>
      new UsageError({
        detail: `${path}: the config file cannot be written: ${reasonOf(cause)}; XDG_CONFIG_HOME names another place`
      })
  })
})
