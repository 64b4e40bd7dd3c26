/** A session goes on until the model is done, and ends as what it came to: finished, out of turns, cut or broken. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { lastTurn } from "../../src/agent/SystemPrompt.ts"
import { Model, ModelError, noUsage, type Usage } from "../../src/model/Model.ts"
import { bad, calls, contents, converse, empty, type Line, text, told, word } from "./session.ts"

/** A model that fails every call. */
const failing = (reason: ModelError["reason"], usage: Usage) =>
  Layer.succeed(Model, { complete: () => Effect.fail(new ModelError({ reason, detail: "no", usage })) })

describe("A session", () => {
  it.effect("ends with the first answer that calls no tool.", () =>
    Effect.gen(function* () {
      const { ending, transcript, asks } = yield* converse([calls(word("a")), text("Done."), text("Never.")])
      expect(ending).toEqual({ _tag: "Finished" })
      expect(told(transcript)).toEqual(["", '{"said":"a"}', "Done."])
      expect(transcript.apiCalls).toBe(2)
      expect(contents(asks[1])).toEqual(["System.", "Talk.", "", '{"said":"a"}'])
      expect(asks[1]?.messages.map(({ role }) => role)).toEqual(["system", "user", "answer", "tool"])
    })
  )
  it.effect("runs several calls of one answer in their order, each answered under its own id.", () =>
    Effect.gen(function* () {
      const { transcript, asks } = yield* converse([calls(word("a"), word("bad"), word("c")), text("Done.")])
      expect(told(transcript).slice(1, 4)).toEqual(['{"said":"a"}', '{"error":"a bad word"}', '{"said":"c"}'])
      const results = (asks[1]?.messages ?? []).flatMap((message) => (message.role === "tool" ? [message.callId] : []))
      const answer = transcript.events[0]
      expect(results).toEqual(answer?._tag === "Answered" ? answer.answer.toolCalls.map(({ id }) => id) : [])
      expect(new Set(results).size).toBe(3)
    })
  )
  it.effect("makes max_turns calls of the model at most.", () =>
    Effect.gen(function* () {
      const { ending, transcript } = yield* converse(
        Array.from({ length: 9 }, (_, n) => calls(word(`${n}`))),
        { maxTurns: 3 }
      )
      expect([ending._tag, transcript.apiCalls]).toEqual(["OutOfTurns", 3])
      expect(told(transcript).at(-1)).toBe('{"said":"2"}')
    })
  )
  it.effect("that answers on the last allowed call is finished.", () =>
    Effect.gen(function* () {
      expect((yield* converse([calls(word("a")), text("Done.")], { maxTurns: 2 })).ending._tag).toBe("Finished")
    })
  )
  it.effect("tells the model which call is the last, on that call alone and only where it has tools.", () =>
    Effect.gen(function* () {
      const script = [calls(word("a")), calls(word("b")), text("Done.")]
      const { asks, transcript } = yield* converse(script, { maxTurns: 3 })
      expect(asks.map((ask) => contents(ask).filter((content) => content.includes(lastTurn)).length)).toEqual([0, 0, 1])
      expect(contents(asks[2]).at(-1)).toBe(`{"said":"b"}\n\n${lastTurn}`)
      expect(told(transcript).join()).not.toContain(lastTurn)
      const single = yield* converse([text("Hi.")], { maxTurns: 1 })
      expect(contents(single.asks[0])).toEqual(["System.", `Talk.\n\n${lastTurn}`])
      const without = yield* converse([text("Hi.")], { maxTurns: 1, tools: [] })
      expect(contents(without.asks[0])).toEqual(["System.", "Talk."])
    })
  )
})

describe("A session with invalid calls", () => {
  it.effect("goes on, the model told what is wrong, and is cut by the third such answer in a row.", () =>
    Effect.gen(function* () {
      const unknown = calls({ name: "shout", arguments: {} })
      const garbled = calls({ name: "say", arguments: '{"word": ' })
      const { ending, transcript } = yield* converse([bad, unknown, garbled, text("Never.")])
      expect(ending).toEqual({ _tag: "Cut", why: "InvalidCalls" })
      const results = told(transcript)
      expect(results[1]).toMatch(/bad arguments for say: .*word/)
      expect(results[3]).toMatch(/there is no tool .*shout.*the tools on offer are say, recite/)
      expect(results[5]).toMatch(/bad arguments for say: /)
      expect(transcript.apiCalls).toBe(3)
    })
  )
  it.effect("starts to count anew with a valid call, also one beside an invalid one or one that fails.", () =>
    Effect.gen(function* () {
      for (const good of [calls(word("a")), calls(word("bad")), calls({ name: "shout", arguments: {} }, word("a"))]) {
        const { ending } = yield* converse([bad, bad, good, bad, bad, text("Done.")])
        expect(ending._tag).toBe("Finished")
      }
      expect((yield* converse([bad, bad, calls(word("a")), bad, bad, bad, text("Never.")])).ending._tag).toBe("Cut")
    })
  )
})

