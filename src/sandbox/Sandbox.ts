/** The place where one prompt's tools act: its commands, files and background processes, shared with no other prompt. */
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import type { Output } from "./Output.ts"

/**
 * `Unavailable`: there is no such backend here, or it cannot do what is asked. `EngineDown`: it does not answer now.
 * `ImageMissing`: the image cannot be had. `ImageUnreachable`: its registry does not answer now, or is busy. `ImageUnfit`: it
 * is there, but no session can run in it. `NoSpace`: the disk is full. `StartFailed`, `Lost`: bad luck.
 */
export const reasons = [
  "Unavailable",
  "EngineDown",
  "ImageMissing",
  "ImageUnreachable",
  "ImageUnfit",
  "NoSpace",
  "StartFailed",
  "Lost"
] as const

/** Why a sandbox could not do its part. `detail` is one sentence for people. */
export class SandboxError extends Schema.TaggedError<SandboxError>()("SandboxError", {
  reason: Schema.Literal(...reasons),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
  /** Whether another attempt, with nothing changed on the machine, may succeed. */
  get transient(): boolean {
    return this.passing || this.reason === "ImageUnreachable"
  }
  /** Whether it may succeed if it is tried again within seconds. */
  get passing(): boolean {
    return this.reason === "EngineDown" || this.reason === "StartFailed" || this.reason === "Lost"
  }
}

/** What a file operation answers when the path is the caller's mistake: the model reads `message` and corrects itself. */
export class FileError extends Schema.TaggedError<FileError>()("FileError", {
  path: Schema.String,
  reason: Schema.Literal("NotFound", "NotAFile", "NotAllowed", "TooLarge", "NoSpace", "BadPath", "Other"),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

export interface ExecOptions {
  /** Where the command runs; relative paths start at the sandbox's own `cwd`, which is also the default. */
  readonly cwd?: string | undefined
  /** Seconds until the command is killed with all its children. */
  readonly timeout: number
  /** Bytes on standard input; empty when absent, never inherited. */
  readonly stdin?: Uint8Array | undefined
  /** Bytes of output kept: half from the head, half from the tail. */
  readonly keep?: number | undefined
}

/** How a command ended. `Exited` with any code is the command's own affair; the others are the tool's failures. */
export type ExecResult =
  /** Standard output and standard error in the order they came; 128 + n after signal n. */
  | { readonly _tag: "Exited"; readonly exitCode: number; readonly output: Output }
  | { readonly _tag: "TimedOut"; readonly output: Output }
  /** `cwd` is no directory in the sandbox; nothing ran. */
  | { readonly _tag: "NoDirectory"; readonly cwd: string }

/** What is known of a background process at one moment. */
export interface BackgroundState {
  /** null while it runs. */
  readonly exitCode: number | null
  readonly output: Output
}

/** A command that outlives the call that started it; it ends with the sandbox at the latest. */
export interface Background {
  /** Unique in its sandbox: `proc_1`, `proc_2`, … */
  readonly id: string
  readonly command: string
  /** As seen inside the sandbox where the backend can tell, else 0. */
  readonly pid: number
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  readonly state: Effect.Effect<BackgroundState>
  /** Waits for its end at most `seconds`, then gives the state as it is. */
  readonly wait: (seconds: number) => Effect.Effect<BackgroundState>
  /** Bytes to its standard input; false when that is closed. */
  readonly write: (data: Uint8Array) => Effect.Effect<boolean>
  /** Ends it with all its children. */
  readonly kill: Effect.Effect<void>
}

/** A program that is talked to while it runs. It ends with the scope of its connection at the latest, with all its children. */
export interface Connection {
  /** Bytes to its standard input; false when that is closed. */
  readonly write: (data: Uint8Array) => Effect.Effect<boolean>
  /** Waits for its end; gives its exit code, 128 + n after signal n. */
  readonly ended: Effect.Effect<number>
}

export interface ConnectOptions {
  readonly cwd?: string | undefined
  /** Called with what it prints, on standard output and standard error alike, as that comes. */
  readonly take: (data: Uint8Array) => void
}

export interface FileContent {
  /** The first `maxBytes` bytes of the file. */
  readonly bytes: Uint8Array
  /** Bytes of the whole file. */
  readonly size: number
}

export interface SandboxService {
  /** Absolute directory, inside, of terminal and file tools. */
  readonly cwd: string
  /** Runs `command` in a POSIX shell (bash where there is one) and waits for its end. */
  readonly exec: (command: string, options: ExecOptions) => Effect.Effect<ExecResult, SandboxError>
  /** Starts `command` without waiting; its standard input stays open for `write`. */
  readonly start: (
    command: string,
    options: { readonly cwd?: string | undefined }
  ) => Effect.Effect<Background, SandboxError | FileError>
  /** Starts `command` and stays joined to it; it is not among those started. Absent where the backend gives no live pipe both ways. */
  readonly connect?: (
    command: string,
    options: ConnectOptions
  ) => Effect.Effect<Connection, SandboxError | FileError, Scope.Scope>
  /** Everything started so far, oldest first, ended ones included. */
  readonly started: Effect.Effect<ReadonlyArray<Background>>
  /** Reads a regular file; symlinks are followed inside the sandbox. */
  readonly read: (
    path: string,
    options: { readonly maxBytes: number }
  ) => Effect.Effect<FileContent, FileError | SandboxError>
  /** Replaces or creates a file, with its parent directories; the mode of an existing file stays. */
  readonly write: (path: string, bytes: Uint8Array) => Effect.Effect<void, FileError | SandboxError>
  /** Whether nothing was made for it yet, so that there is nothing to release; absent where it is made when it is opened. */
  readonly idle?: () => boolean
}

/** One prompt's sandbox. */
export class Sandbox extends Context.Tag("batch-runner/Sandbox")<Sandbox, SandboxService>() {}

/** What a prompt asks of its sandbox. */
export interface SandboxSpec {
  /** Short and unique in the run, for labels and folder names: letters, digits, `-`. */
  readonly id: string
  /** Container image; empty for none. */
  readonly image: string
  /** Directory of its tools; empty for the backend's own choice. */
  readonly cwd: string
}

/**
 * Where sandboxes come from: `open` makes a place, closing its scope destroys it. It is a scoped effect, not a layer, since
 * there is one for each prompt: building a layer costs more than half of a bare model call.
 */
export class Sandboxes extends Context.Tag("batch-runner/Sandboxes")<
  Sandboxes,
  {
    readonly open: (spec: SandboxSpec) => Effect.Effect<SandboxService, SandboxError, Scope.Scope>
    /** Whether opening such a sandbox does nothing yet, as its place is made with its first call; by default none is so. */
    readonly lazy?: (spec: SandboxSpec) => boolean
  }
>() {}

/** What every backend of containers is told about its sandboxes. */
export interface ContainerOptions {
  /** Name of the run, for labels. */
  readonly run: string
  /** Whether commands reach the network. */
  readonly network: boolean
  /** Processors at most; undefined for the backend's own choice. */
  readonly cpus: number | undefined
  /** Bytes of memory at most; undefined for the backend's own choice. */
  readonly memory: number | undefined
  /** Seconds after which a sandbox ends by itself, whatever became of its runner. */
  readonly lifetime: number
  /** Lets the starts through at a pace, each once its image is there; all at once when undefined. */
  readonly ramp?: (<A, E, R>(start: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/** What a backend removed of what dead runners left, for people: `2 containers`; empty for nothing. */
export type Cleaned = ReadonlyArray<string>

/** So many of what was removed, in words. */
export const cleaned = (count: number, one: string, many = `${one}s`): Cleaned =>
  count === 0 ? [] : [`${count} ${count === 1 ? one : many}`]

/** The sandbox of `spec` as a layer. */
export const layerOf = (spec: SandboxSpec): Layer.Layer<Sandbox, SandboxError, Sandboxes> =>
  Layer.scoped(
    Sandbox,
    Effect.flatMap(Sandboxes, (sandboxes) => sandboxes.open(spec))
  )
