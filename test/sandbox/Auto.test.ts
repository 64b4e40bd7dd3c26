/** Prompts go where they can run, only what they need is made ready, and what is missing is named. */
import { Context, Effect, Layer, Logger, Ref } from "effect"
import { describe, expect, it } from "vitest"
import * as Auto from "../../src/sandbox/Auto.ts"
import { SandboxError, Sandboxes } from "../../src/sandbox/Sandbox.ts"
import * as Boxes from "../support/Boxes.ts"

const backends = ["local", "docker", "singularity"] as const
type Backend = (typeof backends)[number]

const unavailable = (detail: string) => new SandboxError({ reason: "Unavailable", detail })

interface About {
  readonly engine?: boolean
  readonly lacking?: ReadonlyArray<Backend>
  readonly images?: boolean
  readonly plain?: boolean
}

/** Backends that note when they are made and ended, and which prompts they get. */
const world = ({ engine = true, lacking = [], images = true, plain = true }: About = {}) => {
  const notes: Array<string> = []
  const logged: Array<string> = []
  const note = (text: string) => Effect.sync(() => notes.push(text))
  const source = (name: Backend) =>
    Layer.scoped(
      Sandboxes,
      Effect.gen(function* () {
        if (lacking.includes(name)) return yield* unavailable(`${name} is not there`)
        yield* Effect.acquireRelease(note(`${name} made`), () => note(`${name} ended`))
        const boxes = yield* Layer.build(Boxes.layer(yield* Ref.make(Boxes.nothing)))
        const { open } = Context.get(boxes, Sandboxes)
        return { open: (spec) => Effect.zipLeft(open(spec), note(`${name}: ${spec.image}`)) }
      })
    )
  const layer = Auto.layer({
    local: source("local"),
    docker: source("docker"),
    singularity: source("singularity"),
    engine: Effect.zipRight(note("engine asked"), engine ? Effect.void : unavailable("no engine answers")),
    images,
    plain
  }).pipe(
    Layer.provide(
      Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ logLevel, message }) => {
          logged.push(`${logLevel.label} ${String(message)}`)
        })
      )
    )
  )
  /** Opens a sandbox for each image, all at once; gives the errors. */
  const open = (...images: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const sandboxes = yield* Sandboxes
      const outcomes = yield* Effect.forEach(
        images,
        (image, at) => Effect.either(Effect.scoped(sandboxes.open({ id: `t${at}`, image, cwd: "" }))),
        { concurrency: "unbounded" }
      )
      return outcomes.flatMap((outcome) => (outcome._tag === "Left" ? [outcome.left] : []))
    }).pipe(Effect.provide(layer), Effect.runPromise)
  return { open, notes, logged, failure: () => Effect.runPromise(Effect.flip(Effect.scoped(Layer.build(layer)))) }
}

describe("Without a choice of the user", () => {
  it("prompts with an image run in Docker, and those without on this machine.", async () => {
    const { open, notes, logged } = world()
    expect(await open("", "python:3", "", "b")).toEqual([])
    expect(notes.slice(0, 3)).toEqual(["engine asked", "local made", "docker made"])
    expect(notes.slice(3, -2).toSorted()).toEqual(["docker: b", "docker: python:3", "local: ", "local: "])
    expect(logged).toEqual([])
  })

  it("no engine is asked for, and no container made ready, where no prompt names an image.", async () => {
    const { open, notes } = world({ images: false, engine: false, lacking: ["docker", "singularity"] })
    expect(await open("", "")).toEqual([])
    expect(notes).toEqual(["local made", "local: ", "local: ", "local ended"])
  })

  it("nothing is made ready on this machine where every prompt names an image.", async () => {
    const { open, notes } = world({ plain: false, lacking: ["local"] })
    expect(await open("a")).toEqual([])
    expect(notes).toEqual(["engine asked", "docker made", "docker: a", "docker ended"])
  })

  it("each backend is made once, at the start, for as long as the run.", async () => {
    const { open, notes } = world()
    await open(...Array.from({ length: 20 }, (_, at) => `${at}`), ...Array.from({ length: 20 }, () => ""))
    for (const name of ["docker", "local"]) {
      expect(notes.filter((text) => text === `${name} made`)).toHaveLength(1)
      expect(notes.filter((text) => text === `${name} ended`)).toHaveLength(1)
    }
    expect(notes.slice(0, 3)).toEqual(["engine asked", "local made", "docker made"])
    expect(notes.slice(-2).toSorted()).toEqual(["docker ended", "local ended"])
  })

  it("images run in Singularity where no engine answers, and one line says so.", async () => {
    const { open, notes, logged } = world({ engine: false })
    expect(await open("a", "")).toEqual([])
    expect(notes).toContain("singularity: a")
    expect(notes).not.toContain("docker made")
    expect(logged).toEqual(["INFO images run in Singularity: no engine answers"])
  })

  it("prompts with an image fail with what to install where there is neither, and the others run.", async () => {
    const { open, notes, logged } = world({ engine: false, lacking: ["docker", "singularity"] })
    const errors = await open("python:3", "", "./x.sif")
    expect(notes).toContain("local: ")
    expect(errors.map(({ reason, transient }) => [reason, transient])).toEqual([
      ["Unavailable", false],
      ["Unavailable", false]
    ])
    expect(errors[0]?.message).toMatch(
      /^The image python:3 needs a container engine, .*install and start Docker or Podman, or install Apptainer$/
    )
    expect(errors[1]?.message).toBe("singularity is not there")
    expect(logged).toHaveLength(1)
    expect(logged[0]).toMatch(/^WARN [^\n]*install and start Docker or Podman, or install Apptainer[^\n]*$/)
  })

  it("files and folders as images go to Singularity, also where an engine answers.", async () => {
    const paths = ["./x.sif", "../x", "/images/x", "~/x", "x.sif", "sub/x.sif"]
    const { open, notes } = world()
    expect(await open(...paths, "docker://a/b", "a/b", "localhost:5000/x:1", "a.sif/b")).toEqual([])
    expect(notes.filter((text) => text.startsWith("singularity: "))).toEqual(
      paths.map((path) => `singularity: ${path}`)
    )
    expect(notes.filter((text) => text.startsWith("docker: "))).toHaveLength(4)
  })

  it("an engine or a place on this machine that cannot do what is asked stops the run before its first prompt.", async () => {
    for (const name of ["local", "docker"] as const) {
      expect((await world({ lacking: [name] }).failure()).message).toBe(`${name} is not there`)
    }
  })
})
