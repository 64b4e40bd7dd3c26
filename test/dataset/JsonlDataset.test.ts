/** A data set file is read once, in order, whatever its line ends, its packing and its bad lines; a prompt's text comes when asked for. */
import { execFileSync, spawn } from "node:child_process"
import { truncate, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer } from "effect"
import { Dataset, type DatasetService } from "../../src/dataset/Dataset.ts"
import * as JsonlDataset from "../../src/dataset/JsonlDataset.ts"
import * as Folder from "../support/Folder.ts"

interface Given {
  readonly content: string | Uint8Array
  readonly name?: string
  readonly maxSamples?: number
}

const put = ({ content, name }: Given) =>
  Effect.tap(
    Effect.map(Folder.scoped, (folder) => join(folder, name ?? "rows.jsonl")),
    (path) => Effect.promise(() => writeFile(path, content))
  )

const at = (path: string, maxSamples?: number) => JsonlDataset.layer({ path, maxSamples })

const layer = (given: Given) => Layer.unwrapScoped(Effect.map(put(given), (path) => at(path, given.maxSamples)))

const texts = (dataset: DatasetService) =>
  Effect.forEach(
    Array.from({ length: dataset.index.size }, (_, place) => place),
    (place) => Effect.map(dataset.read(place), ({ text }) => text)
  )

/** All prompts, and what was told of bad lines. */
const look = Effect.gen(function* () {
  const dataset = yield* Dataset
  return { texts: yield* texts(dataset), bad: dataset.badLines }
})

const read = (given: Given | string) =>
  Effect.provide(look, layer(typeof given === "string" ? { content: given } : given))

const refusal = (given: Given | string) =>
  Effect.map(Effect.flip(read(given)), ({ reason, message }) => [reason, message])

const none = { count: 0, first: [] }

