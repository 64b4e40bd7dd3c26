/** The built command as a shell would start it: in an empty folder, with an environment of its own, its files read back. */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, inject, onTestFinished } from "vitest"
import type { Failure } from "../../src/trajectory/Outcome.ts"
import type { Row } from "../../src/trajectory/Trajectory.ts"
import type * as ModelServer from "./ModelServer.ts"

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** Milliseconds from its start to its end. */
  readonly took: number
}

export interface Running {
  readonly child: ChildProcess
  readonly pid: number
  readonly ended: Promise<Ended>
  readonly kill: (signal: NodeJS.Signals) => void
}

export type Environment = Readonly<Record<string, string>>
export type Options = Readonly<Record<string, string | number | boolean | undefined>>

/** A folder to work in; it is gone after the test, with all that was started in it. */
export class Workplace {
  readonly root = mkdtempSync(join(tmpdir(), "command-"))
  /** What the command takes for the folder of temporary files. */
  readonly tmp = join(this.root, "tmp")
  private readonly started: Array<Running> = []

  /** A test that runs beside others of its file hands over its own `onTestFinished`. */
  constructor(whenFinished: typeof onTestFinished = onTestFinished) {
    mkdirSync(this.tmp)
    mkdirSync(this.path("home"))
    whenFinished(async () => {
      for (const { child } of this.started) child.kill("SIGKILL")
      await Promise.all(this.started.map(({ ended }) => ended))
      rmSync(this.root, { recursive: true, force: true })
    })
  }

  path(...parts: ReadonlyArray<string>): string {
    return join(this.root, ...parts)
  }

  write(name: string, content: string | Buffer): string {
    writeFileSync(this.path(name), content)
    return name
  }

  /** Writes a data set of prompts, or of whole rows; gives its name. */
  dataset(rows: ReadonlyArray<string | object>, name = "prompts.jsonl"): string {
    const lines = rows.map((row) => `${JSON.stringify(typeof row === "string" ? { prompt: row } : row)}\n`)
    return this.write(name, lines.join(""))
  }

  /** Starts the command with words as typed. */
  start(argv: ReadonlyArray<string>, environment: Environment = {}): Running {
    return this.spawn(process.execPath, [inject("command"), ...argv], environment)
  }

  /** Starts a line of shell in which `$BATCH_RUNNER` is the command. */
  shell(line: string, environment: Environment = {}): Running {
    const command = `'${process.execPath}' '${inject("command")}'`
    return this.spawn("/bin/bash", ["-c", line.replaceAll("$BATCH_RUNNER", command)], environment)
  }

  private spawn(program: string, argv: ReadonlyArray<string>, environment: Environment): Running {
    const before = performance.now()
    const child = spawn(program, argv, {
      cwd: this.root,
      env: { PATH: process.env.PATH, HOME: this.path("home"), TMPDIR: this.tmp, ...environment },
      // Never written to and never closed: the command must not care.
      stdio: ["pipe", "pipe", "pipe"]
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text
    })
    const ended = new Promise<Ended>((resolve) =>
      child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr, took: performance.now() - before }))
    )
    const running = {
      child,
      pid: child.pid ?? 0,
      ended,
      kill: (signal: NodeJS.Signals) => {
        child.kill(signal)
      }
    }
    this.started.push(running)
    return running
  }

  /** Starts a run named `run` against `server`. */
  begin(server: Pick<ModelServer.ModelServer, "url">, options: Options = {}, environment: Environment = {}): Running {
    return this.start(this.argv(server, options), environment)
  }

  /** A run named `run` against `server`, to its end. */
  run(server: Pick<ModelServer.ModelServer, "url">, options: Options = {}, environment: Environment = {}) {
    return this.begin(server, options, environment).ended
  }

  /** A run to its end, which every prompt must come to. */
  async complete(server: Pick<ModelServer.ModelServer, "url">, options: Options = {}, environment: Environment = {}) {
    const ended = await this.run(server, options, environment)
    expect(ended.code, ended.stderr.slice(-5000)).toBe(0)
    return ended
  }

  argv(server: Pick<ModelServer.ModelServer, "url">, options: Options): ReadonlyArray<string> {
    return argv({
      dataset_file: "prompts.jsonl",
      batch_size: 10,
      run_name: "run",
      distribution: "terminal_only",
      model: "test-model",
      base_url: server.url,
      ...options
    })
  }

  /** The text of a file of the run, empty when it is not there. */
  text(name: string, run = "run"): string {
    const path = this.path("data", run, name)
    return existsSync(path) ? readFileSync(path, "utf8") : ""
  }

  json(name: string, run = "run"): Readonly<Record<string, unknown>> {
    return JSON.parse(this.text(name, run))
  }

  rows(name = "trajectories.jsonl", run = "run"): ReadonlyArray<Row> {
    return lines(this.text(name, run)).map((line) => JSON.parse(line))
  }

  failures(run = "run"): ReadonlyArray<Failure> {
    return lines(this.text("failures.jsonl", run)).map((line) => JSON.parse(line))
  }

  names(run = "run"): ReadonlyArray<string> {
    return existsSync(this.path("data", run)) ? readdirSync(this.path("data", run)).toSorted() : []
  }

  /** Rows of all batch files, in the order of the files. */
  batchRows(run = "run"): ReadonlyArray<Row> {
    return this.batchNames(run).flatMap((name) => this.rows(name, run))
  }

  /** Prompts of the whole lines in the batch files as they lie there, also while a run writes them. */
  saved(run = "run"): ReadonlyArray<string> {
    return this.batchNames(run).flatMap((name) =>
      this.text(name, run)
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line).conversations[0].value)
    )
  }

  batchNames(run = "run"): ReadonlyArray<string> {
    const number = (name: string) => Number(/\d+/.exec(name)?.[0])
    return this.names(run)
      .filter((name) => name.startsWith("batch_"))
      .toSorted((a, b) => number(a) - number(b))
  }
}

