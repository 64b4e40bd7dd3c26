/** A run folder keeps what is finished through resume, torn files, a full disk and a second process. */
import { execFileSync } from "node:child_process"
import { appendFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { ContentIndex } from "../../src/dataset/ContentIndex.ts"
import * as ContentKey from "../../src/dataset/ContentKey.ts"
import * as Jsonl from "../../src/store/Jsonl.ts"
import * as Resume from "../../src/store/Resume.ts"
import { type Entry, type SessionRecord, Store, type StoreService } from "../../src/store/Store.ts"
import { encodeLine, Row } from "../../src/trajectory/Trajectory.ts"
import * as Folder from "../support/Folder.ts"
import * as Rows from "../support/Rows.ts"

/** One session of work on a run folder. */
const session = <A, E, R>(
  folder: string,
  work: (store: StoreService) => Effect.Effect<A, E, R>,
  options: Partial<Jsonl.Options> = {}
) =>
  Effect.provide(
    Effect.flatMap(Store, work),
    Jsonl.layer({
      folder,
      runName: "test",
      resume: true,
      toolNames: Rows.toolNames,
      ...options
    })
  )

const save =
  (...entries: ReadonlyArray<Entry>) =>
  (store: StoreService) =>
    Effect.forEach(entries, store.save, { concurrency: "unbounded", discard: true })

/** What a session of a data set of these prompts finds done and merges. */
const mergeFor =
  (...prompts: ReadonlyArray<string>) =>
  (store: StoreService) =>
    Effect.gen(function* () {
      const index = new ContentIndex()
      for (const prompt of prompts) {
        index.add(ContentKey.of({ text: prompt, image: "", cwd: "" }), 0, 0)
      }
      const done = Resume.match(store.ledger, index, 1)
      const merged = yield* store.merge(done)
      return { merged, done: done.ranges(), sums: yield* store.sums, nextBatch: store.nextBatch }
    })

const text = (folder: string, name: string) => Effect.promise(() => readFile(join(folder, name), "utf8"))
const put = (folder: string, name: string, content: string | Uint8Array) =>
  Effect.promise(() => writeFile(join(folder, name), content))
const append = (folder: string, name: string, content: string | Uint8Array) =>
  Effect.promise(() => appendFile(join(folder, name), content))
const files = (folder: string) => Effect.promise(() => readdir(folder).then((names) => names.toSorted()))

const prompts = (merged: string) =>
  merged
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { prompt_index, conversations } = JSON.parse(line)
      return [prompt_index, conversations[0].value]
    })

const lineOf = (about: Rows.About) => encodeLine(Rows.row(about))