describe("A data set", () => {
  it.effect("may begin with a byte-order mark, end its lines as Windows does, and have blank lines.", () =>
    Effect.gen(function* () {
      const content = '\ufeff{"prompt":"a"}\r\n\r\n  \t\n{"prompt":"b"}\r\n\n\ufeff{"prompt":"c"}\n\n'
      expect(yield* read(content)).toEqual({ texts: ["a", "b", "c"], bad: none })
    })
  )
  it.effect("may end without a line end.", () =>
    Effect.gen(function* () {
      expect(yield* read('{"prompt":"a"}\n{"prompt":"b"}')).toEqual({ texts: ["a", "b"], bad: none })
    })
  )
  it.effect("has its bad lines told by number, counted and skipped.", () =>
    Effect.gen(function* () {
      const content = Buffer.concat([
        Buffer.from('{"prompt":"a"}\nnot json\n\n[1]\n{"text":"x"}\n{"prompt":" "}\n{"prompt":"'),
        Buffer.from([0xc3, 0x28]),
        Buffer.from('"}\n{"prompt":"x","image":["i"]}\n{"prompt":"b"}\n{"prompt":"cut')
      ])
      expect(yield* read({ content })).toEqual({
        texts: ["a", "b"],
        bad: {
          count: 7,
          first: [
            { line: 2, why: "not JSON" },
            { line: 4, why: "not a JSON object" },
            { line: 5, why: 'no "prompt"' },
            { line: 6, why: '"prompt" is blank' },
            { line: 7, why: "not UTF-8" },
            { line: 8, why: '"image" is not a string' },
            { line: 10, why: "not JSON" }
          ]
        }
      })
    })
  )
  it.effect("of many bad lines names the first twenty and counts all.", () =>
    Effect.gen(function* () {
      const { bad } = yield* read(`${"bad\n".repeat(50)}{"prompt":"a"}\n`)
      expect([bad.count, bad.first.length, bad.first.at(-1)]).toEqual([50, 20, { line: 20, why: "not JSON" }])
    })
  )
  it.effect("knows the first line that names an image.", () =>
    Effect.gen(function* () {
      const dataset = yield* Dataset
      expect(dataset.firstImageLine).toBe(4)
      expect((yield* dataset.read(1)).image).toBe("debian")
    }).pipe(
      Effect.provide(
        layer({
          content: '{"prompt":"a"}\n\nbad\n{"prompt":"b","docker_image":"debian"}\n{"prompt":"c","image":"x"}\n'
        })
      )
    )
  )
  it.effect("gives the first max_samples valid prompts and no more.", () =>
    Effect.gen(function* () {
      const content = '\nbad\n{"prompt":"a"}\nbad\n{"prompt":"b"}\nbad\n{"prompt":"c"}\n'
      expect(yield* read({ content, maxSamples: 2 })).toMatchObject({ texts: ["a", "b"], bad: { count: 2 } })
      expect(yield* read({ content, maxSamples: 9 })).toMatchObject({ texts: ["a", "b", "c"], bad: { count: 3 } })
    })
  )
  it.effect("may have lines longer than what is read at once, and lines that lie across its borders.", () =>
    Effect.gen(function* () {
      const lengths = [10, 262_100, 300_000, 262_144 - 13, 1, 900_000, 5]
      const prompts = lengths.map((length, at) => `${at}${"é".repeat(length)}`)
      const result = yield* read(prompts.map((prompt) => `${JSON.stringify({ prompt })}\n`).join(""))
      expect(result.texts.map((text) => text.length)).toEqual(prompts.map((prompt) => prompt.length))
      expect(result.texts).toEqual(prompts)
    })
  )
  it.effect("is the objects that were written, in order, whatever stands between them.", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.record({
              prompt: fc.string({ unit: "binary", minLength: 1 }).filter((text) => text.trim() !== ""),
              others: fc.dictionary(
                fc.string({ unit: "grapheme", minLength: 5 }).filter((key) => key !== "prompt" && key !== "image"),
                fc.jsonValue()
              ),
              before: fc.array(fc.constantFrom("", "  ", "\t", "nonsense", "[]", '{"prompt":""}', '{"a":1}')),
              end: fc.constantFrom("\n", "\r\n")
            }),
            { minLength: 1, maxLength: 20 }
          ),
          fc.boolean(),
          (rows, ended) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const content = rows
                  .flatMap(({ prompt, others, before, end }) => [
                    ...before.map((line) => line + end),
                    JSON.stringify({ ...others, prompt }) + end
                  ])
                  .join("")
                const dataset = yield* Dataset.pipe(
                  Effect.flatMap((found) =>
                    Effect.map(
                      Effect.forEach(rows, (_, place) => found.read(place)),
                      (prompts) => ({ prompts, size: found.index.size, bad: found.badLines.count })
                    )
                  ),
                  Effect.provide(layer({ content: ended ? content : content.trimEnd() }))
                )
                expect(dataset.size).toBe(rows.length)
                expect(dataset.prompts.map(({ text }) => text)).toEqual(rows.map(({ prompt }) => prompt.toWellFormed()))
                expect(dataset.prompts.map(({ source }) => JSON.parse(source))).toEqual(
                  rows.map(({ others }) => JSON.parse(JSON.stringify(others)))
                )
                expect(dataset.bad).toBe(
                  rows.flatMap(({ before }) => before).filter((line) => line.trim() !== "").length
                )
              })
            )
        ),
        { numRuns: 60 }
      )
    )
  )
})

