/** The files of a patch: read from the sandbox, changed in memory, and written only when every change fits. */
import { posix } from "node:path"
import { Effect, Either } from "effect"
import { type FileError, Sandbox, type SandboxError } from "../../sandbox/Sandbox.ts"
import * as Shell from "../Shell.ts"
import * as Text from "../Text.ts"
import { ToolFailure } from "../Tool.ts"
import * as Apply from "./Apply.ts"
import type { Change } from "./Change.ts"
import * as Diff from "./Diff.ts"
import * as Envelope from "./Envelope.ts"
import { type Replacement, replace } from "./Replace.ts"
import * as Unified from "./Unified.ts"

/** Bytes of a file that can be patched, and of a patch text. */
const maxBytes = 5_000_000
const maxFiles = 200

/** A file of the patch; null text stands for no file. */
interface Draft {
  readonly name: string
  /** The path that the file had before the patch moved it here. */
  readonly from: string
  readonly bom: string
  readonly before: string | null
  readonly after: string | null
}

const refuse = (error: string): Effect.Effect<never, ToolFailure> => Effect.fail(new ToolFailure({ error }))

/** Replaces a text in one file. */
export const replaceIn = Effect.fn("Files.replaceIn")(function* (name: string, wanted: Replacement) {
  const place = yield* Shell.path("path", name)
  if (wanted.old.length + wanted.new.length > 2 * maxBytes) return yield* refuse("the texts to replace are too large")
  const draft = yield* load(name, place)
  if (draft.before === null) return yield* refuse(`${name} does not exist`)
  const after = yield* Either.match(replace(draft.before, wellFormed(wanted)), {
    onLeft: (why) => refuse(`${name}: ${why}`),
    onRight: (text) => Effect.succeed(text)
  })
  yield* write(place, { ...draft, after })
  return { success: true, diff: Diff.unified(name, draft.before, after) }
})

const wellFormed = (wanted: Replacement): Replacement => ({
  old: wanted.old.toWellFormed(),
  new: wanted.new.toWellFormed(),
  all: wanted.all
})

/** Applies a patch text to all its files, or to none. */
export const applyPatch = Effect.fn("Files.applyPatch")(function* (source: string) {
  if (source.length > maxBytes) return yield* refuse("the patch is larger than 5 MB")
  const patch = source.toWellFormed()
  const enveloped = /^\*\*\* (Begin Patch|(Add|Delete|Update) File:)/m.test(patch)
  const changes = yield* Either.match(enveloped ? Envelope.parse(patch) : Unified.parse(patch), {
    onLeft: refuse,
    onRight: (all) => Effect.succeed(all)
  })
  if (changes.length > maxFiles) return yield* refuse(`the patch changes more than ${maxFiles} files; split it`)
  const drafts = new Map<string, Draft>()
  for (const change of changes) yield* draw(drafts, change)
  const touched = [...drafts].filter(([, draft]) => draft.before !== draft.after)
  if (touched.length === 0) return yield* refuse("the patch changes nothing: the files hold the new text already")
  yield* commit(touched)
  const named = (kind: (draft: Draft) => boolean) => touched.flatMap(([, draft]) => (kind(draft) ? [draft.name] : []))
  const moved = new Set(touched.flatMap(([, { name, from }]) => (name === from ? [] : [from])))
  const diffs = touched
    .filter(([, draft]) => !(draft.after === null && moved.has(draft.name)))
    .map(([, { name, from, before, after }]) => {
      const origin = name === from ? undefined : touched.find(([, other]) => other.name === from)?.[1]
      return Diff.unified(name, origin?.before ?? before, after, from)
    })
  return {
    success: true,
    diff: Text.bound(diffs.join("")),
    files_modified: named(({ before, after }) => before !== null && after !== null),
    files_created: named(({ before }) => before === null),
    files_deleted: named(({ after }) => after === null)
  }
})

