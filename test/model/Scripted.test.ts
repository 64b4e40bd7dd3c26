/** The offline model answers by prompt and turn, and a script that does not fit is told in one line. */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Duration, Effect, Fiber, TestClock, TestContext } from "effect"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, type Ask, Model, type ModelError } from "../../src/model/Model.ts"
import * as Scripted from "../../src/model/Scripted.ts"
import { ask, tool } from "./asks.ts"

let folder = ""
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "scripted-"))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const file = async (script: unknown): Promise<string> => {
  const path = join(folder, `${Math.random()}.json`)
  await writeFile(path, typeof script === "string" ? script : JSON.stringify(script))
  return path
}

const complete = (
  path: string | undefined,
  more: Partial<Ask> = {}
): Effect.Effect<Answer, ModelError | Scripted.ScriptError> =>
  Effect.flatMap(Model, (model) => model.complete(ask(more))).pipe(Effect.provide(Scripted.layer(path)))

const script = {
  prompts: {
    "Say hello.": [
      { reasoning: "Let me see.", tool_calls: [{ name: "terminal", arguments: { command: "ls" } }] },
      { content: "<think>\nHm.\n</think>\nHello", finish_reason: "length", usage: { completion: 7, cost_usd: 0.5 } }
    ]
  },
  default: [{ content: "Whatever" }]
}