describe("A run folder", () => {
  it.scoped("has each outcome in its file, appended as a line of its own.", () =>
    Effect.gen(function* () {
      const folder = join(yield* Folder.scoped, "deep", "run")
      const [a, b] = [Rows.kept({ prompt: "a\u2028" }), Rows.kept({ prompt: "b", place: 1 })]
      yield* session(
        folder,
        save(a, b, Rows.kept({ prompt: "c", batch: 1 }), Rows.discarded({ prompt: "d" }), Rows.failed({ prompt: "e" }))
      )
      expect(yield* text(folder, "batch_0.jsonl")).toBe(
        `${lineOf({ prompt: "a\u2028" })}\n${lineOf({ prompt: "b", place: 1 })}\n`
      )
      expect(yield* text(folder, "batch_1.jsonl")).toBe(`${lineOf({ prompt: "c", batch: 1 })}\n`)
      expect(JSON.parse(yield* text(folder, "discarded.jsonl"))).toMatchObject({ reason: "no_reasoning" })
      expect(JSON.parse(yield* text(folder, "failures.jsonl"))).toMatchObject({
        prompt_index: 0,
        error: "ModelError",
        message: "HTTP 503",
        retryable: true,
        timestamp: "2026-01-15T10:30:00"
      })
    })
  )
  it.scoped("holds many rows saved at the same time, each whole.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const many = Array.from({ length: 500 }, (_, n) =>
        Rows.kept({ prompt: `${n}${"x".repeat(n * 7)}`, place: n, batch: n % 7 })
      )
      yield* session(folder, save(...many))
      const all = Array.from({ length: 500 }, (_, n) => `${n}${"x".repeat(n * 7)}`)
      const found = yield* session(folder, mergeFor(...all))
      expect([found.merged, found.done, found.nextBatch]).toEqual([{ rows: 500, strays: 0 }, [[0, 499]], 7])
      expect(prompts(yield* text(folder, "trajectories.jsonl"))).toEqual(all.map((prompt, place) => [place, prompt]))
    })
  )
  it.scoped("is merged in the order of the data set last given, rows without a prompt last with -1, and counted.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const given = ["gone", "a", "b", "a"]
      const occurrences = [0, 0, 0, 1]
      yield* session(
        folder,
        save(...given.map((prompt, place) => Rows.kept({ prompt, place, occurrence: occurrences[place] ?? 0 })))
      )
      const found = yield* session(folder, mergeFor("new", "b", "a", "a"))
      expect([found.merged, found.done]).toEqual([{ rows: 4, strays: 1 }, [[1, 3]]])
      expect(prompts(yield* text(folder, "trajectories.jsonl"))).toEqual([
        [1, "b"],
        [2, "a"],
        [3, "a"],
        [-1, "gone"]
      ])
      expect(prompts(yield* text(folder, "batch_0.jsonl")).map(([place]) => place)).toEqual([0, 1, 2, 3])
    })
  )
  it.scoped(
    "has rows with invented tools in their batch file, not in the merge; they and discarded rows are done.",
    () =>
      Effect.gen(function* () {
        const folder = yield* Folder.scoped
        const invented = (prompt: string, name: string) => Rows.kept({ prompt, calls: Object.fromEntries([[name, 1]]) })
        const entries = [
          Rows.discarded({ prompt: "a" }),
          invented("b", "fly"),
          invented("c", "__proto__"),
          Rows.kept({ prompt: "d" })
        ]
        const all = ["a", "b", "c", "d"]
        const first = yield* session(folder, (store) =>
          Effect.zipRight(save(...entries)(store), mergeFor(...all)(store))
        )
        expect(first.sums).toMatchObject({ kept: 1, discardedNoReasoning: 1, discardedInvalidTools: 2 })
        const second = yield* session(folder, mergeFor(...all))
        expect([second.done, second.merged]).toEqual([[[0, 3]], { rows: 1, strays: 0 }])
        expect(second.sums).toEqual(first.sums)
        expect(prompts(yield* text(folder, "trajectories.jsonl"))).toEqual([[3, "d"]])
        expect((yield* text(folder, "batch_0.jsonl")).split("\n").length).toBe(4)
      })
  )
  it.scoped("has figures over all its sessions, discarded rows and failed attempts included.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, save(Rows.kept({ prompt: "a", calls: { terminal: 2 } }), Rows.failed({ prompt: "b" })))
      yield* session(folder, save(Rows.discarded({ prompt: "b", batch: 1, calls: { todo: 1 } })))
      const [sums, batches] = yield* session(folder, (store) => Effect.all([store.sums, store.batches]))
      expect(sums).toMatchObject({
        kept: 1,
        discardedNoReasoning: 1,
        turns: 2,
        turnsWithReasoning: 1,
        tokens: { prompt: 30, completion: 15, reasoning: 6, cached: 3, total: 45 },
        apiCalls: 3,
        costUsd: 0.75
      })
      expect([...sums.tools]).toEqual([
        ["terminal", { count: 2, success: 2, failure: 0 }],
        ["todo", { count: 1, success: 1, failure: 0 }]
      ])
      expect([...batches]).toEqual([
        [0, { processed: 2, kept: 1, discarded: 0, failed: 1 }],
        [1, { processed: 1, kept: 0, discarded: 1, failed: 0 }]
      ])
    })
  )
})

