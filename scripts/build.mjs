/** Builds the command (one program and its launcher under bin/) and the library (plain modules with declarations under dist/). */
import { execFileSync, spawnSync } from "node:child_process"
import { hash } from "node:crypto"
import { chmodSync, copyFileSync, readFileSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const inRoot = (...parts) => join(root, ...parts)

rmSync(inRoot("bin"), { recursive: true, force: true })
rmSync(inRoot("dist"), { recursive: true, force: true })

const bundle = {
  absWorkingDir: root,
  bundle: true,
  // What is imported when it is needed stays a part that runs when it is needed.
  format: "cjs",
  platform: "node",
  target: "node20.19",
  mainFields: ["module", "main"],
  conditions: ["import"],
  define: { "import.meta.url": "__url" },
  banner: { js: 'const __url=require("node:url").pathToFileURL(__filename).href;' },
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: false,
  sourcemap: false,
  logLevel: "warning"
}
await build({
  ...bundle,
  entryPoints: ["src/main.ts"],
  outfile: "bin/program.cjs",
  // They bring native files or read their own; a run that needs them finds them beside the program.
  external: ["dockerode", "modal", "playwright-core", "sharp"],
  // The launcher's way of running the program knows `require` alone.
  supported: { "dynamic-import": false }
})
// A thread of the program's, which starts from a file of its own.
await build({ ...bundle, entryPoints: ["src/tools/web/PageWorker.ts"], outfile: "bin/page-worker.cjs" })
copyFileSync(inRoot("scripts", "launch.mjs"), inRoot("bin", "batch-runner.js"))
chmodSync(inRoot("bin", "batch-runner.js"), 0o755)

execFileSync(
  process.execPath,
  [inRoot("node_modules", "typescript", "bin", "tsc"), "-p", inRoot("tsconfig.build.json")],
  {
    stdio: "inherit"
  }
)

// Without it the program is the same, and starts more slowly. It fits this Node on this kind of machine and is never published.
const made = hash("sha1", readFileSync(inRoot("bin", "program.cjs"), "utf8")).slice(0, 12)
const cache = inRoot("bin", `program.${process.version}-${process.platform}-${process.arch}-${made}.cache`)
const compiled = spawnSync(
  process.execPath,
  [inRoot("scripts", "compile.mjs"), inRoot("bin", "program.cjs"), `${cache}.new`],
  { encoding: "utf8", timeout: 60_000 }
)
if (compiled.status === 0) renameSync(`${cache}.new`, cache)
else {
  rmSync(`${cache}.new`, { force: true })
  console.warn(`the program will start more slowly, its code was not compiled ahead: ${compiled.stderr.slice(-500)}`)
}