describe("A script", () => {
  it("answers the calls of its prompt in order.", async () => {
    const path = await file(script)
    const first = await Effect.runPromise(complete(path))
    expect(first.reasoning).toBe("Let me see.")
    expect(first.toolCalls).toEqual([{ id: "call_0_0", name: "terminal", arguments: '{"command":"ls"}' }])
    expect(first.finishReason).toBe("tool_calls")
    const second = await Effect.runPromise(complete(path, { turn: 1, messages: [{ role: "answer", answer: first }] }))
    expect([second.content, second.reasoning, second.finishReason]).toEqual(["Hello", "Hm.", "length"])
    expect([second.usage.completion, second.usage.cost_usd]).toEqual([7, 0.5])
    expect(second.usage.prompt).toBeGreaterThan(0)
    expect(await Effect.runPromise(complete(path))).toEqual(first)
  })
  it("answers any other prompt with its default.", async () => {
    expect((await Effect.runPromise(complete(await file(script), { prompt: "Other" }))).content).toBe("Whatever")
  })
  it("that is too short fails the call for good, naming the prompt and the number of answers.", async () => {
    const error = await Effect.runPromise(Effect.flip(complete(await file(script), { turn: 2 })))
    expect(error.message).toBe('The script ends after answer 2 for the prompt "Say hello.", but call 3 was made')
    expect(error._tag === "ModelError" && [error.reason, error.transient]).toEqual(["NoScript", false])
  })
  it("may let an answer wait.", async () => {
    const path = await file({ default: [{ content: "Hi", delay_ms: 60_000 }] })
    const answer = await Effect.runPromise(
      Effect.gen(function* () {
        const model = yield* Model
        const fiber = yield* Effect.fork(model.complete(ask()))
        yield* TestClock.adjust(Duration.seconds(59))
        expect((yield* Fiber.poll(fiber))._tag).toBe("None")
        yield* TestClock.adjust(Duration.seconds(1))
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(Scripted.layer(path)), Effect.provide(TestContext.TestContext))
    )
    expect(answer.content).toBe("Hi")
  })
  it.each([
    ["{nonsense", /^--model=scripted: the script \/\S+ is not JSON: /],
    ["[]", /^--model=scripted: the script \/\S+ is no object of the form /],
    [{ default: [{ content: 7 }] }, /^--model=scripted: the script \/\S+ does not fit at default\.0\.content: /],
    [
      { prompts: { a: [{ tool_calls: [{ arguments: {} }] }] } },
      /does not fit at prompts\.a\.0\.tool_calls\.0\.name: is missing/
    ],
    [{ default: [{ contents: "x" }] }, /does not fit at default\.0\.contents: /]
  ])("that does not fit is told in one line: %j.", async (given, expected) => {
    const error = await Effect.runPromise(Effect.flip(complete(await file(given))))
    expect([error._tag, error.message]).toEqual(["ScriptError", expect.stringMatching(expected)])
    expect(error.message).not.toContain("\n")
  })
  it("that is missing is told in one line.", async () => {
    const error = await Effect.runPromise(Effect.flip(complete("/no/such.json")))
    expect([error._tag, error.message]).toEqual([
      "ScriptError",
      "--model=scripted: the script /no/such.json does not exist"
    ])
  })
})

describe("The built-in script", () => {
  it.each([
    [["read_file", "terminal"], "terminal"],
    [["read_file", "search_files", "todo"], "search_files"],
    [["todo"], "todo"]
  ])("with %j on offer calls %s first, then answers.", async (names, called) => {
    const tools = names.map(tool)
    const first = await Effect.runPromise(complete(undefined, { tools }))
    expect([first.toolCalls.map((call) => call.name), first.reasoning === ""]).toEqual([[called], false])
    const second = await Effect.runPromise(complete(undefined, { tools, turn: 1 }))
    expect([second.toolCalls, second.finishReason, second.reasoning === "", second.content === ""]).toEqual([
      [],
      "stop",
      false,
      false
    ])
  })
  it("answers at once when nothing it knows is on offer.", async () => {
    const answer = await Effect.runPromise(complete(undefined))
    expect([answer.toolCalls, answer.finishReason]).toEqual([[], "stop"])
  })
})

describe("What a tool asks the offline model", () => {
  const png = "data:image/png;base64,AAAA"
  const shown = [{ role: "user", content: "What is it?", images: [png] }] as const

  it("is answered from the script by the tool and the number of its question, the last answer again and again.", async () => {
    const path = await file({
      ...script,
      asides: { t: [{ content: "One", usage: { cost_usd: 0.5 } }, { images: [png] }] }
    })
    const answers = await Promise.all(
      [0, 1, 2].map((turn) => Effect.runPromise(complete(path, { turn, aside: { tool: "t" } })))
    )
    expect(answers.map(({ content }) => content)).toEqual(["One", "", ""])
    expect(answers.map(({ images }) => images)).toEqual([undefined, [png], [png]])
    expect(answers[0]?.usage.cost_usd).toBe(0.5)
    // The session's own calls go on by themselves.
    expect((await Effect.runPromise(complete(path))).reasoning).toBe("Let me see.")
  })
  it("is answered without a script too, with what was asked, of which model, and what was shown.", async () => {
    const aside = { tool: "vision_analyze", model: "m" }
    for (const path of [undefined, await file(script)]) {
      const { content, images } = await Effect.runPromise(complete(path, { turn: 7, aside, messages: shown }))
      expect(content).toBe(
        "The offline model answers vision_analyze in the place of m. It was shown image/png of 3 bytes. It was asked: What is it?"
      )
      expect(images).toBeUndefined()
      const drawn = await Effect.runPromise(complete(path, { aside: { ...aside, picture: true } }))
      const [, data = ""] = /^data:image\/png;base64,(.*)$/.exec(drawn.images?.[0] ?? "") ?? []
      expect(await sharp(Buffer.from(data, "base64"), { failOn: "warning" }).metadata()).toMatchObject({ width: 8 })
      expect(await sharp(Buffer.from(data, "base64"), { failOn: "warning" }).raw().toBuffer()).toHaveLength(192)
    }
  })
  it("that does not fit in the script is told in one line.", async () => {
    for (const [asides, place] of [
      [{ t: [] }, "asides.t"],
      [{ t: "x" }, "asides.t"],
      [{ t: [{ contnt: "x" }] }, "asides.t.0.contnt"],
      [[], "asides"]
    ] as const) {
      const error = await Effect.runPromise(Effect.flip(complete(await file({ ...script, asides }))))
      expect(error.message).toContain(`does not fit at ${place}`)
      expect(error.message).not.toContain("\n")
    }
  })
})