describe("Failures", () => {
  const kinds = (store: StoreService) =>
    Effect.sync(() => Array.from({ length: store.failures.size }, (_, at) => store.failures.get(at).kind))

  it.scoped("are found in order of time, with whose they were and their kind, those of this session last.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(
        folder,
        save(
          Rows.failed({ prompt: "a", kind: "rate_limited" }),
          Rows.failed({ prompt: "b", occurrence: 2, sample: 1, kind: "content_refused" }),
          Rows.failed({ prompt: "a", kind: "lost" })
        )
      )
      yield* session(folder, (store) =>
        Effect.gen(function* () {
          yield* store.save(Rows.failed({ prompt: "c", kind: "rate_limited" }))
          expect(yield* kinds(store)).toEqual(["rate_limited", "content_refused", "lost", "rate_limited"])
          expect(store.failures.get(1)).toEqual({
            key: ContentKey.of({ text: "b", image: "", cwd: "" }),
            occurrence: 2,
            sample: 1,
            kind: "content_refused"
          })
        })
      )
    })
  )
  it.scoped("of earlier versions have the kind that their error and reason make; odd kinds are kept, in bounds.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const { outcome } = Rows.failed({ prompt: "a" })
      const failure = outcome._tag === "Failed" ? outcome.failure : undefined
      const { kind: _, attempt: __, conversations: ___, ...old } = failure ?? expect.fail("it failed")
      const lines = [
        { ...old, reason: "RateLimited" },
        { ...old, error: "SessionTimedOut", reason: "SessionTimedOut" },
        { ...old, error: "EmptyAnswer", reason: null },
        { batch_num: 0 },
        { ...old, kind: "Of another Program" },
        { ...old, kind: 5, reason: "NoScript" },
        { ...old, kind: "k".repeat(70_000) },
        { ...old, kind: "\u001b[31mred\n" },
        { ...old, kind: "\u0000" }
      ]
      yield* put(folder, "failures.jsonl", lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
      expect(yield* session(folder, kinds)).toEqual([
        "rate_limited",
        "session_timed_out",
        "empty_answer",
        "unknown",
        "Of another Program",
        "no_script",
        "k".repeat(64),
        "[31mred",
        "unknown"
      ])
    })
  )
})

describe("A file that a killed process left", () => {
  const [a, b] = [lineOf({ prompt: "a" }), lineOf({ prompt: "b", place: 1 })]

  it.scoped("has its torn last line cut off, and the prompt runs again.", () =>
    Effect.gen(function* () {
      for (const torn of [b.slice(0, 200), b.slice(0, -1), "{", "\0".repeat(4096), `${b.slice(0, 50)}\0\0\0`]) {
        const folder = yield* Folder.scoped
        yield* put(folder, "batch_0.jsonl", `${a}\n${torn}`)
        const found = yield* session(folder, mergeFor("a", "b"))
        expect([found.done, found.merged.rows, found.nextBatch]).toEqual([[[0, 0]], 1, 1])
        expect(yield* text(folder, "batch_0.jsonl")).toBe(`${a}\n`)
      }
    })
  )
  it.scoped("keeps a last line that is whole but for its line end.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* put(folder, "batch_0.jsonl", `${a}\n${b}`)
      const found = yield* session(folder, mergeFor("a", "b"))
      expect([found.done, found.merged.rows]).toEqual([[[0, 1]], 2])
      expect(yield* text(folder, "batch_0.jsonl")).toBe(`${a}\n${b}`)
      expect(yield* text(folder, "trajectories.jsonl")).toBe(`${a}\n${b}\n`)
    })
  )
  it.scoped("that is appended to gets the missing line end first, and loses a torn line first.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, save(Rows.discarded({ prompt: "a" }), Rows.failed({ prompt: "x" })))
      const [discarded, failures] = [yield* text(folder, "discarded.jsonl"), yield* text(folder, "failures.jsonl")]
      yield* put(folder, "discarded.jsonl", discarded.trimEnd())
      yield* append(folder, "failures.jsonl", failures.slice(0, 40))
      yield* session(folder, save(Rows.discarded({ prompt: "b" }), Rows.failed({ prompt: "x" })))
      expect((yield* text(folder, "discarded.jsonl")).split("\n").length).toBe(3)
      expect(yield* text(folder, "failures.jsonl")).toBe(failures + failures)
      expect((yield* session(folder, mergeFor("a", "b"))).done).toEqual([[0, 1]])
    })
  )
  it.scoped("keeps garbage in its middle, which is neither done nor merged.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const content = Buffer.concat([
        Buffer.from(`${a}\n`),
        Buffer.from([0xff, 0xfe, 0, 10]),
        Buffer.from(`{"conversations":[]}\nnonsense\n\n${b}\n`)
      ])
      yield* put(folder, "batch_0.jsonl", content)
      const found = yield* session(folder, mergeFor("a", "b", "c"))
      expect([found.done, found.merged.rows]).toEqual([[[0, 1]], 2])
      expect(yield* Effect.promise(() => readFile(join(folder, "batch_0.jsonl")))).toEqual(content)
      expect(yield* text(folder, "trajectories.jsonl")).toBe(`${a}\n${b}\n`)
    })
  )
  it.scoped("with a row that stands in it twice has that row once.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* put(folder, "batch_0.jsonl", `${a}\n${a}\n`)
      yield* put(folder, "batch_1.jsonl", `${a}\n`)
      const found = yield* session(folder, mergeFor("a", "a"))
      expect([found.done, found.merged, found.sums.kept]).toEqual([[[0, 0]], { rows: 1, strays: 0 }, 1])
    })
  )
  it.scoped("of another program with the same shape counts too.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const foreign = {
        conversations: [
          { from: "human", value: "a" },
          { from: "gpt", value: "b" }
        ],
        metadata: {},
        tool_stats: {},
        prompt_index: 9
      }
      yield* put(folder, "batch_3.jsonl", `${JSON.stringify(foreign)}\n`)
      const found = yield* session(folder, mergeFor("z", "a"))
      expect([found.done, found.nextBatch]).toEqual([[[1, 1]], 4])
      expect(JSON.parse(yield* text(folder, "trajectories.jsonl"))).toMatchObject({ prompt_index: 1, source: "{}" })
    })
  )
})

