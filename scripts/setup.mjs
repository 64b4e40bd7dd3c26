/** Set-up on demand: installs the locked packages when they are missing or out of date, and builds when sources are newer. */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const at = (...parts) => join(root, ...parts)

/** Without what a global installation told npm, which is not meant for the packages of this folder. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^npm_config_(global|location|.*prefix)$/i.test(name))
)

/** Runs a command with its words on standard error, so that standard output stays the program's own. */
const run = (command, args) => {
  const { status } = spawnSync(command, args, {
    cwd: root,
    env,
    stdio: ["ignore", 2, 2],
    shell: process.platform === "win32"
  })
  if (status !== 0) {
    console.error(`set-up: ${command} ${args.join(" ")} did not succeed`)
    process.exit(1)
  }
}

const packagesOf = (path, skipRoot) => {
  const { packages } = JSON.parse(readFileSync(path, "utf8"))
  return Object.entries(packages).filter(([name, entry]) => name !== "" && !(skipRoot && entry.optional))
}

/** Whether every locked package that this machine needs is installed in its locked version. */
const installed = () => {
  const record = at("node_modules", ".package-lock.json")
  if (!existsSync(record)) return false
  const have = new Map(packagesOf(record, false).map(([name, { version }]) => [name, version]))
  return packagesOf(at("package-lock.json"), true).every(
    ([name, { version, peer, dev }]) =>
      have.get(name) === version || (peer === true && dev === undefined && !have.has(name))
  )
}

const newest = (path) =>
  statSync(path).isDirectory()
    ? Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))))
    : statSync(path).mtimeMs

const built = () => {
  const made = [at("bin", "batch-runner.js"), at("dist", "index.js")]
  if (!made.every((path) => existsSync(path))) return false
  const sources = ["src", "scripts", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"]
  return Math.max(...sources.map((name) => newest(at(name)))) <= Math.min(...made.map(newest))
}

if (!installed()) {
  console.error("set-up: installing packages (npm ci) …")
  // No package needs a script of its own to work, and what npm says of those that have one is nothing a user could act on.
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
}
if (!built()) {
  console.error("set-up: building …")
  run(process.execPath, [at("scripts", "build.mjs")])
}