/** Options as they are typed; a switch that is on stands alone, what is off or undefined is left out. */
export const argv = (options: Options): ReadonlyArray<string> =>
  Object.entries(options).flatMap(([name, value]) =>
    value === undefined || value === false ? [] : [value === true ? `--${name}` : `--${name}=${value}`]
  )

const lines = (text: string): ReadonlyArray<string> => {
  if (text === "") return []
  expect(text.endsWith("\n")).toBe(true)
  return text.slice(0, -1).split("\n")
}

/** Command lines of the processes that this runner's sandboxes hold, dead ones that nobody has reaped left out. */
export const sandboxed = (runner: number): ReadonlyArray<string> =>
  readdirSync("/proc").flatMap((pid) => {
    const read = (name: string): string => {
      try {
        return readFileSync(`/proc/${pid}/${name}`, "latin1")
      } catch {
        return ""
      }
    }
    // The environment of a process that is stuck in the kernel cannot be read without waiting for it.
    const stuck = !/^\d+$/.test(pid) || /^.*\) D /s.test(read("stat"))
    const mine = !stuck && read("environ").includes(`SANDBOX_CALL=batch-runner-${runner}-`)
    return mine ? [read("cmdline").replaceAll("\0", " ")] : []
  })

export const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Waits until something holds. */
export const until = async (holds: () => boolean, millis = 20_000): Promise<void> => {
  const end = performance.now() + millis
  while (!holds()) {
    if (performance.now() > end) throw new Error(`not within ${millis} ms: ${holds}`)
    await sleep(5)
  }
}

/** Expects a run that was not started: its exit code, one line that says why, nothing else, and no folder made. */
export const expectRefused = (place: Workplace, ended: Ended, says: RegExp): void => {
  expect(ended.stderr).toMatch(says)
  expect(ended.stderr).toMatch(/^batch-runner: [^\n]+\n$/)
  expect(ended).toMatchObject({ code: 2, stdout: "" })
  expect(existsSync(place.path("data"))).toBe(false)
}

/** Expects every line of every file of the run to be JSON on its own to another language's line reader; gives their numbers. */
export const countByPython = async (place: Workplace, run = "run"): Promise<Readonly<Record<string, number>>> => {
  const script = `
import json, pathlib, sys
counts = {}
for path in pathlib.Path(sys.argv[1]).glob("*.jsonl"):
    rows = [json.loads(line) for line in path.read_bytes().decode("utf-8").splitlines()]
    json.dumps(rows, ensure_ascii=False).encode("utf-8")
    counts[path.name] = len(rows)
print(json.dumps(counts))
`
  const { stdout, stderr } = await place.shell(`python3 -c '${script}' '${place.path("data", run)}'`, {
    HOME: process.env.HOME ?? ""
  }).ended
  expect(stderr).toBe("")
  return JSON.parse(stdout)
}
