import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { describe, expect, test } from "vitest"
import { Sandbox } from "../../src/sandbox/Sandbox.ts"
import * as Speech from "../../src/tools/Speech.ts"
import * as Espeak from "../../src/tools/speech/Espeak.ts"
import * as Sound from "../../src/tools/speech/Sound.ts"
import * as Variables from "../../src/tools/Variables.ts"
import { until } from "../support/Command.ts"
import type { Handler, Reaction } from "../support/ModelServer.ts"
import { call, folder, scoped, serve, toolset } from "./made.ts"
import { sh } from "./support.ts"

const key = "sk-very-secret-key-0123456789"

/** The beginnings of sound files. */
const sounds: Readonly<Record<string, Buffer>> = {
  mp3: Buffer.from(`fffb90c4${"00".repeat(100)}`, "hex"),
  wav: Buffer.concat([Buffer.from("RIFF\x24\0\0\0WAVEfmt ", "latin1"), Buffer.alloc(40)]),
  opus: Buffer.concat([Buffer.from("OggS"), Buffer.alloc(40)]),
  flac: Buffer.concat([Buffer.from("fLaC"), Buffer.alloc(40)]),
  aac: Buffer.from(`fff15080${"00".repeat(100)}`, "hex")
}

const spoken = (kind: unknown): Reaction => ({
  body: sounds[String(kind)] ?? Buffer.alloc(3),
  headers: { "content-type": "audio/mpeg" }
})

const speaker = async (handler: Handler, setting: object = {}) => {
  const server = await serve(handler)
  const endpoint = { baseUrl: server.url, apiKey: Redacted.make(key), model: "m", offline: false }
  return { server, made: toolset(Speech.make, { ttsModel: "tts-1", endpoint, ...setting }) }
}

const bytesOf = (path: string) =>
  Effect.map(
    Effect.flatMap(Sandbox, (sandbox) => sandbox.read(path, { maxBytes: 40_000_000 })),
    ({ bytes }) => Buffer.from(bytes)
  )

