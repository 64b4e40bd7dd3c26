/** A run takes every prompt through a session, keeps what comes of it, and stands in order however it ends. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Ref, TestClock } from "effect"

import { type Answer, Model, ModelError, noUsage } from "../src/model/Model.ts"
import * as Pipeline from "../src/Pipeline.ts"
import * as Progress from "../src/report/Progress.ts"
import { SandboxError } from "../src/sandbox/Sandbox.ts"
import * as Memory from "../src/store/Memory.ts"
import { type Entry, Store, StoreError } from "../src/store/Store.ts"
import { isDone } from "../src/trajectory/Outcome.ts"
import * as Folder from "./support/Folder.ts"
import * as Offline from "./support/Offline.ts"

const many = (count: number) => Array.from({ length: count }, (_, n) => `prompt ${n}`)

/** A run to its end: the report and what it left. */
const run = (about: Offline.About, options: Pipeline.Options = {}) =>
  Effect.gen(function* () {
    const report = yield* Pipeline.run(options)
    const { contents, boxes, log } = yield* Offline.Traces
    return {
      report,
      ...(yield* Ref.get(contents)),
      boxes: yield* Ref.get(boxes),
      log: yield* Ref.get(log),
      counts: yield* Effect.flatMap(Progress.Progress, ({ counts }) => counts)
    }
  }).pipe(Effect.provide(Offline.layer(about)))

const answer = (content: string): Answer => ({
  content,
  reasoning: "Hm.",
  toolCalls: [],
  finishReason: "stop",
  usage: noUsage,
  echo: {}
})

/** A model that does with a prompt what the test says. */
const model = (complete: (prompt: string) => Effect.Effect<Answer, ModelError>) =>
  Layer.succeed(Model, { complete: ({ prompt }) => complete(prompt) })

const rowOf = ({ outcome }: Entry) => (outcome._tag === "Failed" ? undefined : outcome.row)

const failureOf = ({ outcome }: Entry) => (outcome._tag === "Failed" ? outcome.failure : undefined)

const promptsOf = (lines: ReadonlyArray<string>) => lines.map((line) => JSON.parse(line).conversations[0].value)

