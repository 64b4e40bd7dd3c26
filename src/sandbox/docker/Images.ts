/** The images of a run: each is looked for once, pulled once where it is absent, and what cannot be had is known from then on. */
import { Cause, Clock, Deferred, Effect, Exit, FiberId, Option, Schema, type Scope } from "effect"
import { SandboxError } from "../Sandbox.ts"
import { type Client, drop, EngineError, toSandboxError } from "./Client.ts"
import * as Credentials from "./Credentials.ts"
import { jsonLines } from "./Frames.ts"

export interface Images {
  /** Sees to it that an image is on the engine's machine, pulling it first if need be; gives its name there. */
  readonly have: (image: string) => Effect.Effect<string, SandboxError>
  /** Looks for it anew the next time: others may have removed it. */
  readonly forget: (name: string) => void
}

// Each character can be matched in one way only: a hostile name must not keep us busy.
const host = /[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*(?:\.[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*)*|\[[0-9a-fA-F:]+\]/
const part = /[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*/

/** Docker's grammar of names: a registry and its port, lower-case parts of a path, a tag, a digest. */
const grammar = new RegExp(
  `^(?:(?:${host.source})(?::\\d+)?/)?${part.source}(?:/${part.source})*(?::[A-Za-z0-9_][\\w.-]{0,127})?(?:@[a-z][\\w+.-]*:[0-9a-f]{32,})?$`
)

/**
 * A name as the engine's API wants it: without `docker://`, and never without a tag or a digest, which would mean all tags.
 * undefined for what is no name: the engine's address of it could lead anywhere.
 */
export const normalize = (image: string): string | undefined => {
  const name = image.trim().replace(/^docker:\/\//, "")
  if (name.length > 400 || !grammar.test(name)) return undefined
  const last = name.slice(name.lastIndexOf("/") + 1)
  return /[:@]/.test(last) ? name : `${name}:latest`
}

/** Seconds without a word from the engine after which a pull counts as stuck. */
const silence = 300

/** Pulls of one image from a registry that does not answer, one after the other. */
const tries = 4

/** Milliseconds until a registry that did not answer is asked again for the same image. */
const pause = 60_000

/** Seconds between two words on how a pull goes. */
const interval = 10

const Event = Schema.Struct({
  id: Schema.optional(Schema.String),
  status: Schema.optional(Schema.String),
  error: Schema.optional(Schema.String),
  errorDetail: Schema.optional(Schema.Struct({ message: Schema.optional(Schema.String) })),
  progressDetail: Schema.optional(
    Schema.Struct({ current: Schema.optional(Schema.Number), total: Schema.optional(Schema.Number) })
  )
})

const absent =
  /manifest (for .* )?(unknown|not found)|not found|does not exist|repository name not known|name unknown|no such image|invalid reference|must be lowercase|no match(ing manifest)?|cannot parse/i
const refused =
  /denied|unauthorized|forbidden|authentication required|no basic auth|incorrect username|docker login|login attempt/i
const busy = /toomanyrequests|too many requests|rate limit/i

/** Engines and registries say the same twice. */
const told = (message: string) => message.replace(/^manifest for \S+ not found: /, "").replace(/^(.+): \1$/, "$1")

/** Why an image cannot be had. What a registry says may change with nothing done here only where it is out of reach or busy. */
export const pullError = (image: string) => (error: EngineError) => {
  const { message } = error
  // Names and addresses may hold any word.
  const plain = message.replaceAll(image, "").replaceAll(/\S*:\/\/\S+/g, "")
  if (busy.test(plain)) return toSandboxError(`The image ${image} could not be pulled yet`, "ImageUnreachable")(error)
  if (refused.test(plain)) {
    return new SandboxError({
      reason: "ImageMissing",
      detail: `The image ${image} cannot be had: ${message}; check its name, or log in with \`docker login\``
    })
  }
  if (absent.test(plain)) {
    return new SandboxError({ reason: "ImageMissing", detail: `There is no image ${image}: ${told(message)}` })
  }
  return toSandboxError(`The image ${image} could not be pulled`, "ImageUnreachable")(error)
}

export const noName = (image: string) =>
  new SandboxError({
    reason: "ImageMissing",
    detail: `${JSON.stringify(image.slice(0, 200))} is no name of a container image; allowed: names such as python:3.11-slim or registry.example.org/team/image:tag (files and folders are for --sandbox=singularity)`
  })

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`

const seconds = (millis: number) => `${(millis / 1000).toFixed(1)} s`

/** Sums of what the layers of one pull have told. */
class Layers {
  private readonly sizes = new Map<string, { readonly current: number; readonly total: number }>()

  note(event: typeof Event.Type): void {
    const { current = 0, total = 0 } = event.progressDetail ?? {}
    if (event.id !== undefined && event.status === "Downloading") this.sizes.set(event.id, { current, total })
    const known = this.sizes.get(event.id ?? "")
    if (event.id !== undefined && known !== undefined && event.status === "Download complete") {
      this.sizes.set(event.id, { current: known.total, total: known.total })
    }
  }

  told(): string {
    let [current, total] = [0, 0]
    for (const one of this.sizes.values()) {
      current += one.current
      total += one.total
    }
    return total === 0 ? "" : `, ${megabytes(current)} of ${megabytes(total)}`
  }
}

const pull = (client: Client, image: string): Effect.Effect<void, SandboxError> =>
  Effect.gen(function* () {
    const begun = yield* Clock.currentTimeMillis
    const layers = new Layers()
    let heard = begun
    const saying = Effect.gen(function* () {
      for (;;) {
        yield* Effect.sleep(interval * 1000)
        const now = yield* Clock.currentTimeMillis
        yield* Effect.logInfo(`pulling ${image}: ${seconds(now - begun)}${layers.told()}`)
        if (now - heard < silence * 1000) continue
        return yield* new SandboxError({
          reason: "ImageUnreachable",
          detail: `The image ${image} could not be pulled: the engine said nothing for ${silence} seconds`
        })
      }
    })
    const clock = yield* Effect.clock
    yield* Effect.logInfo(`pulling ${image}`)
    const login = yield* Credentials.find(image, process.env)
    const stream = yield* client
      .call(
        (docker) => docker.pull(image, login === undefined ? {} : { authconfig: Credentials.header(login) }),
        silence
      )
      .pipe(Effect.mapError(pullError(image)))
    const reading = Effect.async<string | undefined>((resume) => {
      let complaint: string | undefined
      const read = jsonLines((value) => {
        heard = clock.unsafeCurrentTimeMillis()
        const event = Option.getOrUndefined(Schema.decodeUnknownOption(Event)(value))
        if (event === undefined) return
        layers.note(event)
        const said = event.errorDetail?.message ?? event.error
        if (said !== undefined) complaint = said
      })
      stream.on("data", read)
      stream.on("error", (cause) => resume(Effect.succeed(complaint ?? cause.message)))
      stream.on("close", () => resume(Effect.succeed(complaint ?? "the engine broke off")))
      stream.on("end", () => {
        // The last line may lack its end.
        read(Buffer.from("\n"))
        resume(Effect.succeed(complaint))
      })
      return Effect.sync(() => drop(stream))
    })
    const complaint = yield* Effect.raceFirst(reading, saying)
    if (complaint !== undefined) {
      const message = complaint.trim().replaceAll(/\s+/g, " ")
      return yield* pullError(image)(new EngineError({ status: 200, message }))
    }
    yield* Effect.logInfo(`pulled ${image} in ${seconds((yield* Clock.currentTimeMillis) - begun)}`)
  })

/** The images of one engine. What is pulled goes on for others when the prompt that began it is interrupted. */
export const make = (client: Client): Effect.Effect<Images, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const known = new Map<string, Deferred.Deferred<string, SandboxError>>()

    const look = (name: string) =>
      Effect.as(
        client.call((docker) => docker.getImage(name).inspect()),
        name
      )

    /** Pulls, a few times when the registry does not answer: once for all who want the image. */
    const persist = (name: string, made = 1): Effect.Effect<void, SandboxError> =>
      Effect.catchIf(
        pull(client, name),
        ({ reason }) => reason === "ImageUnreachable" && made < tries,
        ({ message }) =>
          Effect.logWarning(`${message}; trying again in ${2 ** (made - 1)} s`).pipe(
            Effect.zipRight(Effect.sleep(1000 * 2 ** (made - 1))),
            Effect.zipRight(persist(name, made + 1))
          )
      )

    const find = (name: string) =>
      look(name).pipe(
        Effect.catchIf(
          ({ status }) => status === 404,
          () => Effect.zipRight(persist(name), look(name))
        ),
        Effect.catchTag("EngineError", (error) =>
          Effect.fail(
            error.status === 400
              ? pullError(name)(error)
              : toSandboxError(`The image ${name} could not be looked for`, "StartFailed")(error)
          )
        )
      )

    const have = (image: string) =>
      Effect.suspend(() => {
        const name = normalize(image)
        if (name === undefined) return noName(image)
        const before = known.get(name)
        if (before !== undefined) return Deferred.await(before)
        const found = Deferred.unsafeMake<string, SandboxError>(FiberId.none)
        known.set(name, found)
        const work = Effect.onExit(find(name), (exit) => {
          const error = Exit.isSuccess(exit) ? undefined : Option.getOrUndefined(Cause.failureOption(exit.cause))
          const forgetting = Effect.sync(() => {
            if (known.get(name) === found) known.delete(name)
          })
          // What may go better another time is tried again by whoever asks then.
          const later =
            Exit.isSuccess(exit) || (error !== undefined && !error.transient)
              ? Effect.void
              : error?.reason === "ImageUnreachable"
                ? Effect.forkIn(Effect.interruptible(Effect.delay(forgetting, pause)), scope)
                : forgetting
          return Effect.zipRight(Deferred.done(found, exit), later)
        })
        return Effect.zipRight(Effect.forkIn(Effect.interruptible(Effect.exit(work)), scope), Deferred.await(found))
      })
    return { have, forget: (name) => void known.delete(name) }
  })