describe("The endpoint's speech", () => {
  test("lands in the sandbox in the format of the path, and under its hash in the media folder", async () => {
    const media = join(folder(), "media")
    const { server, made } = await speaker(({ body }) => spoken(body.response_format), { mediaFolder: media })
    await scoped(
      Effect.gen(function* () {
        const tools = yield* made
        const first = yield* call(tools, { text: "Hello \ud800there" })
        expect(first.result).toEqual({
          success: true,
          file_path: expect.stringMatching(/^speech\/1-[0-9a-f]{8}\.mp3$/),
          media: expect.stringMatching(/^media\/[0-9a-f]{32}\.mp3$/)
        })
        expect(yield* bytesOf(first.result.file_path)).toEqual(sounds.mp3)
        for (const name of ["a.wav", "out/b.ogg", "c.opus", "d.FLAC", "e.aac", "f.mp3"]) {
          const used = yield* call(tools, { text: "Hello", output_path: name, voice: "nova" })
          expect(used.result).toMatchObject({ success: true, file_path: name })
        }
        expect((yield* call(tools, { text: "x", output_path: "noext" })).result.file_path).toBe("noext.mp3")
        expect((yield* call(tools, { text: "x", output_path: "some/" })).result.file_path).toMatch(/^some\/9-.*\.mp3$/)
        const above = yield* call(tools, { text: "x", output_path: "some/.." })
        expect(above.result.file_path).toMatch(/^some\/\.\.\/10-[0-9a-f]{8}\.mp3$/)
        expect(yield* sh("ls -d a.wav out/b.ogg d.FLAC noext.mp3")).toBe("a.wav\nd.FLAC\nnoext.mp3\nout/b.ogg\n")
      })
    )
    expect(
      readdirSync(media)
        .map((name) => name.replace(/.*\./, ""))
        .toSorted()
    ).toEqual(Object.keys(sounds).toSorted())
    const [first, second] = server.requests
    expect([first?.path, first?.headers.authorization]).toEqual(["/v1/audio/speech", `Bearer ${key}`])
    expect(first?.body).toEqual({ model: "tts-1", input: "Hello \ufffdthere", voice: "alloy", response_format: "mp3" })
    expect(second?.body).toMatchObject({ voice: "nova", response_format: "wav" })
    expect(server.requests.map(({ body }) => body.response_format)).toEqual([
      "mp3",
      "wav",
      "opus",
      "opus",
      "flac",
      "aac",
      "mp3",
      "mp3",
      "mp3",
      "mp3"
    ])
  })

  test("in another format than was asked for has the extension of what it is", async () => {
    const { made } = await speaker(() => spoken("wav"), { ttsVoice: "mine" })
    await scoped(
      Effect.gen(function* () {
        const used = yield* call(yield* made, { text: "x", output_path: "talk.mp3" })
        expect(used.result.file_path).toBe("talk.wav")
      })
    )
  })

  test("that is refused in a format is asked for as MP3", async () => {
    const { server, made } = await speaker(({ body }) =>
      body.response_format === "mp3"
        ? spoken("mp3")
        : { status: 400, body: { error: { message: "response_format: expected mp3 or pcm", code: 400 } } }
    )
    await scoped(
      Effect.gen(function* () {
        const used = yield* call(yield* made, { text: "x", output_path: "talk.flac" })
        expect(used.result.file_path).toBe("talk.mp3")
      })
    )
    expect(server.requests.map(({ body }) => body.response_format)).toEqual(["flac", "mp3"])
  })

  test("that cannot be had is a failure that says why", async () => {
    const answers: ReadonlyArray<Reaction> = [
      { status: 401, body: { error: { message: `bad key ${key}` } } },
      { body: { error: "no voice" } },
      { body: "" }
    ]
    const { server, made } = await speaker((_, place) => answers[place] ?? spoken("mp3"))
    await scoped(
      Effect.gen(function* () {
        const tools = yield* made
        const bad = yield* call(tools, { text: "x" })
        expect(bad.result.error).toMatch(/refuses the key \(HTTP 401\): bad key \*\*\*/)
        expect((yield* call(tools, { text: "x" })).result.error).toContain("no sound")
        expect((yield* call(tools, { text: "x" })).result.error).toContain("no sound")
        expect((yield* call(tools, { text: "x".repeat(4097) })).result.error).toBe(
          "text: at most 4096 characters, got 4097; speak it in parts"
        )
        expect((yield* call(tools, { text: " " })).ok).toBe(false)
        expect((yield* call(tools, { text: "x", output_path: "a.exe" })).result.error).toContain(
          ".exe is not made here"
        )
        expect((yield* call(tools, { text: "x", output_path: "a\0.mp3" })).ok).toBe(false)
        yield* sh("mkdir taken.mp3")
        expect((yield* call(tools, { text: "x", output_path: "taken.mp3" })).result.error).toMatch(
          /cannot be put into the sandbox: .*directory/
        )
      })
    )
    expect(server.requests).toHaveLength(4)
  })

  test("comes from the tool gateway where there is no key for the endpoint", async () => {
    const { server, made } = await speaker(() => spoken("mp3"))
    const { origin } = new URL(server.url)
    const variables = { TOOL_GATEWAY_USER_TOKEN: "token-0123456789", OPENAI_AUDIO_GATEWAY_URL: origin }
    const endpoint = { baseUrl: "https://openrouter.ai/api/v1", apiKey: undefined, model: "scripted", offline: true }
    await scoped(
      Effect.gen(function* () {
        const gateway = yield* toolset(Speech.make, { ttsModel: "tts-1", endpoint, variables })
        expect((yield* call(gateway, { text: "x" })).ok).toBe(true)
        expect((yield* call(yield* made, { text: "x" })).ok).toBe(true)
      })
    )
    expect(server.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ["/v1/audio/speech", "Bearer token-0123456789"],
      ["/v1/audio/speech", `Bearer ${key}`]
    ])
  })
})

const installed = Espeak.find(Variables.none) !== undefined

describe.skipIf(!installed && process.env.CI === undefined)("espeak-ng", () => {
  test("speaks a text into a whole WAV file that is not silent", async () => {
    const media = join(folder(), "media")
    await scoped(
      Effect.gen(function* () {
        const used = yield* call(yield* toolset(Speech.make, { mediaFolder: media }), {
          text: "-h --version\nGood morning, $(reboot) `ls` \0 world.",
          output_path: "talk.mp3",
          voice: "en-us"
        })
        expect(used.result).toMatchObject({ success: true, file_path: "talk.wav" })
        const wav = yield* bytesOf("talk.wav")
        expect(wav.toString("latin1", 0, 4) + wav.toString("latin1", 8, 16)).toBe("RIFFWAVEfmt ")
        expect(wav.readUInt32LE(4)).toBe(wav.length - 8)
        expect([wav.toString("latin1", 36, 40), wav.readUInt32LE(40)]).toEqual(["data", wav.length - 44])
        const rate = wav.readUInt32LE(24)
        const samples = new Int16Array(wav.buffer.slice(wav.byteOffset + 44, wav.byteOffset + wav.length))
        expect(samples.length / rate).toBeGreaterThan(1)
        expect(samples.reduce((most, each) => Math.max(most, Math.abs(each)), 0)).toBeGreaterThan(3000)
        expect(readFileSync(join(media, "..", used.result.media)).equals(wav)).toBe(true)
      })
    )
  })

  test("refuses a voice that could be an option or a path, and says which there are", () =>
    scoped(
      Effect.gen(function* () {
        const tools = yield* toolset(Speech.make, {})
        for (const voice of ["-w/tmp/x", "../../etc/passwd", "a b", "x".repeat(99), "\ud800"]) {
          expect((yield* call(tools, { text: "x", voice })).result.error).toContain("voice: expected a name such as")
        }
        expect((yield* call(tools, { text: "x", voice: "alloy" })).result.error).toContain('has no voice "alloy"')
      })
    ))
})

