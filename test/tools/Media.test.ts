import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, FastCheck as fc } from "effect"
import { buildSync } from "esbuild"
import { expect, test } from "vitest"
import * as Media from "../../src/tools/Media.ts"
import { folder } from "./made.ts"

const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex").slice(0, 32)

test("Whatever is kept, by however many at once, lies there once and whole under its hash", async () => {
  const root = folder()
  let round = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 3000 }), { minLength: 1, maxLength: 12 }),
      async (contents) => {
        const media = join(root, `${round++}`, "media")
        const keepers = [Media.make(media), Media.make(media)]
        const paths = await Effect.runPromise(
          Effect.forEach(
            contents.flatMap((bytes) => keepers.map((keeper) => [keeper, bytes] as const)),
            ([keeper, bytes]) => keeper.keep(bytes, "bin"),
            { concurrency: "unbounded" }
          )
        )
        expect(paths).toEqual(contents.flatMap((bytes) => Array(2).fill(`media/${hash(bytes)}.bin`)))
        expect(readdirSync(media).toSorted()).toEqual(
          [...new Set(contents.map((each) => `${hash(each)}.bin`))].toSorted()
        )
        for (const bytes of contents)
          expect(Buffer.from(bytes).equals(readFileSync(join(media, `${hash(bytes)}.bin`)))).toBe(true)
      }
    ),
    { numRuns: 25 }
  )
})

/** The module for processes of its own. */
const bundled = (): string => {
  const outfile = join(folder(), "media.mjs")
  buildSync({
    stdin: {
      contents: `export * from "./src/tools/Media.ts"
        import { Effect } from "effect"
        export const [promised, flipped] = [Effect.runPromise, Effect.flip]`,
      resolveDir: join(import.meta.dirname, "../..")
    },
    ...({ bundle: true, format: "esm", platform: "node", outfile } as const)
  })
  return outfile
}

/** Runs a module in a process of its own; `limit` is the largest file that it may write, in KB. */
const program = async (body: string, argument: string, limit?: number) => {
  const script = `import * as Media from ${JSON.stringify(bundled())}\n${body}`
  const words = [process.execPath, script, argument]
  const line = `${limit === undefined ? "" : `ulimit -f ${limit}; `}exec "$0" --input-type=module -e "$1" "$2"`
  return (await promisify(execFile)("/bin/bash", ["-c", line, ...words])).stdout
}

test("Several processes keep the same at the same time, and nothing unfinished stays", async () => {
  const media = join(folder(), "media")
  const work = () =>
    program(
      `const media = Media.make(process.argv[1])
       for (let n = 0; n < 30; n++) await Media.promised(media.keep(Buffer.alloc(300000, n), "bin"))`,
      media
    )
  await Promise.all([work(), work(), work()])
  const names = readdirSync(media)
  expect(names).toHaveLength(30)
  for (const name of names) expect(name).toBe(`${hash(readFileSync(join(media, name)))}.bin`)
})

test("What is there already is not written again, unless it was torn", async () => {
  const media = folder()
  const keep = (text: string) => Effect.runPromise(Media.make(media).keep(Buffer.from(text), "txt"))
  const path = join(media, "..", String(await keep("hello")))
  utimesSync(path, 1, 1)
  await keep("hello")
  expect(readFileSync(path, "utf8")).toBe("hello")
  expect(statSync(path).mtimeMs).toBe(1000)
  writeFileSync(path, "hel")
  await keep("hello")
  expect(readFileSync(path, "utf8")).toBe("hello")
})

test("What a killed process left unfinished goes with the next run's first file; what is being written stays", async () => {
  const media = folder()
  writeFileSync(join(media, ".part-1-0-1"), "half")
  utimesSync(join(media, ".part-1-0-1"), 1, 1)
  writeFileSync(join(media, ".part-2-0-1"), "half")
  await Effect.runPromise(Media.make(media).keep(Buffer.from("x"), "txt"))
  expect(readdirSync(media).toSorted()).toEqual([".part-2-0-1", `${hash(Buffer.from("x"))}.txt`])
})

test("A folder that cannot be had is a failure that says so, a full disk is another, and no half file stays", async () => {
  const root = folder()
  writeFileSync(join(root, "media"), "a file")
  const failed = await Effect.runPromise(Effect.flip(Media.make(join(root, "media")).keep(Buffer.from("x"), "txt")))
  expect(failed.error).toMatch(/cannot be kept in the folder of the run \(EEXIST\)/)
  // A limit on the size of files is what a full disk looks like.
  const media = join(root, "limited")
  mkdirSync(media)
  const told = await program(
    `process.on("SIGXFSZ", () => {})
     const failed = await Media.promised(Media.flipped(Media.make(process.argv[1]).keep(Buffer.alloc(5_000_000, 7), "bin")))
     console.log(failed.error)`,
    media,
    1000
  )
  expect(told).toContain("no space is left on the disk of the run")
  expect(readdirSync(media)).toEqual([])
})

test("Without a folder nothing is kept", async () => {
  expect(await Effect.runPromise(Media.make("").keep(Buffer.from("x"), "txt"))).toBe(undefined)
})