describe("Batch numbers", () => {
  it.scoped("are never used twice, also when only discarded rows, failures or an empty file have one.", () =>
    Effect.gen(function* () {
      const next = (...entries: ReadonlyArray<Entry>) =>
        Effect.gen(function* () {
          const folder = yield* Folder.scoped
          yield* session(folder, save(...entries))
          return yield* session(folder, (store) => Effect.succeed(store.nextBatch))
        })
      expect(yield* next()).toBe(0)
      expect(yield* next(Rows.kept({ prompt: "a", batch: 4 }))).toBe(5)
      expect(yield* next(Rows.kept({ prompt: "a" }), Rows.discarded({ prompt: "b", batch: 6 }))).toBe(7)
      expect(yield* next(Rows.kept({ prompt: "a" }), Rows.failed({ prompt: "b", batch: 8 }))).toBe(9)
      const folder = yield* Folder.scoped
      yield* put(folder, "batch_11.jsonl", "")
      yield* put(folder, "batch_x.jsonl", "")
      yield* put(folder, "batch_012.jsonl", "")
      expect(yield* session(folder, (store) => Effect.succeed(store.nextBatch))).toBe(12)
    })
  )
})

describe("Without --resume", () => {
  const open = (folder: string) =>
    Effect.exit(session(folder, () => Effect.void, { resume: false })).pipe(
      Effect.map((exit) => (Exit.isSuccess(exit) ? "opened" : String(exit.cause)))
    )
  it.scoped("a folder with results is refused, with both ways out, and left as it is.", () =>
    Effect.gen(function* () {
      for (const entry of [Rows.kept({ prompt: "a", batch: 2 }), Rows.discarded({ prompt: "a" })]) {
        const folder = yield* Folder.scoped
        yield* session(folder, save(entry))
        const before = yield* files(folder)
        const told = yield* open(folder)
        expect(told).toMatch(/--run_name: \S+ holds results already \((batch_2|discarded)\.jsonl\)/)
        expect(told).toMatch(/go on with it by --resume, or give another name than test/)
        expect(yield* files(folder)).toEqual(before)
      }
    })
  )
  it.scoped("a folder where every attempt failed, or that is empty, is gone on with.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* Effect.promise(() => mkdir(join(folder, "run")))
      expect(yield* open(join(folder, "run"))).toBe("opened")
      yield* session(folder, save(Rows.failed({ prompt: "a" })))
      expect(yield* open(folder)).toBe("opened")
    })
  )
})

