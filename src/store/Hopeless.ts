/** Sessions whose last attempt failed in a way that no other attempt betters: a resume leaves them out. */
import { open } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import type { ContentIndex } from "../dataset/ContentIndex.ts"
import * as ContentKey from "../dataset/ContentKey.ts"
import * as Lines from "../dataset/Lines.ts"
import { runsAgain } from "../trajectory/Outcome.ts"
import { storeError } from "./Disk.ts"
import type { Done } from "./Resume.ts"
import * as RunFolder from "./RunFolder.ts"

const StoredKind = Schema.parseJson(
  Schema.Struct({
    prompt_key: Schema.String.pipe(Schema.pattern(/^[0-9a-f]{21}$/)),
    occurrence: Schema.NonNegativeInt,
    sample: Schema.NonNegativeInt,
    kind: Schema.String
  })
)
const decodeKind = Schema.decodeUnknownOption(StoredKind)

/** Marks them as if they were done, by what failures.jsonl says; those of a prompt that is gone count for nothing. */
export const mark = Effect.fn("Hopeless.mark")(function* (
  folder: string,
  chosen: ReadonlyArray<string> | null,
  index: ContentIndex,
  done: Done
) {
  if (!(yield* RunFolder.names(folder)).includes(RunFolder.failures)) return
  const path = join(folder, RunFolder.failures)
  const hopeless = new Set<number>()
  const take = (line: Lines.Line): boolean => {
    const failure = Option.getOrUndefined(decodeKind(Buffer.from(line.bytes).toString("utf8")))
    if (failure === undefined) return true
    const place = index.find(ContentKey.fromText(failure.prompt_key), failure.occurrence)
    if (place < 0 || failure.sample >= done.samples) return true
    const session = place * done.samples + failure.sample
    if (failure.kind === "" || runsAgain(failure.kind, chosen)) hopeless.delete(session)
    else hopeless.add(session)
    return true
  }
  yield* Effect.tryPromise({
    try: async () => {
      const file = await open(path, "r")
      await Lines.scan(Lines.contents(file, false), take).finally(() => file.close())
    },
    catch: storeError(path)
  })
  for (const session of hopeless) done.mark(Math.floor(session / done.samples), session % done.samples)
})
