/** Images as files or folders that instances can be started from: converted once on a machine, and kept in a folder of the user's. */
import { hash } from "node:crypto"
import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { Clock, Deferred, Effect, Either, FiberId, Option, Schedule, Schema, type Scope } from "effect"
import * as Place from "../Place.ts"
import { SandboxError } from "../Sandbox.ts"
import * as Complaint from "./Complaint.ts"
import * as Leftovers from "./Leftovers.ts"
import * as Program from "./Program.ts"
import * as Reference from "./Reference.ts"

/** An image that is there. */
export interface Image {
  /** File or folder. */
  readonly path: string
  /** What the data set calls it. */
  readonly name: string
  /** The directory that it wants its programs to run in. */
  readonly directory: string
}

export interface Cache {
  /** `mounts`: whether an image file can be used as it is; else it is unpacked once. */
  readonly image: (name: string, mounts: boolean) => Effect.Effect<Image, SandboxError>
}

/** Milliseconds for one image to be fetched and converted. */
const limit = 3_600_000

/** Images converted at one time. */
const atOnce = 2

/** Whether this user can mount an image file: root by the kernel, others by a program and the device that it needs. */
export const mounts = (): boolean => {
  if (process.geteuid?.() === 0) return true
  const device = Either.try(() => accessSync("/dev/fuse", constants.R_OK | constants.W_OK))
  const helpers = ["squashfuse_ll", "squashfuse"].flatMap((name) =>
    Program.path.split(":").map((folder) => join(folder, name))
  )
  return Either.isRight(device) && helpers.some(existsSync)
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** A readable name that no other text has. */
const keyOf = (text: string): string =>
  `${text.replaceAll(/[^\w.]+/g, "-").slice(-60)}-${hash("sha256", text).slice(0, 16)}`

const Config = Schema.parseJson(Schema.Struct({ WorkingDir: Schema.optional(Schema.String) }))
const decodeConfig = Schema.decodeUnknownOption(Config)

// Who comes second finds the image there. Only a whole one gets its name.
const script = 'f=$1; m=$2; shift 2; [ -e "$f" ] && exit 0; "$@" && mv -T -- "$m" "$f"'

/** Waits between tries of a registry that does not answer. */
const pauses = Schedule.exponential("1 second")

/** Milliseconds until it is asked again for the same image. */
const pause = 60_000

/** Whether a folder looks like the root of a system. */
const isRoot = (folder: string): boolean =>
  [".singularity.d", "bin", "usr"].some((name) => existsSync(join(folder, name)))

const rootless = (name: string) =>
  new SandboxError({
    reason: "ImageUnfit",
    detail: `No session can run in the folder ${name}: it is no root of a system (there is no bin and no usr in it)`
  })

const missing = (name: string, path: string) =>
  new SandboxError({
    reason: "ImageMissing",
    detail: `The image ${name} cannot be had: there is no ${path}; give a SIF file, a sandbox folder, or an address such as docker://python:3.11-slim.`
  })

/** The file or folder at `path`, which people call `name`, if a session can run in it. */
export const local = (name: string, path: string): Either.Either<string, SandboxError> => {
  if (!existsSync(path)) return Either.left(missing(name, path))
  return isFolder(path) && !isRoot(path) ? Either.left(rootless(name)) : Either.right(path)
}

const convertedAt = (folder: string, address: string): string => join(folder, `${keyOf(address)}.sif`)

/** Whether what is at `address` has been converted already. */
export const converted = (folder: string, address: string): boolean => existsSync(convertedAt(folder, address))

/** Opens the cache in `folder`. Conversions go on when who asked is gone; they end with the scope. */
export const make = (program: string, folder: string): Effect.Effect<Cache, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const gate = Effect.unsafeMakeSemaphore(atOnce)
    const asked = new Map<string, Deferred.Deferred<string, SandboxError>>()
    const directories = new Map<string, string>()

    /** Makes `target` by a command that gets the place to make it at. */
    const convert = (
      doing: "converting" | "unpacking",
      name: string,
      target: string,
      command: (made: string) => ReadonlyArray<string>
    ): Effect.Effect<string, SandboxError> => {
      const part = join(folder, Leftovers.partName())
      const made = join(part, "made")
      return Effect.gen(function* () {
        yield* Place.make(part, ["tmp"])
        yield* Effect.logInfo(`${doing} the image ${name}, once on this machine`)
        const began = yield* Clock.currentTimeMillis
        const tmp = process.env.APPTAINER_TMPDIR ?? process.env.SINGULARITY_TMPDIR ?? join(part, "tmp")
        const lock = Program.located("flock")
        // The kernel frees the lock when its holders are dead, and only then.
        const ended = yield* Program.run(
          [
            ...(lock === undefined ? [] : [lock, `${target}.lock`]),
            ...["/bin/sh", "-c", script, "sh", target, made, ...command(made)]
          ],
          // Keys of registries and proxies are the user's; no code of the image runs here.
          {
            env: { ...process.env, APPTAINER_TMPDIR: tmp, SINGULARITY_TMPDIR: tmp },
            millis: limit,
            cwd: process.cwd()
          }
        )
        if (ended.exitCode !== 0 || !existsSync(target)) return yield* Complaint.image(name, ended.errors)
        const seconds = ((yield* Clock.currentTimeMillis) - began) / 1000
        const done = doing === "converting" ? "converted" : "unpacked"
        yield* Effect.logInfo(`${done} the image ${name} in ${seconds.toFixed(1)} s: ${target}`)
        return target
      }).pipe(Effect.ensuring(Effect.suspend(() => (existsSync(part) ? Place.remove(part) : Effect.void))))
    }

    /** Gives `target`, made by whoever asked first; that it cannot be had is remembered. */
    const once = (target: string, make: Effect.Effect<string, SandboxError>): Effect.Effect<string, SandboxError> =>
      Effect.gen(function* () {
        const known = asked.get(target)
        if (known !== undefined) return yield* Deferred.await(known)
        if (existsSync(target)) return target
        const answer = Deferred.unsafeMake<string, SandboxError>(FiberId.none)
        asked.set(target, answer)
        const work = Effect.interruptible(gate.withPermits(1)(make)).pipe(
          Effect.tapBoth({
            onSuccess: () => Effect.sync(() => asked.delete(target)),
            onFailure: ({ transient, reason }) => {
              const forgetting = Effect.sync(() => asked.delete(target))
              if (reason !== "ImageUnreachable") return transient ? forgetting : Effect.void
              return Effect.forkIn(Effect.interruptible(Effect.delay(forgetting, pause)), scope)
            }
          }),
          Effect.onInterrupt(() => Effect.sync(() => asked.delete(target))),
          Effect.intoDeferred(answer)
        )
        yield* Effect.uninterruptible(Effect.forkIn(work, scope))
        return yield* Deferred.await(answer)
      })

    const folderMade = Effect.try({
      try: () => mkdirSync(folder, { recursive: true, mode: 0o700 }),
      catch: (cause) =>
        new SandboxError({
          reason: "Unavailable",
          detail: `The cache of converted images, ${folder}, cannot be made: ${cause instanceof Error ? cause.message : cause}`
        })
    })

    /** The image's own working directory, as its file tells. */
    const directoryOf = (file: string): Effect.Effect<string, SandboxError> =>
      Effect.gen(function* () {
        const known = directories.get(file)
        if (known !== undefined) return known
        const ended = yield* Program.run([program, "sif", "dump", "3", file], {
          env: { PATH: Program.path },
          millis: 10_000
        })
        const found = Option.getOrUndefined(decodeConfig(ended.output))?.WorkingDir ?? ""
        directories.set(file, found)
        return found
      })

    const fetched = (name: string): Effect.Effect<string, SandboxError> =>
      Effect.gen(function* () {
        const reference = Reference.read(name, process.cwd())
        if (reference._tag === "Local") return yield* local(name, reference.path)
        yield* folderMade
        const target = convertedAt(folder, reference.address)
        const options = ["--disable-cache", ...(reference.plain ? ["--no-https"] : [])]
        return yield* once(
          target,
          convert("converting", name, target, (made) => [program, "build", ...options, made, reference.address]).pipe(
            Effect.retry({ while: ({ reason }) => reason === "ImageUnreachable", times: 3, schedule: pauses })
          )
        )
      })

    return {
      image: Effect.fn("Cache.image")(function* (name: string, mounts: boolean) {
        const path = yield* fetched(name)
        if (isFolder(path)) return { path, name, directory: "" }
        const directory = yield* directoryOf(path)
        if (mounts) return { path, name, directory }
        yield* folderMade
        const stat = statSync(path, { throwIfNoEntry: false })
        const target = join(folder, keyOf(`${path} ${stat?.size} ${stat?.mtimeMs}`))
        const unpack = convert("unpacking", name, target, (made) => [program, "build", "--sandbox", made, path])
        return { path: yield* once(target, unpack), name, directory }
      })
    }
  })