describe("A run", () => {
  it.effect("takes every prompt through a session in a sandbox of its own, and merges the rows in their order.", () =>
    Effect.gen(function* () {
      const { report, entries, trajectories, boxes, counts } = yield* run({ rows: many(7), config: { num_workers: 3 } })
      expect(report).toMatchObject({ prompts: 7, sessions: 7, toDo: 0, stopped: false, merged: { rows: 7, strays: 0 } })
      expect(promptsOf(trajectories)).toEqual(many(7))
      expect(new Set(boxes.opened.map(({ id }) => id)).size).toBe(7)
      expect(boxes.closed.toSorted()).toEqual(boxes.opened.map(({ id }) => id).toSorted())
      expect(counts).toMatchObject({ total: 7, kept: 7, inFlight: 0 })
      expect(entries.map(({ place, batch }) => [place, batch]).toSorted()).toEqual(
        many(7).map((_, place) => [place, Math.floor(place / 2)])
      )
    })
  )
  it.effect("makes of a session with tools the row that the contract describes.", () =>
    Effect.gen(function* () {
      const { entries, boxes } = yield* run({
        rows: [{ prompt: "List.", cwd: "/own", id: 7 }],
        prompts: {
          "List.": [
            { reasoning: "Look.", tool_calls: [{ name: "terminal", arguments: { command: "ls" } }] },
            { content: "Nothing." }
          ]
        },
        config: { ephemeral_system_prompt: "SECRET", prefill_messages: [{ role: "user", content: "SECRET too" }] }
      })
      const row = entries.flatMap((entry) => rowOf(entry) ?? [])[0]
      expect(boxes.opened).toEqual([{ id: "0-0-0", image: "", cwd: "/own" }])
      expect(row).toMatchObject({ completed: true, partial: false, api_calls: 2, toolsets_used: ["terminal", "todo"] })
      expect(row?.conversations.map((turn) => [turn.from, turn.value])).toEqual([
        ["human", "List."],
        ["gpt", "<think>\nLook.\n</think>\n"],
        ["tool", '{"output":"ls","exit_code":0,"error":""}'],
        ["gpt", "Nothing."]
      ])
      expect(row?.metadata).toMatchObject({ cwd: "/own", sample: 0, occurrence: 0, model: "scripted" })
      expect(row?.source).toBe('{"id":7}')
      expect(Object.keys(row?.tool_stats ?? {})).toEqual(Offline.toolbox.toolNames)
      expect(JSON.stringify(row)).not.toContain("SECRET")
    })
  )
  it.effect("runs each prompt as many times as samples are asked for, numbered.", () =>
    Effect.gen(function* () {
      const { report, entries, trajectories } = yield* run({ rows: ["a", "b", "a"], config: { samples_per_prompt: 3 } })
      expect([report.prompts, report.sessions, report.toDo]).toEqual([3, 9, 0])
      expect(
        trajectories.map((line) => JSON.parse(line)).map((row) => [row.prompt_index, row.metadata.sample])
      ).toEqual([0, 1, 2].flatMap((place) => [0, 1, 2].map((sample) => [place, sample])))
      const occurrences = entries.map(({ place, occurrence }) => `${place}:${occurrence}`)
      expect(new Set(occurrences)).toEqual(new Set(["0:0", "1:0", "2:1"]))
    })
  )
  it.effect("has num_workers sessions in flight, neither more nor fewer.", () =>
    Effect.gen(function* () {
      const inFlight = yield* Ref.make({ now: 0, most: 0 })
      const gate = yield* Deferred.make<void>()
      const full = yield* Deferred.make<void>()
      const waiting = model((prompt) =>
        Ref.updateAndGet(inFlight, ({ now, most }) => ({ now: now + 1, most: Math.max(most, now + 1) })).pipe(
          Effect.tap(({ now }) => (now === 5 ? Deferred.succeed(full, undefined) : Effect.void)),
          Effect.zipRight(Deferred.await(gate)),
          Effect.zipRight(Ref.update(inFlight, ({ now, most }) => ({ now: now - 1, most }))),
          Effect.as(answer(prompt))
        )
      )
      const fiber = yield* Effect.fork(run({ rows: many(23), model: waiting, config: { num_workers: 5 } }))
      yield* Deferred.await(full)
      yield* Effect.yieldNow({ priority: 10 })
      expect((yield* Ref.get(inFlight)).now).toBe(5)
      yield* Deferred.succeed(gate, undefined)
      const { boxes, report } = yield* Fiber.join(fiber)
      expect([(yield* Ref.get(inFlight)).most, boxes.most, report.merged.rows]).toEqual([5, 5, 23])
    })
  )
  it.effect("does not let a slow prompt idle the other workers, whatever their batches.", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const others = yield* Ref.make(0)
      const slow = model((prompt) =>
        prompt === "prompt 0"
          ? Effect.as(Deferred.await(gate), answer(prompt))
          : Ref.updateAndGet(others, (count) => count + 1).pipe(
              Effect.tap((count) => (count === 19 ? Deferred.succeed(gate, undefined) : Effect.void)),
              Effect.as(answer(prompt))
            )
      )
      const { report } = yield* run({ rows: many(20), model: slow, config: { num_workers: 2, batch_size: 4 } })
      expect(report.merged.rows).toBe(20)
    })
  )
  it.effect("closes each batch once, with one worker as with many.", () =>
    Effect.gen(function* () {
      for (const num_workers of [1, 3]) {
        const closed = yield* Ref.make<ReadonlyArray<number>>([])
        const contents = yield* Ref.make(Memory.empty)
        const noting = Layer.effect(
          Store,
          Effect.map(Store, (store) => ({
            ...store,
            closeBatch: (batch: number) => Ref.update(closed, (all) => [...all, batch])
          }))
        ).pipe(Layer.provide(Memory.layer({ toolNames: Offline.toolbox.toolNames, contents })))
        yield* run({ rows: many(7), store: noting, config: { num_workers } })
        expect((yield* Ref.get(closed)).toSorted()).toEqual([0, 1, 2, 3])
      }
    })
  )
})