describe("run.json", () => {
  const record = (seed: number, ended = ""): SessionRecord => ({
    version: "1.2.3",
    seed,
    config: { model: "m", cwd: `/work/${seed}`, image: seed === 1 ? "debian" : "" },
    started_at: "2026-01-15T10:30:00",
    ended_at: ended,
    duration_seconds: ended === "" ? 0 : 5,
    released: noUsage,
    released_calls: 0,
    tools: []
  })
  const closing = (seed: number) => ({
    statistics: { seed },
    card: `card ${seed}\n`,
    session: record(seed, "2026-01-15T10:30:05")
  })

  const released = { prompt: 7, completion: 3, reasoning: 1, cached: 2, total: 10, cost_usd: 0.125 }

  it.scoped("tells what prompts had spent that were released, and the figures of the run have it once.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const spends = (seed: number) => ({
        ...closing(seed),
        session: { ...record(seed, "2026-01-15T10:30:05"), released, released_calls: 2 }
      })
      const first = yield* session(folder, (store) =>
        Effect.gen(function* () {
          yield* store.begin(record(1))
          yield* store.save(Rows.kept({ prompt: "a" }))
          const before = yield* store.sums
          yield* store.finish(spends(1))
          return [before, yield* store.sums] as const
        })
      )
      expect(first[0]).toMatchObject({ apiCalls: 1, costUsd: 0.25 })
      const once = {
        kept: 1,
        apiCalls: 3,
        costUsd: 0.375,
        tokens: { prompt: 17, completion: 8, reasoning: 3, cached: 3, total: 25 }
      }
      expect(first[1]).toMatchObject(once)
      // A session that was killed leaves a record without an end, and those before it as they were.
      yield* session(folder, (store) => store.begin(record(2)))
      for (const seed of [3, 4]) {
        const found = yield* session(folder, (store) =>
          Effect.zipRight(store.begin(record(seed)), Effect.all([store.sums, Effect.succeed(store.sessions)]))
        )
        expect(found[0]).toMatchObject(once)
        expect(found[1][0]).toMatchObject({ seed: 1, released, released_calls: 2 })
      }
      const second = yield* session(folder, (store) => Effect.zipRight(store.finish(spends(5)), store.sums))
      expect(second).toMatchObject({ apiCalls: 5, costUsd: 0.5 })
      const json = JSON.parse(yield* text(folder, "run.json"))
      expect(json.sessions[0]).toMatchObject({ released, released_calls: 2 })
    })
  )
  it.scoped("of an earlier version, or with odd figures in it, counts as nothing spent and keeps all else.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const { released: _, released_calls: __, ...old } = record(1, "2026-01-15T10:30:05")
      const odd = { ...record(2), released: { ...released, cost_usd: -5, total: "many" }, released_calls: 1.5 }
      const none = { ...record(3), released: null }
      yield* put(folder, "run.json", JSON.stringify({ run_name: "test", sessions: [old, odd, none] }))
      const [sums, sessions] = yield* session(folder, (store) =>
        Effect.all([store.sums, Effect.succeed(store.sessions)])
      )
      expect(sessions).toEqual([
        record(1, "2026-01-15T10:30:05"),
        { ...record(2), released: { ...released, cost_usd: 0, total: 0 } },
        record(3)
      ])
      expect(sums).toMatchObject({ apiCalls: 0, costUsd: 0, tokens: { prompt: 7, total: 0 } })
    })
  )
  it.scoped("that cannot be read costs what it told of released prompts, and nothing else.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, save(Rows.kept({ prompt: "a" }), Rows.failed({ prompt: "b" })))
      yield* put(folder, "run.json", '{"sessions":[{"released_calls":4}]}')
      const sums = yield* session(folder, (store) => store.sums)
      expect(sums).toMatchObject({ kept: 1, apiCalls: 2, costUsd: 0.5 })
    })
  )
  it.scoped("has one record a session, oldest first, also of a session that never ended.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, (store) => Effect.zipRight(store.begin(record(1)), store.finish(closing(1))))
      yield* session(folder, (store) => store.begin(record(2)))
      const seen = yield* session(folder, (store) =>
        Effect.as(Effect.zipRight(store.begin(record(3)), store.finish(closing(3))), store.sessions)
      )
      expect(seen).toEqual([record(1, "2026-01-15T10:30:05"), record(2)])
      expect(JSON.parse(yield* text(folder, "run.json"))).toEqual({
        run_name: "test",
        sessions: [record(1, "2026-01-15T10:30:05"), record(2), record(3, "2026-01-15T10:30:05")]
      })
      expect([yield* text(folder, "statistics.json"), yield* text(folder, "README.md")]).toEqual([
        '{\n  "seed": 3\n}\n',
        "card 3\n"
      ])
      expect((yield* files(folder)).filter((name) => name.startsWith("."))).toEqual([])
    })
  )
  it.scoped("is not needed to find a row that ran in a default directory.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const own = { prompt: "b", cwd: "/work/1" }
      yield* session(folder, (store) =>
        Effect.zipRight(
          store.save(Rows.kept({ prompt: "a", cwd: "/work/1", defaultCwd: true })),
          store.save(Rows.kept(own))
        )
      )
      // The second row had the directory of its own, so it is not the prompt "b" without one.
      expect((yield* session(folder, mergeFor("a", "b"))).done).toEqual([[0, 0]])
    })
  )
  it.scoped("that cannot be read counts as none, is kept aside, and is named.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      for (const content of ["", "{", '{"sessions":1}']) {
        yield* put(folder, "run.json", content)
        expect(yield* session(folder, (store) => Effect.succeed(store.sessions))).toEqual([])
        const aside = (yield* files(folder)).filter((name) => name.startsWith("run.json.unreadable-"))
        expect(yield* Effect.forEach(aside, (name) => text(folder, name))).toContain(content)
      }
    })
  )
})