describe("A packed data set", () => {
  const first = gzipSync('{"prompt":"a"}\n{"prom')
  const second = gzipSync('pt":"b"}\n')
  it.effect("is unpacked, also when its name does not say so and when it has several members.", () =>
    Effect.gen(function* () {
      const content = Buffer.concat([first, second])
      for (const name of ["rows.jsonl.gz", "rows.jsonl"]) {
        expect(yield* read({ content, name })).toEqual({ texts: ["a", "b"], bad: none })
      }
    })
  )
  it.effect("that is none in spite of its name is read as it is.", () =>
    Effect.gen(function* () {
      expect((yield* read({ content: '{"prompt":"a"}\n', name: "rows.jsonl.gz" })).texts).toEqual(["a"])
    })
  )
  it.effect("that is damaged or cut is refused in one line.", () =>
    Effect.gen(function* () {
      const whole = gzipSync(Buffer.from(`{"prompt":"${"abc".repeat(5000)}"}\n`))
      const damaged = Buffer.from(whole)
      damaged[whole.length - 6] = 255 - (damaged[whole.length - 6] ?? 0)
      for (const content of [whole.subarray(0, whole.length - 12), damaged]) {
        const [reason, message] = yield* refusal({ content, name: "rows.jsonl.gz" })
        expect(reason).toBe("Unreadable")
        expect(message).toMatch(/^--dataset_file: \S+rows\.jsonl\.gz cannot be read: [^\n]+$/)
      }
    })
  )
})

describe("A data set that cannot be used", () => {
  it.scoped("is told in one line that says what is needed.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const open = (path: string) =>
        Effect.map(Effect.flip(Effect.provide(look, at(path))), ({ reason, message }) => [reason, message])
      expect(yield* open(`${folder}/none.jsonl`)).toEqual([
        "NotFound",
        `--dataset_file: there is no file ${folder}/none.jsonl`
      ])
      expect(yield* open(folder)).toEqual([
        "Unreadable",
        `--dataset_file: ${folder} is a folder, a JSONL file is needed`
      ])
      expect(yield* open("/dev/zero")).toEqual([
        "Unreadable",
        "--dataset_file: /dev/zero is a device, a JSONL file is needed"
      ])
      expect((yield* refusal(""))[1]).toMatch(/is empty; it needs one JSON object a line, \{"prompt": "…"\}$/)
      expect((yield* refusal("\n \n"))[0]).toBe("NoPrompts")
      expect((yield* refusal('\n{"text":1}\nx\n'))[1]).toMatch(/has no usable line \(2 bad; line 2: no "prompt"\)/)
    })
  )
})

describe("A data set that comes through a pipe", () => {
  const pipe = (content: Uint8Array) =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const path = join(folder, "pipe")
      execFileSync("mkfifo", [path])
      yield* Effect.promise(() => writeFile(join(folder, "content"), content))
      yield* Effect.acquireRelease(
        Effect.sync(() => spawn("sh", ["-c", 'cat "$0" > "$1"', join(folder, "content"), path], { stdio: "ignore" })),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      return yield* Effect.provide(look, at(path))
    })
  const content = Buffer.from(Array.from({ length: 3000 }, (_, n) => `{"prompt":"${n}${"x".repeat(200)}"}\n`).join(""))
  it.scopedLive("is read like any other, packed or not.", () =>
    Effect.gen(function* () {
      for (const each of [content, gzipSync(content)]) {
        const { texts } = yield* pipe(each)
        expect([texts.length, texts.at(-1)]).toEqual([3000, `2999${"x".repeat(200)}`])
      }
    })
  )
})

describe("A data set that changes during the run", () => {
  const content = '{"prompt":"a","id":1}\n{"prompt":"b","id":2}\n'
  const changed = (change: (path: string) => Promise<void>) =>
    Effect.gen(function* () {
      const path = yield* put({ content })
      return yield* Effect.gen(function* () {
        const dataset = yield* Dataset
        expect((yield* dataset.read(1)).text).toBe("b")
        yield* Effect.promise(() => change(path))
        return yield* Effect.flip(dataset.read(1))
      }).pipe(Effect.provide(at(path)))
    })
  it.scoped("is never taken for what it was.", () =>
    Effect.gen(function* () {
      for (const change of [
        (path: string) => writeFile(path, content.replace('"b"', '"c"')),
        (path: string) => writeFile(path, `\n${content}`),
        (path: string) => truncate(path, 30)
      ]) {
        const error = yield* changed(change)
        expect(error.reason).toBe("Changed")
        expect(error.message).toMatch(/was changed while the run was under way; start again with --resume$/)
      }
    })
  )
})