describe("A session that fails", () => {
  it.effect("does not stop the others, and says what it spent and whether another attempt can help.", () =>
    Effect.gen(function* () {
      const failing = model((prompt) =>
        prompt === "prompt 1"
          ? Effect.fail(new ModelError({ reason: "Overloaded", detail: "HTTP 503: busy", status: 503 }))
          : prompt === "prompt 2"
            ? Effect.fail(new ModelError({ reason: "BadRequest", detail: "HTTP 400: no", status: 400 }))
            : Effect.succeed(answer(prompt))
      )
      const { report, entries, counts } = yield* run({ rows: many(5), model: failing })
      expect(report).toMatchObject({ toDo: 2, merged: { rows: 3 } })
      expect([...report.failures]).toEqual([
        ["overloaded", 1],
        ["bad_request", 1]
      ])
      expect(counts).toMatchObject({ kept: 3, failed: 2, inFlight: 0 })
      expect(entries.flatMap((entry) => failureOf(entry) ?? [])).toMatchObject([
        { prompt_index: 1, error: "ModelError", reason: "Overloaded", message: "HTTP 503: busy", retryable: true },
        { prompt_index: 2, error: "ModelError", reason: "BadRequest", message: "HTTP 400: no", retryable: false }
      ])
      expect(entries.filter(({ outcome }) => isDone(outcome)).length).toBe(3)
    })
  )
  it.effect("for want of a sandbox has called no model.", () =>
    Effect.gen(function* () {
      const asked = yield* Ref.make(0)
      const counting = model((prompt) =>
        Effect.as(
          Ref.update(asked, (count) => count + 1),
          answer(prompt)
        )
      )
      const { entries } = yield* run({
        rows: ["a", { prompt: "b", image: "nowhere/none" }],
        model: counting,
        boxes: {
          open: ({ image }) =>
            image === ""
              ? Effect.void
              : Effect.fail(new SandboxError({ reason: "ImageMissing", detail: `no image ${image}` }))
        }
      })
      expect(yield* Ref.get(asked)).toBe(1)
      expect(entries.flatMap((entry) => failureOf(entry) ?? [])).toMatchObject([
        {
          ...{ prompt_index: 1, error: "SandboxError", reason: "ImageMissing", kind: "image_missing" },
          ...{ attempt: 1, retryable: false, api_calls: 0, usage: noUsage }
        }
      ])
    })
  )
  it.effect("because its sandbox was lost can be tried again.", () =>
    Effect.gen(function* () {
      const { entries } = yield* run({
        rows: ["a"],
        default: [{ reasoning: "r", tool_calls: [{ name: "terminal", arguments: { command: "ls" } }] }],
        boxes: { exec: () => Effect.fail(new SandboxError({ reason: "Lost", detail: "gone" })) }
      })
      expect(entries.flatMap((entry) => failureOf(entry) ?? [])).toMatchObject([
        { error: "SandboxError", reason: "Lost", message: "gone", retryable: true, api_calls: 1 }
      ])
    })
  )
  it.effect("for want of time is released and tells what it spent until then.", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(
        run({
          rows: ["a"],
          config: { timeout: 60 },
          default: [
            {
              reasoning: "r",
              tool_calls: [{ name: "todo", arguments: {} }],
              usage: { prompt: 100, completion: 20, cost_usd: 0.5 }
            },
            { content: "Too late.", delay_ms: 3_600_000 }
          ]
        })
      )
      yield* bothWait
      yield* TestClock.adjust("59 seconds")
      yield* moment
      expect((yield* Fiber.poll(fiber))._tag).toBe("None")
      yield* TestClock.adjust("1 second")
      const { entries, boxes, report } = yield* Fiber.join(fiber)
      expect(entries.flatMap((entry) => failureOf(entry) ?? [])).toMatchObject([
        {
          error: "SessionTimedOut",
          reason: "SessionTimedOut",
          message: "not finished after 60 s (--timeout)",
          retryable: true,
          api_calls: 1,
          usage: { prompt: 100, completion: 20, total: 120, cost_usd: 0.5 }
        }
      ])
      expect([boxes.closed, report.toDo, report.sums.costUsd]).toEqual([["0-0-0"], 1, 0.5])
    })
  )
})

/** Real time for what the run does on the real disk; the test's clock stands still meanwhile. */
const moment = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))

/** Waits until the session has its time-out running and its answer on the way. */
const bothWait = Effect.repeat(Effect.zipRight(moment, TestClock.sleeps()), {
  until: (sleeps) => Array.from(sleeps).length >= 2
})