describe("What lies in a run folder", () => {
  const opened = (folder: string, more: Partial<Jsonl.Options> = {}) =>
    Effect.match(
      session(folder, () => Effect.void, more),
      { onFailure: ({ message }) => message, onSuccess: () => "opened" }
    )
  it.scoped("and is no regular file keeps the run from beginning.", () =>
    Effect.gen(function* () {
      for (const name of ["run.json", "batch_3.jsonl", "trajectories.jsonl", "statistics.json", "failures.jsonl"]) {
        const folder = yield* Folder.scoped
        yield* Effect.promise(() => mkdir(join(folder, name)))
        expect(yield* opened(folder)).toContain(`${join(folder, name)} is no regular file`)
      }
      const folder = yield* Folder.scoped
      execFileSync("mkfifo", [join(folder, "batch_5.jsonl")])
      expect(yield* opened(folder)).toContain("batch_5.jsonl is no regular file")
    })
  )
  it.scoped("is never overwritten when it is a merged data set without its batch files.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* put(folder, "trajectories.jsonl", "{}\n")
      yield* put(folder, "batch_0.jsonl", "")
      expect(yield* opened(folder, { resume: false })).toContain("holds results already (batch_0.jsonl)")
      expect(yield* opened(folder)).toContain("but no rows in batch files to make it from")
      expect(yield* text(folder, "trajectories.jsonl")).toBe("{}\n")
    })
  )
  it.scoped("may have any numbers: new batches get one that is read again, and none that is there.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* put(folder, "batch_999999999999999.jsonl", `${lineOf({ prompt: "a", batch: 999_999_999_999_999 })}\n`)
      yield* put(folder, "batch_4.jsonl", "")
      yield* put(folder, "failures.jsonl", '{"batch_num":9007199254740991}\n')
      const next = yield* session(folder, (store) =>
        Effect.as(store.save(Rows.kept({ prompt: "b", batch: store.nextBatch })), store.nextBatch)
      )
      expect(next).toBe(5)
      expect((yield* session(folder, mergeFor("a", "b"))).done).toEqual([[0, 1]])
    })
  )
  it.scoped("stays when its last line is whole, but no row: only what is torn is cut off.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const foreign = '{"prompt_index":0,"conversations":[]}'
      yield* put(folder, "batch_0.jsonl", `${lineOf({ prompt: "a" })}\n${foreign}`)
      yield* put(folder, "batch_1.jsonl", `${lineOf({ prompt: "b" })}\n${foreign.slice(0, 20)}`)
      expect((yield* session(folder, mergeFor("a", "b"))).done).toEqual([[0, 1]])
      expect(yield* text(folder, "batch_0.jsonl")).toBe(`${lineOf({ prompt: "a" })}\n${foreign}`)
      expect(yield* text(folder, "batch_1.jsonl")).toBe(`${lineOf({ prompt: "b" })}\n`)
    })
  )
  it.scoped("may begin with a byte-order mark.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* put(folder, "batch_0.jsonl", `\ufeff${lineOf({ prompt: "a" })}\n`)
      expect((yield* session(folder, mergeFor("a"))).done).toEqual([[0, 0]])
      expect(yield* text(folder, "trajectories.jsonl")).toBe(`${lineOf({ prompt: "a" })}\n`)
    })
  )
  it.scoped("may be rows of batch_runner.py: they are done, and get the shape of all others at the merge.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const count = { count: 1, success: 1, failure: 0 }
      const row = {
        prompt_index: 7,
        conversations: [
          { from: "system", value: "You are an agent." },
          { from: "human", value: "a" },
          { from: "gpt", value: "<think>\nx\n</think>\ny" }
        ],
        metadata: { batch_num: 3, timestamp: "2025-01-15T10:30:00.123456", model: "m" },
        completed: true,
        partial: false,
        api_calls: 2,
        toolsets_used: ["terminal"],
        tool_stats: { terminal: count, skills_list: { count: 0, success: 0, failure: 0 } },
        tool_error_counts: { terminal: 0, skills_list: 0 }
      }
      yield* put(folder, "batch_3.jsonl", `${JSON.stringify(row)}\n`)
      const found = yield* session(folder, mergeFor("b", "a"))
      expect(found.done).toEqual([[1, 1]])
      const own = Rows.row({ prompt: "a", place: 1, batch: 3, calls: { terminal: 1 } })
      const merged = JSON.parse(yield* text(folder, "trajectories.jsonl"))
      expect(merged).toEqual({
        ...own,
        conversations: row.conversations
          .slice(1)
          .map((turn) => ({ ...turn, tool_calls: [], tool_call_id: "", name: "" })),
        metadata: { ...own.metadata, timestamp: "2025-01-15T10:30:00", model: "m", usage: noUsage },
        api_calls: 2,
        system: "You are an agent."
      })
      const keys = (value: unknown): unknown =>
        typeof value === "object" && value !== null
          ? Object.entries(value).map(([name, part]) => [name, keys(part)])
          : typeof value
      expect(keys(merged)).toEqual(keys(own))
    })
  )
})

