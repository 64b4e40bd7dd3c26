/** Small images for the tests of Singularity sandboxes, made of busybox, and what else the machine shows of instances. */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"

/** The container program; undefined where there is none. */
export const program = [process.env.BATCH_RUNNER_APPTAINER, "apptainer", "singularity"].find(
  (name) => name !== undefined && spawnSync(name, ["--version"]).status === 0
)

/** Makes a sandbox folder that holds busybox and nothing else. */
export const folder = (path: string): string => {
  for (const part of ["bin", "dev", "etc", "proc", "root", "sys", "usr", "var"]) {
    mkdirSync(join(path, part), { recursive: true })
  }
  copyFileSync("/bin/busybox", join(path, "bin", "busybox"))
  const applets = spawnSync("/bin/busybox", ["--list"]).stdout.toString().trim().split("\n")
  for (const name of applets) if (name !== "busybox") symlinkSync("busybox", join(path, "bin", name))
  writeFileSync(join(path, "etc", "passwd"), "root:x:0:0:root:/root:/bin/sh\n")
  return path
}

/** Makes a SIF file of a sandbox folder. */
export const file = (path: string, of: string): string => {
  const made = spawnSync(program ?? "", ["--silent", "build", path, of], { encoding: "utf8" })
  if (made.status !== 0) throw new Error(`${path} could not be made: ${made.stderr}`)
  return path
}

/** Process ids of those whose command line matches a pattern of Perl. */
export const processes = (pattern: string): ReadonlyArray<number> =>
  spawnSync("grep", [
    "-slaP",
    "--",
    pattern,
    ...readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [`/proc/${name}/cmdline`] : []))
  ])
    .stdout.toString()
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [Number(line.split("/")[2])]))
    .filter((pid) => pid !== process.pid && existsSync(`/proc/${pid}/exe`))

/** Instances of the runner with that process id. */
export const instances = (pid: number): ReadonlyArray<number> => processes(`\\[batch-runner-singularity-${pid}-`)

const found = (): ReadonlyArray<string> => [
  ...readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes("batch-runner-singularity")),
  ...["memory", "unified", "."].flatMap((group) => {
    const groups = join("/sys/fs/cgroup", group, "apptainer")
    return existsSync(groups) ? readdirSync(groups).filter((name) => /^\d+$/.test(name)) : []
  })
]

/** What others have left on this machine before. */
const before = new Set(found())

/** Mounts, loop devices and control groups that are left of instances. */
export const remains = (): ReadonlyArray<string> => found().filter((one) => !before.has(one))

/** A program that is run by another user or killed: opens a sandbox, starts processes in it, and prints what `command` prints. */
export const runner = async (path: string): Promise<string> => {
  const entry = `
    import { Effect } from "effect"
    import * as Output from "./src/sandbox/Output.ts"
    import { Sandboxes } from "./src/sandbox/Sandbox.ts"
    import * as Singularity from "./src/sandbox/Singularity.ts"
    const { options, spec, commands, wait } = JSON.parse(process.argv[2])
    const program = Effect.gen(function* () {
      const box = yield* (yield* Sandboxes).open(spec)
      for (const command of commands) {
        const result = yield* box.exec(command, { timeout: 30 })
        console.log(result._tag === "Exited" ? Output.text(result.output) : result._tag)
      }
      console.log("ready")
      if (wait !== undefined) yield* box.exec(wait, { timeout: 1000 })
    })
    Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(Singularity.layer(options)))).catch((error) => {
      console.log(String(error))
      process.exitCode = 1
    })`
  await build({
    stdin: { contents: entry, resolveDir: process.cwd(), loader: "ts" },
    bundle: true,
    platform: "node",
    format: "esm",
    outfile: path,
    logLevel: "error",
    banner: { js: 'import{createRequire}from"module";const require=createRequire(import.meta.url);' }
  })
  return path
}
