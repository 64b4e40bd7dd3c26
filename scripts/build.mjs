/** Builds the command (one bundle under bin/) and the library (plain modules with declarations under dist/). */
import { execFileSync } from "node:child_process"
import { chmodSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const inRoot = (...parts) => join(root, ...parts)

rmSync(inRoot("bin"), { recursive: true, force: true })
rmSync(inRoot("dist"), { recursive: true, force: true })

await build({
  absWorkingDir: root,
  entryPoints: { "batch-runner": "src/main.ts" },
  outdir: "bin",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: false,
  sourcemap: false,
  logLevel: "warning",
  // CommonJS parts of the bundle ask for Node's own modules by require.
  banner: {
    js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);'
  }
})
chmodSync(inRoot("bin", "batch-runner.js"), 0o755)

execFileSync(
  process.execPath,
  [inRoot("node_modules", "typescript", "bin", "tsc"), "-p", inRoot("tsconfig.build.json")],
  {
    stdio: "inherit"
  }
)