describe("A row of the last version", () => {
  it.scoped("is merged with the keys of ours in their order, and with its own figures.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const row = Rows.row({ prompt: "a", image: "debian", cwd: "/w", sample: 2, batch: 4, calls: { terminal: 3 } })
      const own = { ...row, api_calls: 5, system: "You are.", source: '{"id":1}', toolsets_used: ["terminal", "todo"] }
      const { shortened: _, ...metadata } = own.metadata
      yield* put(folder, "batch_4.jsonl", `${encodeLine({ ...own, metadata })}\n`)
      const index = new ContentIndex()
      index.add(ContentKey.of({ text: "z", image: "", cwd: "" }), 0, 0)
      index.add(ContentKey.of({ text: "a", image: "debian", cwd: "/w" }), 0, 0)
      const sums = yield* session(folder, (store) =>
        Effect.zipRight(store.merge(Resume.match(store.ledger, index, 3)), store.sums)
      )
      expect(yield* text(folder, "trajectories.jsonl")).toBe(`${encodeLine({ ...own, prompt_index: 1 })}\n`)
      expect(sums).toMatchObject({ kept: 1, apiCalls: 5, costUsd: 0.25 })
    })
  )
  it.scoped("of ours that is completed for other tools keeps how many results were shortened.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const row = Rows.row({ prompt: "a" })
      yield* put(folder, "batch_0.jsonl", `${encodeLine({ ...row, metadata: { ...row.metadata, shortened: 6 } })}\n`)
      yield* session(folder, mergeFor("a"), { toolNames: [...Rows.toolNames, "patch"] })
      expect(JSON.parse(yield* text(folder, "trajectories.jsonl"))).toMatchObject({
        metadata: { shortened: 6 },
        tool_stats: { patch: { count: 0 } }
      })
    })
  )
  it.scoped("counts an answer for each of its turns where it does not tell how many there were.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const row = Rows.row({ prompt: "a" })
      const [human, gpt] = row.conversations
      const { api_calls: _, ...rest } = { ...row, conversations: [human, gpt, gpt, gpt] }
      yield* put(folder, "batch_0.jsonl", `${encodeLine(rest)}\n${encodeLine({ ...rest, api_calls: -4 })}\n`)
      expect((yield* session(folder, mergeFor("a"))).sums.apiCalls).toBe(6)
      expect(JSON.parse((yield* text(folder, "trajectories.jsonl")).split("\n")[0] ?? "").api_calls).toBe(3)
    })
  )
})

