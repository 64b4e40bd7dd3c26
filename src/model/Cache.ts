/** A model around a model that keeps its answers in files, and gives them again to who asks the same. */
import { createHash } from "node:crypto"
import { constants } from "node:fs"
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Deferred, Effect, Either, Exit, FiberId, Layer, Option, Random, Schema } from "effect"
import { type Answer, type Ask, Model, type ModelError, type ModelService, noUsage, type Request } from "./Model.ts"
import * as Failure from "./openai/Failure.ts"
import * as RequestBody from "./openai/RequestBody.ts"

export interface Options {
  /** Folder of the entries, one file each; made when it is needed, in a folder that is there. Several processes may use it at once. */
  readonly folder: string
  readonly request: Request
}

/** An entry names its key: one that was moved or copied is none. What the answer cost is left out, for that is paid. */
const Entry = Schema.parseJson(
  Schema.Struct({
    key: Schema.String,
    answer: Schema.Struct({
      content: Schema.String,
      reasoning: Schema.String,
      toolCalls: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String, arguments: Schema.String })),
      finishReason: Schema.Literal("stop", "tool_calls", "length", "content_filter"),
      images: Schema.optional(Schema.Array(Schema.String)),
      echo: Schema.Record({ key: Schema.String, value: Schema.Unknown })
    })
  })
)
const decodeEntry = Schema.decodeUnknownOption(Entry)
const encodeEntry = Schema.encodeOption(Entry)

/** Bytes of an entry at most: an answer, its echo and their escapes. */
const largest = 256 * 1024 * 1024

/** Puts the cache around the model below. */
export const layer = (options: Options): Layer.Layer<Model, never, Model> =>
  Layer.effect(
    Model,
    Effect.map(Model, (inner) => caching(inner, options))
  )

/**
 * `inner`, asked once for each request, occurrence and sample of a prompt, and turn. An answer from the cache costs nothing. Kept are
 * answers that say something and came to their own end; an entry that cannot be read is none, and is replaced.
 */
export const caching = (inner: ModelService, { folder, request }: Options): ModelService => {
  const keyOf = keyer(request)
  /** Those that are being asked; who asks the same meanwhile waits for them. */
  const asked = new Map<string, Deferred.Deferred<Exit.Exit<Answer, ModelError>>>()
  let warned = false

  const keep = Effect.fn("Cache.keep")(function* (key: string, answer: Answer) {
    const text = encodeEntry({ key, answer })
    if (Option.isNone(text)) return
    const written = yield* put(pathOf(folder, key), text.value)
    if (Either.isRight(written) || warned) return
    warned = true
    yield* Effect.logWarning(`answers cannot be kept in ${folder}, and the run goes on without: ${written.left}`)
  })

  const fetched = Effect.fn("Cache.fetched")(function* (key: string, ask: Ask) {
    const entry = yield* stored(pathOf(folder, key), key)
    if (Option.isSome(entry)) return entry.value
    const answer = yield* inner.complete(ask)
    if (isWorthKeeping(answer)) yield* keep(key, answer)
    return answer
  })

  const shared = (key: string, ask: Ask): Effect.Effect<Answer, ModelError> =>
    Effect.uninterruptibleMask((restore) => {
      const other = asked.get(key)
      if (other !== undefined) {
        return restore(
          Effect.flatMap(Deferred.await(other), (exit) =>
            // Whoever asked was stopped, which says nothing of the answer.
            Exit.isInterrupted(exit) ? shared(key, ask) : free(exit)
          )
        )
      }
      const mine = Deferred.unsafeMake<Exit.Exit<Answer, ModelError>>(FiberId.none)
      asked.set(key, mine)
      return Effect.onExit(restore(fetched(key, ask)), (exit) => {
        asked.delete(key)
        return Deferred.succeed(mine, exit)
      })
    })

  return {
    complete: (ask) =>
      Either.match(
        Either.try(() => keyOf(ask)),
        {
          // What cannot be written as a request is for the model to refuse.
          onLeft: () => inner.complete(ask),
          onRight: (key) => shared(key, ask)
        }
      )
  }
}