describe("A run without reasoning", () => {
  const plain = [{ content: "Done." }]
  const warnings = (log: ReadonlyArray<string>) => log.filter((line) => line.startsWith("WARN"))
  it.effect("discards each row, warns once after the third with the way out, and is done.", () =>
    Effect.gen(function* () {
      const { report, entries, log, trajectories } = yield* run({ rows: many(10), default: plain })
      expect([report.toDo, report.sums.discardedNoReasoning, trajectories]).toEqual([0, 10, []])
      expect(
        entries.every(({ outcome }) => outcome._tag === "Discarded" && outcome.row.reason === "no_reasoning")
      ).toBe(true)
      expect(warnings(log)).toEqual([
        expect.stringMatching(/all 2 sessions so far were discarded: .*--reasoning_filter=off/)
      ])
    })
  )
  it.effect("does not warn when something is kept.", () =>
    Effect.gen(function* () {
      const { log, report } = yield* run({
        rows: many(10),
        default: plain,
        prompts: { "prompt 1": [{ reasoning: "r", content: "c" }] },
        config: { num_workers: 1 }
      })
      expect([warnings(log), report.sums.kept]).toEqual([[], 1])
    })
  )
  it.effect("on purpose keeps its rows, and says that the filter is off.", () =>
    Effect.gen(function* () {
      for (const config of [
        { reasoning_disabled: true },
        { reasoning_effort: "none" },
        { reasoning_filter: "off" }
      ] as const) {
        const { report, log } = yield* run({ rows: many(4), default: plain, config })
        expect([report.sums.kept, report.merged.rows]).toEqual([4, 4])
        expect(log).toContain("INFO the reasoning filter is off: rows without reasoning are kept")
      }
    })
  )
})

describe("A run that is stopped", () => {
  it.effect("starts no prompt any more, releases those in flight, and still merges.", () =>
    Effect.gen(function* () {
      const stop = yield* Deferred.make<void>()
      const started = yield* Ref.make(0)
      const stuck = model((prompt) =>
        Ref.updateAndGet(started, (count) => count + 1).pipe(
          Effect.flatMap((count) =>
            count <= 4
              ? Effect.succeed(answer(prompt))
              : Effect.zipRight(count === 6 ? Deferred.succeed(stop, undefined) : Effect.void, Effect.never)
          )
        )
      )
      const { report, boxes, counts, trajectories, entries } = yield* run(
        { rows: many(50), model: stuck, config: { num_workers: 2 } },
        { stop: Deferred.await(stop) }
      )
      expect(report).toMatchObject({ stopped: true, toDo: 46, merged: { rows: 4 } })
      expect([yield* Ref.get(started), boxes.opened.length, boxes.closed.length, counts.inFlight]).toEqual([6, 6, 6, 0])
      expect([trajectories.length, entries.length, [...report.failures]]).toEqual([4, 4, []])
    })
  )
  it.effect("counts a row that was safe by then.", () =>
    Effect.gen(function* () {
      const stop = yield* Deferred.make<void>()
      const contents = yield* Ref.make(Memory.empty)
      const slow = Layer.effect(
        Store,
        Effect.map(Store, (store) => ({
          ...store,
          save: (entry: Entry) =>
            store.save(entry).pipe(
              Effect.zipLeft(Deferred.succeed(stop, undefined)),
              // Time for the stop to reach this very fiber.
              Effect.zipLeft(Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))),
              Effect.uninterruptible
            )
        }))
      ).pipe(Layer.provide(Memory.layer({ toolNames: Offline.toolbox.toolNames, contents })))
      const { report } = yield* run(
        { rows: many(3), store: slow, config: { num_workers: 1 } },
        { stop: Deferred.await(stop) }
      )
      expect([report.stopped, report.merged.rows, report.toDo]).toEqual([true, 1, 2])
    })
  )
})

