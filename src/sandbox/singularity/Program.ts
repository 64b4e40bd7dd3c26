/** The container program of this machine, `apptainer` or `singularity`: where it lies, and one run of it to its end. */
import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { delimiter, isAbsolute, join } from "node:path"
import { Effect, Either } from "effect"
import * as Child from "../Child.ts"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"

/** The variable that may name the program: a path, or a name on PATH. */
export const variable = "BATCH_RUNNER_APPTAINER"

/** Where the program finds its own helpers. That of the runner would show in the environment of a sandbox's first process. */
export const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const runs = (file: string): boolean => Either.isRight(Either.try(() => accessSync(file, constants.X_OK)))

/** Where a program of that name lies; undefined when there is none that can be run. */
export const located = (name: string): string | undefined => {
  if (isAbsolute(name)) return runs(name) ? name : undefined
  return `${process.env.PATH ?? ""}${delimiter}${path}`
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => isAbsolute(file) && runs(file))
}

const absent = (named: string | undefined) =>
  new SandboxError({
    reason: "Unavailable",
    detail:
      named === undefined
        ? `Singularity sandboxes need the program apptainer (or singularity), and there is none on PATH: install Apptainer (https://apptainer.org/docs/admin/main/installation.html, or \`apt install apptainer\`, \`dnf install apptainer\`), or name it by ${variable}.`
        : `${named} is no program that can be run: let ${variable} name apptainer or singularity, or leave it out to search PATH.`
  })

/** The program's absolute path: what is named (by the caller or by the variable), else the first of its names on PATH. */
export const find = (given: string | undefined): Effect.Effect<string, SandboxError> =>
  Effect.suspend(() => {
    const named = given ?? (process.env[variable]?.trim() || undefined)
    const found = named === undefined ? (located("apptainer") ?? located("singularity")) : located(named)
    return found === undefined ? absent(named) : Effect.succeed(found)
  })

export interface Ended {
  /** 128 + n after signal n; -1 when it was ended because its time was over. */
  readonly exitCode: number
  readonly output: string
  /** What it complained of. */
  readonly errors: string
}

export interface RunOptions {
  /** The whole environment. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Milliseconds until it is ended, with all that is in its process group. */
  readonly millis: number
  readonly cwd?: string | undefined
}

/** Characters kept of what a program prints. */
const kept = 20_000

/** Milliseconds that output may come late: what it left running may hold its pipes open. */
const late = 100

/** Runs a program in a process group of its own; interruption ends it. */
export const run = (
  argv: ReadonlyArray<string>,
  { env, millis, cwd }: RunOptions
): Effect.Effect<Ended, SandboxError> => {
  const running = Effect.async<Ended, SandboxError>((resume) => {
    const said = { output: "", errors: "" }
    const failed = (cause: unknown) =>
      resume(
        new SandboxError({
          reason: "StartFailed",
          detail: `${argv[0]} could not be started: ${cause instanceof Error ? cause.message : cause}`
        })
      )
    const started = Either.try(() =>
      spawn(argv[0] ?? "", argv.slice(1), {
        env,
        cwd: cwd ?? "/",
        detached: true,
        stdio: Child.shielded(["ignore", "pipe", "pipe"])
      })
    )
    if (Either.isLeft(started)) return failed(started.left)
    const child = started.right
    let code = 0
    let timer: NodeJS.Timeout | undefined
    const finish = () => {
      clearTimeout(timer)
      child.stdout?.destroy()
      child.stderr?.destroy()
      resume(Effect.succeed({ exitCode: code, ...said }))
    }
    const take = (stream: "output" | "errors") => (data: Buffer) => {
      said[stream] = (said[stream] + data).slice(-kept)
    }
    child.stdout?.on("data", take("output"))
    child.stderr?.on("data", take("errors"))
    child.on("error", failed)
    child.on("exit", (status) => {
      code = status ?? 137
      timer = setTimeout(finish, late)
    })
    child.on("close", finish)
    return Effect.sync(() => {
      if (child.pid !== undefined) Proc.signal(-child.pid, "SIGKILL")
      child.stdout?.destroy()
      child.stderr?.destroy()
    })
  })
  return Effect.map(
    Proc.atMost(Effect.either(running), millis),
    (ended) => ended ?? Either.right({ exitCode: -1, output: "", errors: "it took too long" })
  ).pipe(Effect.flatMap(Either.match({ onLeft: Effect.fail, onRight: (ended) => Effect.succeed(ended) })))
}