/** What another's call came to, which paid for it. */
const free = (exit: Exit.Exit<Answer, ModelError>): Effect.Effect<Answer, ModelError> =>
  Effect.mapBoth(exit, { onFailure: (error) => error.amended({ usage: noUsage }), onSuccess: paid })

/** What of an answer is kept. */
interface Kept extends Omit<Answer, "usage" | "images"> {
  readonly images?: Answer["images"] | undefined
}

/** An answer that costs nothing any more; what was left of a limit was so when it came. */
const paid = ({ content, reasoning, toolCalls, finishReason, images, echo }: Kept): Answer => ({
  ...{ content, reasoning, toolCalls, finishReason, echo },
  ...(images === undefined ? {} : { images }),
  usage: noUsage,
  priced: true
})

/** The digest of all that an answer depends on. Marks for prompt caching are no part of the request. */
const keyer = (request: Request): ((ask: Ask) => string) => {
  const encode = RequestBody.textEncoder({ ...request, promptCache: false })
  return (ask) => {
    const { occurrence, sample, turn, aside } = ask
    // A tool's questions are counted apart from the session's turns.
    const place = [occurrence, sample, turn, ...(aside === undefined ? [] : [aside.tool])]
    return createHash("sha256")
      .update(JSON.stringify(["1", request.baseUrl, ...place]))
      .update(encode(ask))
      .digest("hex")
  }
}

const pathOf = (folder: string, key: string): string => join(folder, key.slice(0, 2), `${key.slice(2)}.json`)

/** An empty answer is asked for again, and one that was cut may come whole another time. */
const isWorthKeeping = ({ content, toolCalls, finishReason, images = [] }: Kept): boolean =>
  (finishReason === "stop" || finishReason === "tool_calls") &&
  (toolCalls.length > 0 || content.trim() !== "" || images.length > 0)

/** The answer of an entry; whatever else lies in its place is no reason to fail, nor to wait: a pipe has no end. */
const stored = (path: string, key: string): Effect.Effect<Option.Option<Answer>> =>
  Effect.map(Effect.either(Effect.tryPromise(() => readEntry(path))), (text) =>
    Option.getRight(text).pipe(
      Option.flatMap(decodeEntry),
      Option.filter((entry) => entry.key === key && isWorthKeeping(entry.answer)),
      Option.map(({ answer }) => paid(answer))
    )
  )

const readEntry = async (path: string): Promise<string> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return file
    .stat()
    .then((about) => (about.isFile() && about.size <= largest ? file.readFile("utf8") : ""))
    .finally(() => file.close())
}

/** Puts an entry into its place in one step, readable by nobody else; says why it could not. */
const put = Effect.fn("Cache.put")(function* (path: string, text: string) {
  const fresh = `${path}.${process.pid}-${yield* Random.nextIntBetween(0, 2 ** 31)}.new`
  const write = () => writeFile(fresh, text, { mode: 0o600, flag: "wx" })
  const entry = Effect.tryPromise({
    try: () =>
      write()
        .catch((cause: unknown) => {
          if (Failure.codeOf(cause) !== "ENOENT") throw cause
          return makeFolders(path).then(write)
        })
        .then(() => rename(fresh, path)),
    catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
  })
  return yield* entry.pipe(
    Effect.tapError(() => Effect.ignore(Effect.tryPromise(() => rm(fresh, { force: true })))),
    Effect.either,
    // A run that is stopped leaves no half of an entry behind.
    Effect.uninterruptible
  )
})

const makeFolders = async (path: string): Promise<void> => {
  for (const folder of [dirname(dirname(path)), dirname(path)]) {
    await mkdir(folder, { mode: 0o700 }).catch((cause: unknown) => {
      if (Failure.codeOf(cause) !== "EEXIST") throw cause
    })
  }
}