/** Works one change into the drafts; later changes of a patch see the earlier ones. */
const draw = Effect.fnUntraced(function* (drafts: Map<string, Draft>, change: Change) {
  const draft = yield* open(drafts, change.path)
  const { place, now } = draft
  if (change._tag === "Add") {
    if (now.after !== null)
      return yield* refuse(`${change.path}: is there already, it cannot be added; use *** Update File`)
    drafts.set(place, { ...now, from: now.name, after: change.content })
    return
  }
  if (now.after === null) return yield* refuse(`${change.path}: does not exist`)
  if (change._tag === "Delete") {
    drafts.set(place, { ...now, after: null })
    return
  }
  const after = yield* Either.match(Apply.apply(now.after, change.hunks), {
    onLeft: (why) => refuse(`${change.path}: ${why}. No file was changed`),
    onRight: (text) => Effect.succeed(text)
  })
  if (change.moveTo === null) {
    drafts.set(place, { ...now, after })
    return
  }
  const target = yield* open(drafts, change.moveTo)
  if (target.place === place) {
    drafts.set(place, { ...now, after })
    return
  }
  if (target.now.after !== null)
    return yield* refuse(`${change.moveTo}: is there already, ${change.path} cannot move to it`)
  drafts.set(place, { ...now, after: null })
  drafts.set(target.place, { ...target.now, from: now.name, bom: now.bom, after })
})

/** The draft of a file, read at its first mention. */
const open = Effect.fnUntraced(function* (drafts: Map<string, Draft>, name: string) {
  const sandbox = yield* Sandbox
  const place = posix.resolve(sandbox.cwd, yield* Shell.path("path", name))
  const known = drafts.get(place)
  if (known !== undefined) return { place, now: known }
  const now = yield* load(name, place)
  drafts.set(place, now)
  return { place, now }
})

/** Reads a file whole; a missing one is no error here. */
const load = Effect.fnUntraced(function* (
  name: string,
  place: string
): Effect.fn.Return<Draft, ToolFailure | SandboxError, Sandbox> {
  const sandbox = yield* Sandbox
  const content = yield* sandbox
    .read(place, { maxBytes: maxBytes + 1 })
    .pipe(
      Effect.catchTag("FileError", (error) =>
        error.reason === "NotFound" ? Effect.succeed(null) : refuse(error.message)
      )
    )
  const draft = { name, from: name, bom: "" }
  if (content === null) return { ...draft, before: null, after: null }
  if (content.size > maxBytes || content.bytes.length > maxBytes) {
    return yield* refuse(
      `${name}: has ${content.size} bytes, patch takes files up to 5 MB; use terminal, for example sed`
    )
  }
  const text = yield* Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content.bytes),
    catch: () => new ToolFailure({ error: `${name}: is not UTF-8 text, a patch would damage it; use terminal` })
  })
  const bom = text.startsWith("\ufeff") ? "\ufeff" : ""
  const body = text.slice(bom.length)
  return { ...draft, bom, before: body, after: body }
})

/** Writes every file; when one cannot be written, those before it get their old state back. */
const commit = Effect.fnUntraced(function* (touched: ReadonlyArray<readonly [string, Draft]>) {
  // New content first: a file that moves is never without a copy.
  const order = [...touched].sort(([, a], [, b]) => Number(a.after === null) - Number(b.after === null))
  for (const [at, [place, draft]] of order.entries()) {
    yield* write(place, draft).pipe(
      Effect.tapErrorTag("ToolFailure", () =>
        Effect.forEach(order.slice(0, at), ([path, { before, ...rest }]) =>
          Effect.ignore(write(path, { ...rest, before, after: before }))
        )
      )
    )
  }
})

const write = Effect.fnUntraced(function* (
  place: string,
  draft: Draft
): Effect.fn.Return<void, ToolFailure | SandboxError, Sandbox> {
  const sandbox = yield* Sandbox
  if (draft.after !== null) {
    // A moved file keeps its mode: the write below goes into a copy of it.
    if (draft.from !== draft.name) {
      const from = Shell.pathVariable(yield* Shell.path("path", draft.from))
      const to = Shell.quote(place)
      yield* Shell.run(`${from}; mkdir -p ${Shell.quote(posix.dirname(place))} && cp -p "$p" ${to} 2>/dev/null`, 2000)
    }
    return yield* sandbox
      .write(place, Buffer.from(draft.bom + draft.after, "utf8"))
      .pipe(Effect.catchTag("FileError", (error: FileError) => refuse(error.message)))
  }
  const answer = yield* Shell.run(`${Shell.pathVariable(place)}; rm -f -- "$p" 2>&1`, 2000)
  if (answer.length > 0) return yield* refuse(`${draft.name}: could not be deleted: ${answer.toString("utf8").trim()}`)
})