describe("A run that cannot go on", () => {
  it.effect("because nothing can be saved any more releases what it holds and says why.", () =>
    Effect.gen(function* () {
      const contents = yield* Ref.make(Memory.empty)
      const full = Layer.effect(
        Store,
        Effect.map(Store, (store) => ({
          ...store,
          save: (entry: Entry) =>
            entry.place === 2
              ? Effect.fail(new StoreError({ reason: "NoSpace", detail: "no space left" }))
              : store.save(entry)
        }))
      ).pipe(Layer.provide(Memory.layer({ toolNames: Offline.toolbox.toolNames, contents })))
      const about = { rows: many(9), store: full, config: { num_workers: 1 } }
      const error = yield* Effect.flip(run(about))
      expect([error._tag, error.message]).toEqual(["StoreError", "no space left"])
      expect((yield* Ref.get(contents)).trajectories.length).toBe(2)
    })
  )
})

describe("A run that is gone on with", () => {
  const session = (folder: string, about: Offline.About) =>
    Effect.map(run({ ...about, store: Offline.folderStore(folder) }), ({ report, log, boxes }) => ({
      report,
      log,
      opened: boxes.opened.length
    }))
  const json = (folder: string, name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"))

  it.scoped("does what is left, in new batches, whatever the order of the data set.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      const failing = model((prompt) =>
        prompt.endsWith("3") || prompt.endsWith("1")
          ? Effect.fail(new ModelError({ reason: "Overloaded", detail: "HTTP 503" }))
          : Effect.succeed(answer(prompt))
      )
      const first = yield* session(folder, { rows: many(5), model: failing })
      expect([first.report.toDo, first.opened]).toEqual([2, 5])
      const second = yield* session(folder, { rows: [...many(5).toReversed(), "new"] })
      expect([second.report.toDo, second.opened, second.report.merged]).toEqual([0, 3, { rows: 6, strays: 0 }])
      expect(promptsOf(readFileSync(join(folder, "trajectories.jsonl"), "utf8").trim().split("\n"))).toEqual([
        ...many(5).toReversed(),
        "new"
      ])
      expect(json(folder, "checkpoint.json")).toMatchObject({
        run_name: "test",
        completed_prompts: [[0, 5]],
        batch_stats: {
          0: { processed: 2, kept: 1, discarded: 0, failed: 1 },
          1: { processed: 2, kept: 1, discarded: 0, failed: 1 },
          2: { processed: 1, kept: 1, discarded: 0, failed: 0 },
          3: { processed: 2, kept: 2, discarded: 0, failed: 0 },
          4: { processed: 1, kept: 1, discarded: 0, failed: 0 }
        }
      })
      expect(json(folder, "statistics.json")).toMatchObject({ total_prompts: 6, total_batches: 5, failed: 0 })
    })
  )
  it.scoped("after its end calls no model, and leaves the merge and the figures right.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, { rows: many(4), default: [{ reasoning: "r", content: "c", usage: { cost_usd: 0.1 } }] })
      const before = json(folder, "statistics.json")
      const never = model(() => Effect.die("asked the model"))
      const { report, opened } = yield* session(folder, { rows: many(4).toReversed(), model: never })
      expect([report.toDo, opened, report.merged.rows]).toEqual([0, 0, 4])
      expect(promptsOf(readFileSync(join(folder, "trajectories.jsonl"), "utf8").trim().split("\n"))).toEqual(
        many(4).toReversed()
      )
      expect(json(folder, "statistics.json")).toEqual(before)
      expect(json(folder, "run.json").sessions.length).toBe(2)
    })
  )
  it.scoped("names the settings that alter the data and differ, in one line.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, { rows: many(2), config: { seed: 1 } })
      const { log } = yield* session(folder, { rows: many(2), config: { seed: 2, max_turns: 5, num_workers: 9 } })
      expect(log).toContain("WARN settings differ from the last session: max_turns: 10 → 5; seed: 1 → 2")
    })
  )
  it.scoped("with more samples a prompt does those that are missing.", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.scoped
      yield* session(folder, { rows: many(3), config: { samples_per_prompt: 2 } })
      const more = yield* session(folder, { rows: many(3), config: { samples_per_prompt: 3 } })
      expect([more.opened, more.report.merged.rows]).toEqual([3, 9])
      const fewer = yield* session(folder, { rows: many(3), config: { samples_per_prompt: 1 } })
      expect([fewer.opened, fewer.report.toDo, fewer.report.merged]).toEqual([0, 0, { rows: 9, strays: 0 }])
    })
  )
})
