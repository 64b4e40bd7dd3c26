/** Questions about images, wherever these lie, go to a model that sees, with the image as it can take it. */
import * as Http from "node:http"
import { Effect } from "effect"
import sharp from "sharp"
import { describe, expect, it, onTestFinished } from "vitest"
import { Sandbox } from "../../src/sandbox/Sandbox.ts"
import * as Catalogue from "../../src/tools/Catalogue.ts"
import * as Setting from "../../src/tools/Setting.ts"
import * as Vision from "../../src/tools/Vision.ts"
import { eyes } from "../../src/tools/vision/Eyes.ts"
import * as Server from "../support/ModelServer.ts"
import { consult, type Options, served } from "./consulting.ts"
import { put } from "./support.ts"

const red = await sharp({ create: { width: 30, height: 20, channels: 3, background: "red" } })
  .png()
  .toBuffer()
const dataUrl = `data:image/png;base64,${red.toString("base64")}`
const seeing: Options = { setting: { visionModel: "eye", allowPrivateNetwork: true } }
const describes = (handler: Server.Handler = () => Server.answer({ content: "A red field." })) => served(handler)

/** Looks at an image; files are put into the sandbox before. */
const look = async (
  server: Server.ModelServer,
  image_url: string,
  files: Readonly<Record<string, string | Uint8Array>> = {},
  options: Options = seeing
) =>
  (
    await consult(
      Vision.make,
      server,
      (use) =>
        Effect.zipRight(
          Effect.forEach(Object.entries(files), ([path, content]) => put(path, content)),
          use("vision_analyze", { image_url, question: "What colour?" })
        ),
      options
    )
  ).result

/** The picture that a model was shown. */
const shown = async (server: Server.ModelServer) => {
  const content = server.requests.at(-1)?.body.messages[1]?.content
  const url = JSON.stringify(content).match(/"url":"data:(image\/\w+);base64,([^"]+)"/)
  const about = await sharp(Buffer.from(url?.[2] ?? "", "base64")).metadata()
  return {
    mime: url?.[1],
    width: about.width,
    height: about.height,
    text: JSON.stringify(content).includes("What colour?")
  }
}

/** A server of files. */
const web = async (handler: Http.RequestListener) => {
  const server = Http.createServer(handler)
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", () => done()))
  onTestFinished(() => new Promise((done) => server.close(() => done())))
  const address = server.address()
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
}

describe("An image", () => {
  it("is looked at in a file of the sandbox, as a data URL and behind an address.", async () => {
    const server = await describes()
    const url = await web((_, response) => response.writeHead(200, { "content-type": "text/plain" }).end(red))
    for (const place of ["a b.png", "./a b.png", "file:a%20b.png", dataUrl, `${url}/red`, ` ${dataUrl}\n`]) {
      const { ok, result } = await look(server, place, { "a b.png": red })
      expect([place, ok, result]).toEqual([place, true, { success: true, analysis: "A red field." }])
      expect(await shown(server)).toEqual({ mime: "image/png", width: 30, height: 20, text: true })
      expect(server.requests.at(-1)?.body.model).toBe("eye")
    }
    const absolute = await consult(
      Vision.make,
      server,
      (use) =>
        Effect.gen(function* () {
          yield* put("red.png", red)
          const { cwd } = yield* Sandbox
          const ends = [`${cwd}/red.png`, `file://${cwd}/red.png`, `file://localhost${cwd}/red.png`]
          return yield* Effect.forEach(ends, (image_url) => use("vision_analyze", { image_url, question: "?" }))
        }),
      seeing
    )
    expect(absolute.result.map(({ ok }) => ok)).toEqual([true, true, true])
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="5"/>'
    expect((await look(server, `data:image/svg+xml,${encodeURIComponent(svg)}`)).ok).toBe(true)
    expect((await shown(server)).width).toBe(10)
  })

  it("that cannot be had, or is none, is told with what to do, and nothing is asked.", async () => {
    const server = await describes()
    const url = await web((request, response) =>
      request.url === "/none" ? response.writeHead(404).end() : response.end(Buffer.alloc(21 * 1024 * 1024))
    )
    const files = {
      "text.png": "hello",
      "page.html": "<!doctype html><p>",
      "torn.png": red.subarray(0, 40),
      "large.png": Buffer.alloc(21 * 1024 * 1024)
    }
    for (const [place, error] of [
      ["nowhere.png", /nowhere\.png/],
      ["text.png", /PNG, JPEG, GIF, WebP/],
      ["page.html", /HTML page/],
      ["torn.png", /damaged/],
      ["large.png", /larger than 20 MB/],
      [`${url}/none`, /404/],
      [`${url}/large`, /larger than 20 MB/],
      ["ftp://example.com/a.png", /ftp addresses/],
      ["data:image/png;base64,", /malformed/],
      ["data:image/png", /malformed/],
      ["data:image/png,%zz", /malformed/],
      ["", /empty string/],
      ["a\0.png", /NUL/]
    ] as const) {
      const { ok, result } = await look(server, place, files)
      expect([place, ok]).toEqual([place, false])
      expect(result.error).toMatch(error)
      expect(Object.keys(result)).toEqual(["error"])
    }
    const guarded = await look(server, `${url}/red`, {}, { setting: { visionModel: "eye" } })
    expect(guarded.result.error).toMatch(/private or local/)
    expect(server.requests.length).toBe(0)
  })

  it("whose model fails or says nothing is a failure of the tool.", async () => {
    const gone = await describes(() => Server.error(404, "no such model"))
    expect((await look(gone, dataUrl)).result).toEqual({
      error: expect.stringMatching(/^eye gave no answer: HTTP 404/)
    })
    const mute = await describes(() => Server.answer({ content: "" }))
    expect((await look(mute, dataUrl)).result.error).toMatch(/said nothing/)
  })
})

