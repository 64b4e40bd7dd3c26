/** Before all tests: a built command that is as new as its sources, in a folder of its own that no later build touches. */
import { execFileSync } from "node:child_process"
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    /** Path of the built command. */
    readonly command: string
  }
}

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

export default (project: TestProject) => {
  execFileSync(process.execPath, [join(root, "scripts", "setup.mjs")], { stdio: ["ignore", "ignore", "inherit"] })
  const copy = mkdtempSync(join(tmpdir(), "built-"))
  for (const name of ["bin", "package.json"]) cpSync(join(root, name), join(copy, name), { recursive: true })
  // What is no part of the bundle, such as the client of container engines, is found as in an installation.
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  project.provide("command", join(copy, "bin", "batch-runner.js"))
  return () => rmSync(copy, { recursive: true, force: true })
}