describe("A finished row with an odd field", () => {
  const base = () => JSON.parse(lineOf({ prompt: "a", calls: { terminal: 1 } }))
  const inMetadata = (more: object) => ({ ...base(), metadata: { ...base().metadata, ...more } })
  const [human, gpt] = base().conversations
  const without = (name: string) => Object.fromEntries(Object.entries(base()).filter(([key]) => key !== name))
  it.scoped.each([
    ["no image", inMetadata({ image: null })],
    ["no directory", inMetadata({ cwd: null })],
    ["no usage", inMetadata({ usage: null })],
    ["part of the usage", inMetadata({ usage: { prompt: 1 } })],
    ["a batch number that is text", inMetadata({ batch_num: "0" })],
    ["metadata of another kind", { ...base(), metadata: "none" }],
    ["no statistics", without("tool_stats")],
    ["no tool's statistics", { ...base(), tool_stats: { terminal: null } }],
    [
      "rates in its statistics",
      { ...base(), tool_stats: { terminal: { count: 1, success: 1, failure: 0, success_rate: 1 } } }
    ],
    ["an answer without text", { ...base(), conversations: [human, { from: "gpt" }, gpt] }],
    ["a turn of another kind", { ...base(), conversations: [human, { from: "observation", value: "x" }, gpt] }],
    [
      "turns without calls",
      {
        ...base(),
        conversations: [
          { from: "human", value: "a" },
          { from: "gpt", value: "b" }
        ]
      }
    ],
    ["no source", without("source")]
  ] as const)("is done all the same, and merged in the shape of all others: %s.", ([, row]) =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* put(folder, "batch_0.jsonl", `${JSON.stringify(row)}\n`)
      expect((yield* session(folder, mergeFor("a"))).done).toEqual([[0, 0]])
      const merged = JSON.parse(yield* text(folder, "trajectories.jsonl"))
      expect(Schema.is(Row)(merged)).toBe(true)
      const keys = (value: object) => Object.keys(value)
      expect([keys(merged), keys(merged.metadata), keys(merged.tool_stats), keys(merged.tool_stats.terminal)]).toEqual([
        keys(base()),
        keys(base().metadata),
        [...Rows.toolNames],
        ["count", "success", "failure"]
      ])
      for (const turn of merged.conversations) expect(keys(turn)).toEqual(keys(human))
    })
  )
})

const noUsage = { prompt: 0, completion: 0, reasoning: 0, cached: 0, total: 0, cost_usd: 0 }