describe("The model that sees", () => {
  const listing = (model: object) => (request: Server.Recorded) =>
    request.method === "GET"
      ? { body: { data: [{ id: "x" }, { id: "test-model", ...model }] } }
      : Server.answer({ content: "A red field." })

  it.each([
    { architecture: { input_modalities: ["text", "image"] } },
    { capabilities: { vision: true } },
    { capabilities: ["completion", "multimodal"] },
    { type: "vlm" }
  ])("is the run's own where the endpoint lists it so: %j", async (model) => {
    const server = await describes(listing(model))
    expect((await look(server, dataUrl, {}, {})).result).toEqual({ success: true, analysis: "A red field." })
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /v1/models",
      "POST /v1/chat/completions"
    ])
    expect(server.requests[1]?.body.model).toBe("test-model")
  })

  const lacks = (setting: Partial<Setting.Setting>) =>
    Effect.runPromise(Effect.scoped(Effect.map(Vision.make(Setting.make(setting)), (tools) => tools[0])))
  const endpoint = (url: string) => ({ baseUrl: url, apiKey: undefined, model: "test-model", offline: false })

  it("is lacking where nothing says that the run's own takes images, within seconds.", async () => {
    const why = "no --vision_model, and test-model is not known to take images"
    const blind = await describes(listing({ architecture: { input_modalities: ["text"] } }))
    const broken = await describes(() => ({ body: "<html>" }))
    const hangs = await describes(() => ({ hang: true }))
    const before = performance.now()
    for (const server of [blind, broken, hangs]) {
      expect(await lacks({ endpoint: endpoint(server.url) })).toEqual({ name: "vision_analyze", lacks: why })
    }
    expect(performance.now() - before).toBeLessThan(8000)
    expect(await lacks({ endpoint: null })).toEqual({ name: "vision_analyze", lacks: "no --vision_model" })
  })
  it("is asked for once, whoever wants to know, and not at all where it is named, offline or not wanted.", async () => {
    const server = await describes(listing({ type: "vlm" }))
    const setting = Setting.make({ endpoint: endpoint(server.url) })
    const both = await Effect.runPromise(Effect.scoped(Effect.all([eyes(setting), eyes(setting)], { concurrency: 2 })))
    expect([both.map(({ _tag }) => _tag), server.requests.length]).toEqual([["Right", "Right"], 1])
    await lacks({ endpoint: endpoint(server.url), visionModel: "eye" })
    await lacks({ endpoint: { ...endpoint(server.url), offline: true } })
    const unwanted = Setting.make({ endpoint: endpoint(server.url), wanted: (name) => name === "file" })
    await Effect.runPromise(Effect.scoped(Catalogue.catalogue(unwanted)))
    expect(server.requests.length).toBe(1)
  })
})