describe("A program in espeak's place", () => {
  const fake = (script: string) => {
    const place = folder()
    const path = join(place, "espeak")
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
    return { place, tools: toolset(Speech.make, { variables: { ESPEAK_PATH: path } }) }
  }

  test("sees nothing of the runner's environment, and gets the text by standard input alone", async () => {
    const { place, tools } = fake(
      'd=$(dirname "$0"); env > "$d/env"; echo "$@" > "$d/args"; cat > "$d/text"; printf "RIFF....WAVEdata...."'
    )
    process.env.SECRET_FOR_ESPEAK = "secret"
    await scoped(Effect.flatMap(tools, (made) => call(made, { text: "the words" })))
    delete process.env.SECRET_FOR_ESPEAK
    expect(readFileSync(join(place, "env"), "utf8")).not.toContain("SECRET_FOR_ESPEAK")
    expect(readFileSync(join(place, "args"), "utf8")).toBe("--stdin --stdout\n")
    expect(readFileSync(join(place, "text"), "utf8")).toBe("the words")
  })

  test("is ended with all that it started when its session ends, and when it floods", async () => {
    const { place, tools } = fake('d=$(dirname "$0"); sleep 41.421 & echo $! > "$d/pid"; wait')
    await scoped(Effect.flatMap(tools, (made) => Effect.timeoutOption(call(made, { text: "x" }), "500 millis")))
    const pid = readFileSync(join(place, "pid"), "utf8").trim()
    const cmdline = `/proc/${pid}/cmdline`
    await until(() => !existsSync(cmdline) || !readFileSync(cmdline, "utf8").includes("sleep"), 5000)
    const flood = fake("exec yes")
    const used = await scoped(Effect.flatMap(flood.tools, (made) => call(made, { text: "x" })))
    expect(used.result.error).toContain("more than 30 MB")
    expect(execFileSync("/bin/sh", ["-c", "ps -eo args | grep -c '^[y]es' || true"]).toString().trim()).toBe("0")
  })

  test("that fails, or ends before it has read, is a failure with its words", async () => {
    const used = await scoped(
      Effect.flatMap(fake("echo broken >&2; exit 3").tools, (made) => call(made, { text: "x".repeat(4000) }))
    )
    expect(used.result.error).toBe("espeak-ng failed with exit code 3: broken")
  })
})

test("What there is not is told as a clause", async () => {
  const lacks = (setting: Parameters<typeof toolset>[1]) =>
    Effect.runPromise(Effect.scoped(Effect.map(toolset(Speech.make, setting), (made) => made.lacks)))
  const none = { ESPEAK_PATH: "/nowhere/espeak" }
  expect(await lacks({ variables: none })).toBe("no --tts_model, and espeak-ng is not installed")
  expect(await lacks({ variables: none, ttsModel: "tts-1" })).toBe(
    "no endpoint for --tts_model, and espeak-ng is not installed"
  )
})

test("A file's extension is that of what it holds, and a WAV file from a pipe learns its length", () => {
  expect(["a.mp3", "a", "a.b/c", "x.OGG", "v1.2"].map((path) => Sound.named(path, "opus"))).toEqual([
    "a.opus",
    "a.opus",
    "a.b/c.opus",
    "x.OGG",
    "v1.2.opus"
  ])
  expect(Sound.detect(Buffer.from("<html>"))).toBe(undefined)
  expect(Buffer.from(Sound.finished(Buffer.from("RIFF....WAVE")))).toEqual(Buffer.from("RIFF....WAVE"))
  expect(Sound.extensionOf(".hidden")).toBe("")
})