describe("An answer that was cut", () => {
  it.effect("by its length or by a filter ends the session as partial, and its calls are not run.", () =>
    Effect.gen(function* () {
      for (const finish_reason of ["length", "content_filter"] as const) {
        const { ending, transcript } = yield* converse([{ ...calls(word("a")), content: "Half", finish_reason }])
        expect(ending).toEqual({ _tag: "Cut", why: "Truncated" })
        expect(told(transcript)).toEqual(["Half"])
      }
    })
  )
  it.effect("in the middle of its reasoning is worth keeping; one without anything is not.", () =>
    Effect.gen(function* () {
      const { ending } = yield* converse([{ reasoning: "Half a th", content: "", finish_reason: "length" }])
      expect(ending).toEqual({ _tag: "Cut", why: "Truncated" })
      const { transcript } = yield* converse([{ content: "", finish_reason: "length" }, text("Done.")])
      expect([told(transcript), transcript.apiCalls]).toEqual([["Done."], 2])
    })
  )
})

describe("An empty answer", () => {
  it.effect("is asked for again three times, and is never kept.", () =>
    Effect.gen(function* () {
      const { ending, transcript, asks } = yield* converse([empty, empty, empty, text("Done.")])
      expect([ending._tag, told(transcript), transcript.apiCalls]).toEqual(["Finished", ["Done."], 4])
      expect(asks.map(contents)).toEqual(Array.from({ length: 4 }, () => ["System.", "Talk."]))
    })
  )
  it.effect("breaks the session when it comes a fourth time, with what was spent.", () =>
    Effect.gen(function* () {
      const spent: Line = { ...empty, usage: { prompt: 10, completion: 3, cost_usd: 0.5 } }
      const { ending, transcript } = yield* converse([calls(word("a")), spent, spent, spent, spent, text("Never.")])
      expect(ending._tag === "Broke" && [ending.error._tag, ending.error.message, ending.error.transient]).toEqual([
        "EmptyAnswer",
        "the model's answer was empty 4 times in a row",
        true
      ])
      expect(transcript.apiCalls).toBe(5)
      expect(transcript.usage.cost_usd).toBe(2)
    })
  )
  it.effect("is counted anew for each turn, and an answer that only calls tools is none.", () =>
    Effect.gen(function* () {
      const { ending, transcript } = yield* converse(
        [empty, empty, calls(word("a")), empty, empty, empty, text("Done.")],
        {
          maxTurns: 2
        }
      )
      expect([ending._tag, transcript.apiCalls]).toEqual(["Finished", 7])
    })
  )
})

describe("A session that cannot go on", () => {
  it.effect("breaks with the model's error.", () =>
    Effect.gen(function* () {
      const { ending } = yield* converse([calls(word("a"))])
      expect(ending._tag === "Broke" && [ending.error instanceof ModelError, ending.error.transient]).toEqual([
        true,
        false
      ])
    })
  )
  it.effect("breaks with an error of its own prompt, and counts what the call spent.", () =>
    Effect.gen(function* () {
      const usage = { prompt: 7, completion: 0, reasoning: 0, cached: 0, total: 7, cost_usd: 0.25 }
      const { ending, transcript } = yield* converse([], { between: failing("ContentRefused", usage) })
      expect(ending._tag === "Broke" && "reason" in ending.error && ending.error.reason).toBe("ContentRefused")
      expect([transcript.usage, transcript.apiCalls]).toEqual([usage, 0])
    })
  )
  it.effect("fails with an error that no call of the run can get past.", () =>
    Effect.gen(function* () {
      for (const reason of ["Unauthorized", "NoCredit", "ModelMissing"] as const) {
        const exit = yield* Effect.exit(converse([], { between: failing(reason, noUsage) }))
        expect(exit).toEqual(Exit.fail(new ModelError({ reason, detail: "no" })))
      }
    })
  )
  it.effect("breaks with the sandbox's error.", () =>
    Effect.gen(function* () {
      const { ending, transcript } = yield* converse([calls(word("a")), calls(word("lost")), text("Never.")])
      expect(ending._tag === "Broke" && [ending.error._tag, ending.error.message]).toEqual([
        "SandboxError",
        "the sandbox is gone"
      ])
      expect(transcript.apiCalls).toBe(2)
    })
  )
})
