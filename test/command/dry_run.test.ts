/** A dry run: what it tells of the run that would come, and that it pays and writes nothing. */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { type Ended, type Environment, type Options, until, Workplace } from "../support/Command.ts"
import * as ModelServer from "../support/ModelServer.ts"
import * as PaperEngine from "../support/PaperEngine.ts"
import { final, promptOf, runs, serve, turnOf } from "../support/Talk.ts"

/** A server with a list of these models; sessions are answered at once. */
const listing = (ids: ReadonlyArray<string>, session: ModelServer.Handler = () => final()) =>
  serve((request, place) =>
    request.method === "GET" ? { body: { object: "list", data: ids.map((id) => ({ id })) } } : session(request, place)
  )

/** Every file and folder with its bytes and the time of its last change; that of temporary files only by name. */
const tree = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return entry.isFile() ? `${path} ${statSync(path).mtimeMs} ${readFileSync(path, "base64")}` : path
    })
    .toSorted()

/** A dry run that leaves everything as it was, byte for byte. */
const dry = async (
  place: Workplace,
  server: Pick<ModelServer.ModelServer, "url">,
  options: Options = {},
  environment: Environment = {}
): Promise<Ended> => {
  const before = tree(place.root)
  const ended = await place.run(server, { dry_run: true, ...options }, environment)
  expect(tree(place.root)).toEqual(before)
  return ended
}

const ready = "Nothing was run, nothing was written. All is ready.\n"

const expectReady = (ended: Ended): void => {
  expect(ended.stderr).not.toMatch(/batch-runner:/)
  expect(ended.stdout.endsWith(`\n${ready}`), ended.stdout).toBe(true)
  expect(ended.code).toBe(0)
}

/** Expects exactly these problems, each in one line of standard error. */
const expectProblems = (ended: Ended, ...says: ReadonlyArray<RegExp>): void => {
  const lines = ended.stderr.split("\n").filter((line) => line.startsWith("batch-runner: "))
  expect(lines.length, ended.stderr).toBe(says.length)
  says.forEach((each, at) => {
    expect(lines[at]).toMatch(each)
  })
  const count = `${says.length} problem${says.length === 1 ? "" : "s"}`
  expect(ended.stdout.endsWith(`\nNothing was run, nothing was written. ${count}.\n`), ended.stdout).toBe(true)
  expect(ended.code).toBe(2)
}

describe("A dry run", () => {
  it("checks all, asks for nothing but the list of models, and makes no folder", async () => {
    const place = new Workplace()
    place.write("prompts.jsonl", '{"prompt": "a"}\nnot JSON\n\n{"prompt": "b"}\n{"no": 1}\n')
    const server = await listing(["test-model", "other"])
    const ended = await dry(place, server, {
      samples_per_prompt: 3,
      batch_size: 1,
      max_turns: 7,
      events: "e.jsonl",
      cache: true
    })
    expectReady(ended)
    expect(ended.stderr).toMatch(/prompts\.jsonl:2: skipped, not JSON\n.*prompts\.jsonl:5: skipped, no "prompt"\n/)
    expect(ended.stdout).toMatch(/prompts +2 valid, 2 bad lines skipped × 3 samples: 6 sessions\n/)
    expect(ended.stdout).toMatch(/sessions +0 done before, 6 to do\n/)
    expect(ended.stdout).toMatch(/batches +2 of up to 1 prompt: batch_0\.jsonl to batch_1\.jsonl\n/)
    expect(ended.stdout).toMatch(
      /toolsets +terminal_only, of 6 sessions to do: terminal 6 \(100 %\), file 6 \(100 %\)\n/
    )
    expect(ended.stdout).toMatch(/sandboxes +local: /)
    expect(ended.stdout).toMatch(
      /model +test-model at http:\/\/127\.0\.0\.1:\d+\/v1: the endpoint lists it among 2 models\n/
    )
    expect(ended.stdout).toMatch(/calls +6 to 42, with at most 7 turns a session\n/)
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /v1/models"])
    expect(existsSync(place.path("data"))).toBe(false)
  })

  it("draws the toolsets that the run then gives its sessions, and numbers the batches as it does", async () => {
    const place = new Workplace()
    place.dataset(Array.from({ length: 40 }, (_, at) => `prompt ${at}`))
    const server = await listing(["test-model"])
    const options = { distribution: "development", seed: 12, num_workers: 20 }
    const told = await dry(place, server, options)
    expectReady(told)
    expect(told.stdout).toMatch(
      /cannot work here: .*vision \(no --vision_model, and test-model is not known to take images\)/
    )
    await place.complete(server, options)
    const counts = ["terminal", "file"].map(
      (name) => place.rows().filter(({ toolsets_used }) => toolsets_used.includes(name)).length
    )
    expect(counts[0]).not.toBe(counts[1])
    for (const [at, name] of ["terminal", "file"].entries()) {
      expect(told.stdout).toContain(`${name} ${counts[at]} (${(counts[at] ?? 0) * 2.5} %)`)
    }
    expect(told.stdout).toMatch(/batches +4 of up to 10 prompts: batch_0\.jsonl to batch_3\.jsonl\n/)
    expect(place.batchNames()).toEqual(["batch_0.jsonl", "batch_1.jsonl", "batch_2.jsonl", "batch_3.jsonl"])
  })

  it("plans a resume, expects what finished rows tell, and leaves torn lines as they are", async () => {
    const place = new Workplace()
    place.dataset(["a", "b", "c", "d", "e"])
    const server = await listing(["test-model"], (request) => {
      if (promptOf(request) === "b") return ModelServer.error(400, "not this one")
      return turnOf(request) < 2 ? runs("echo") : final()
    })
    const first = await place.run(server, { max_samples: 3, batch_size: 2, num_workers: 1 })
    expect(first.code).toBe(1)
    const last = place.batchNames().at(-1) ?? ""
    appendFileSync(place.path("data", "run", last), '{"conversations": [{"from": "hum')
    appendFileSync(place.path("data", "run", "failures.jsonl"), '{"prompt_index": 1')
    // Two finished sessions of three calls with fifteen tokens each.
    writeFileSync(place.path("prices.json"), '{"test-model": {"prompt": 1000, "completion": 2000}}')
    const options = { resume: true, batch_size: 2, max_cost: 9, prices: "prices.json", seed: 4 }
    const told = await dry(place, server, options)
    expectReady(told)
    expect(told.stdout).toMatch(
      /sessions +2 done before, 3 to do\n +settings differ from the last session: seed: 0 → 4\n/
    )
    expect(told.stdout).toMatch(/batches +2 of up to 2 prompts: batch_2\.jsonl to batch_3\.jsonl\n/)
    expect(told.stdout).toMatch(
      /calls +3 to 30, .*\n +about 9, by 2 finished sessions of 3 calls and 45 tokens, \$0\.06 on average\n/
    )
    expect(told.stdout).toMatch(/cost +about 135 tokens, \$0\.18 at \$1000\.00 and \$2000\.00 per million tokens\n/)
    expect(told.stdout).toMatch(/limits +--max_cost \$9\.00, \$0\.12 of it spent\n/)
    expectProblems(
      await dry(place, server, { ...options, max_cost: 0.1 }),
      /--max_cost: earlier sessions have spent \$0\.1200 of 0\.1, and the next call could pass it; give more/
    )
    expect(server.requests.filter(({ method }) => method === "GET").length).toBe(2)
    await place.run(server, { resume: true, batch_size: 2, num_workers: 1 })
    expect(place.batchNames().slice(-2)).toEqual(["batch_2.jsonl", "batch_3.jsonl"])
  })

  it("leaves out what failed in a way that no attempt betters, unless its kind is chosen", async () => {
    const place = new Workplace()
    place.dataset(["a", "b", "c"])
    const server = await listing(["test-model"], (request) =>
      promptOf(request) === "a" ? final() : ModelServer.error(400, "not this one")
    )
    await place.run(server)
    const failures = place.path("data", "run", "failures.jsonl")
    const lines = place.failures().map((failure) => ({ ...failure, kind: "context_too_long" }))
    const other = lines.filter(({ prompt_index }) => prompt_index === 2).map((line) => ({ ...line, kind: "timed_out" }))
    writeFileSync(failures, [...lines, ...other].map((line) => `${JSON.stringify(line)}\n`).join(""))
    const told = await dry(place, server, { resume: true })
    expectReady(told)
    expect(told.stdout).toMatch(/sessions +1 done before, 1 left out for a failure that cannot go better, 1 to do\n/)
    const chosen = await dry(place, server, { resume: true, retry_failed: "all" })
    expect(chosen.stdout).toMatch(/sessions +1 done before, 2 to do\n/)
  })

  it("says that another process works on the run, and does not disturb it", async () => {
    const place = new Workplace()
    place.dataset(["a", "b"])
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const server = await listing(["test-model"], async (request) => {
      if (promptOf(request) === "b") await gate
      return final()
    })
    const running = place.begin(server)
    await until(() => place.saved().length === 1)
    const told = await place.run(server, { dry_run: true, resume: true })
    expectReady(told)
    expect(told.stdout).toMatch(
      new RegExp(`1 done before, 1 to do\n +being worked on by another batch-runner \\(process ${running.pid} on `)
    )
    open()
    expect((await running.ended).code).toBe(0)
    expect(place.rows().length).toBe(2)
    const after = await dry(place, server, { resume: true })
    expectReady(after)
    expect(after.stdout).not.toMatch(/being worked on/)
    expect(after.stdout).toMatch(/calls +none\n/)
  })

  it("refuses what a run refuses, in the same words", async () => {
    const place = new Workplace()
    place.dataset(["a"])
    const server = await listing(["test-model"])
    await place.complete(server)
    mkdirSync(place.path("other"))
    place.write("file", "")
    const cases: ReadonlyArray<readonly [Options, RegExp]> = [
      [{}, /--run_name: .* holds results already \(.*--resume/],
      [{ resume: true, dataset_file: "data/run/batch_0.jsonl" }, /--dataset_file: .* is one of the files that the run/],
      [{ run_name: "new", dataset_file: "nonsuch.jsonl" }, /--dataset_file: there is no file nonsuch\.jsonl/],
      [{ run_name: "new", dataset_file: "file" }, /--dataset_file: file is empty/],
      [{ run_name: "new", distribution: "nonsuch" }, /--distribution: there is no distribution "nonsuch"/],
      [
        { run_name: "new", distribution: "minimal", extract_backend: "firecrawl" },
        /--distribution: no toolset of minimal can work here: web/
      ],
      [
        { run_name: "new", distribution: "default", strict_toolsets: true },
        /--strict_toolsets: default has tools that/
      ],
      [{ run_name: "new", output_dir: "file" }, /--output_dir: the folder .* a file is in its way/],
      [{ run_name: "new", sandbox: "docker" }, /--sandbox=docker: prompts\.jsonl:1 names no image; give one/],
      [{ run_name: "new", batch_size: 0 }, /--batch_size: given "0", allowed: a whole number/],
      [{ run_name: "new", model: "scripted:nonsuch.json" }, /--model=scripted: the script nonsuch\.json does not exist/]
    ]
    for (const [options, says] of cases) {
      const told = await dry(place, server, options)
      expect(told.code, told.stderr).toBe(2)
      const real = await place.run(server, options)
      expect(real.code, real.stderr).toBe(2)
      const problem = /^batch-runner: .*$/m.exec(told.stderr)?.[0] ?? ""
      expect(problem).toMatch(says)
      expect(real.stderr).toContain(problem)
    }
    expect(server.requests.filter(({ method }) => method === "POST").length).toBe(1)
  })

  it("tells all problems at once", async () => {
    const place = new Workplace()
    place.dataset(["a"])
    const server = await listing(["other"])
    const told = await dry(place, server, {
      distribution: "minimal",
      extract_backend: "firecrawl",
      dataset_file: "nonsuch.jsonl"
    })
    expectProblems(told, /no toolset of minimal/, /there is no file nonsuch/, /does not list test-model/)
  })

  it("asks no endpoint for the offline model, and reads its script", async () => {
    const place = new Workplace()
    place.dataset(["a"])
    place.write("prompts.script.json", '{"default": [{"content": "x"}]}')
    const told = await dry(place, { url: "http://127.0.0.1:9/v1" }, { model: "scripted" })
    expectReady(told)
    expect(told.stdout).toMatch(/model +offline model: answers from prompts\.script\.json\n/)
    place.write("prompts.script.json", '{"default": 1}')
    expectProblems(
      await dry(place, { url: "http://127.0.0.1:9/v1" }, { model: "scripted" }),
      /--model=scripted: the script prompts\.script\.json does not fit at default/
    )
  })
})

describe("The endpoint of a dry run", () => {
  const key = "sk-secret-0123456789abcdef"

  /** What is told of an endpoint that answers so. */
  const told = async (answer: ModelServer.Handler, options: Options = {}) => {
    const place = new Workplace()
    place.dataset(["a"])
    const server = await serve(answer)
    const ended = await dry(place, server, { api_key: key, ...options })
    expect(ended.stdout + ended.stderr).not.toContain(key.slice(3))
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /v1/models"])
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${key}`)
    return ended
  }
  const list = (...ids: ReadonlyArray<string>): ModelServer.Reaction => ({ body: { data: ids.map((id) => ({ id })) } })
  const note = /the endpoint has no list of models: key and model not checked/

  it("refuses the key", async () => {
    for (const status of [401, 403]) {
      const ended = await told(() => ModelServer.error(status, `bad key ${key}`))
      expectProblems(
        ended,
        new RegExp(`--model: the key is refused: HTTP ${status} from 127\\.0\\.0\\.1:\\d+: bad key \\*\\*\\*$`)
      )
    }
  })

  it("lacks the model, and names those that are near", async () => {
    const ended = await told(() => list("openai/test-model-2", "x"), {})
    expectProblems(ended, /--model: 127\.0\.0\.1:\d+ does not list test-model; there is openai\/test-model-2$/)
    expectProblems(await told(() => list("Test-Model")), /does not list test-model/)
    expectProblems(await told(() => list("llama3:8b"), { model: "llama3:70b" }), /does not list llama3:70b/)
  })

  it("has the model under its own id, whatever way of use stands behind that", async () => {
    for (const model of ["test-model:free", "test-model:nitro", "test-model:free:online"]) {
      expectReady(await told(() => list("test-model"), { model }))
    }
    expectReady(await told(() => ({ body: [{ id: "test-model" }] })))
  })

  it("that has no list is a note", async () => {
    const answers: ReadonlyArray<ModelServer.Reaction> = [
      ModelServer.error(404, "no route"),
      ModelServer.error(405, "not so"),
      { body: "<html>" },
      list(),
      { body: { data: "none" } },
      { body: JSON.stringify({ data: [], fill: "x".repeat(17 * 2 ** 20) }) }
    ]
    for (const answer of answers) {
      const ended = await told(() => answer)
      expectReady(ended)
      expect(ended.stdout).toMatch(note)
    }
    const busy = await told(() => ModelServer.error(429, "slow down"))
    expectReady(busy)
    expect(busy.stdout).toMatch(/the endpoint is busy: key and model not checked \(HTTP 429/)
  })

  it("that does not answer, is broken or has moved is a problem in one line", async () => {
    expectProblems(
      await told(() => ({ reset: true })),
      /--model: No answer from 127\.0\.0\.1:\d+: the connection was reset$/
    )
    expectProblems(await told(() => ModelServer.error(500, "broken")), /--model: HTTP 500 from .*: broken$/)
    const moved: ModelServer.Reaction = { status: 302, headers: { location: "http://127.0.0.1:9/v1" }, body: "" }
    expectProblems(await told(() => moved), /--model: HTTP 302 .* has moved to http:\/\/127\.0\.0\.1:9\/v1/)
    const place = new Workplace()
    place.dataset(["a"])
    expectProblems(
      await dry(place, { url: "http://127.0.0.1:9/v1" }),
      /--model: No answer from 127\.0\.0\.1:9: connection refused$/
    )
  })

  it("is given twenty seconds", async () => {
    const ended = await told(() => ({ hang: true }))
    expectProblems(ended, /--model: No answer from 127\.0\.0\.1:\d+ within 20s$/)
    expect(ended.took).toBeGreaterThan(19_000)
    expect(ended.took).toBeLessThan(30_000)
  })

  it("is not waited for by who ends it with a signal", async () => {
    const place = new Workplace()
    place.dataset(["a"])
    const server = await serve(() => ({ hang: true }))
    const running = place.begin(server, { dry_run: true })
    await until(() => server.requests.length === 1)
    running.kill("SIGINT")
    const ended = await running.ended
    expect([ended.code, ended.stdout]).toEqual([130, ""])
    expect(ended.took).toBeLessThan(15_000)
  })

  it("is asked for the key too where its list needs none", async () => {
    /** A proxy that leads everything to `to`. */
    const proxied = async (to: ModelServer.ModelServer): Promise<Environment> => {
      const proxy = createServer((near) => {
        near.on("error", () => {})
        near.once("data", () => {
          const far = connect(Number(new URL(to.url).port), "127.0.0.1")
          far.on("error", () => {})
          near.write("HTTP/1.1 200 OK\r\n\r\n")
          near.pipe(far).pipe(near)
        })
      })
      await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
      onTestFinished(() => void proxy.close())
      const address = proxy.address()
      return { HTTP_PROXY: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}` }
    }
    const cases: ReadonlyArray<readonly [ModelServer.Reaction, (ended: Ended) => void]> = [
      [
        { body: { data: { limit_remaining: 12.5 } } },
        (ended) => {
          expectReady(ended)
          expect(ended.stdout).toMatch(/lists it among 1 model\n +the key may still spend \$12\.50\n/)
        }
      ],
      [{ body: { data: { limit_remaining: null } } }, expectReady],
      [{ body: { data: { limit_remaining: 0 } } }, (ended) => expectProblems(ended, /the key has no credit left/)],
      [
        ModelServer.error(401, "who?"),
        (ended) => expectProblems(ended, /the key is refused: HTTP 401 from openrouter\.ai: who\?/)
      ]
    ]
    for (const [answer, expected] of cases) {
      const place = new Workplace()
      place.dataset(["a"])
      const server = await serve(({ path }) => (path.endsWith("/key") ? answer : list("test-model")))
      const options = { base_url: "http://openrouter.ai/api/v1", api_key: key }
      expected(await dry(place, server, options, await proxied(server)))
      expect(server.requests.map(({ path }) => path).toSorted()).toEqual(["/api/v1/key", "/api/v1/models"])
    }
  })
})

describe("The images of a dry run", () => {
  const rows = [
    { prompt: "a", image: "here:1" },
    { prompt: "b", image: "registry.test/there:1" },
    { prompt: "c", image: "gone:1" },
    { prompt: "d", image: "gone:1" },
    { prompt: "e", docker_image: "mute.test/x" },
    { prompt: "f" }
  ]
  const says = (image: string): PaperEngine.Says => {
    switch (image) {
      case "here:1":
        return "present"
      case "gone:1":
        return [404, "manifest unknown: manifest unknown"]
      case "mute.test/x:latest":
        return [500, "Get https://mute.test/v2/: dial tcp: connection refused"]
      default:
        return "offered"
    }
  }

  it("are looked for in the engine, else asked of their registries, and never pulled", async () => {
    const place = new Workplace()
    place.dataset(rows)
    const engine = await PaperEngine.start(says)
    mkdirSync(place.path("home", ".docker"))
    const auth = Buffer.from("tester:secret").toString("base64")
    writeFileSync(
      place.path("home", ".docker", "config.json"),
      JSON.stringify({ auths: { "registry.test": { auth } } })
    )
    const server = await listing(["test-model"])
    const ended = await dry(place, server, {}, engine.environment)
    expectProblems(ended, /: There is no image gone:1: .*\(2 prompts will fail\)$/)
    expect(ended.stdout).toMatch(
      /sandboxes +local: .*\n +docker: the container engine at tcp:\/\/127\.0\.0\.1:\d+ answers\n/
    )
    expect(ended.stdout).toMatch(/images +gone:1: 2 prompts, cannot be had\n/)
    expect(ended.stdout).toMatch(/ here:1: 1 prompt, there\n/)
    expect(ended.stdout).toMatch(/ registry\.test\/there:1: 1 prompt, to be pulled, its registry has it\n/)
    expect(ended.stdout).toMatch(/ mute\.test\/x: 1 prompt, not checked: its registry does not answer \(/)
    expect(engine.asked.every(({ method }) => method === "GET")).toBe(true)
    const login = engine.asked.find(({ path }) => path === "/distribution/registry.test/there:1/json")
    const header = Buffer.from(String(login?.headers["x-registry-auth"]), "base64").toString()
    expect(JSON.parse(header)).toMatchObject({ username: "tester", password: "secret" })
  })

  it("of prompts that are done are not asked for, and --image stands for the rest", async () => {
    const place = new Workplace()
    place.dataset(["a"])
    const server = await listing(["test-model"])
    await place.complete(server)
    place.dataset(["a", "b", "c"])
    const engine = await PaperEngine.start(says)
    const options = { resume: true, sandbox: "docker", image: "here:1" }
    const ended = await dry(place, server, options, engine.environment)
    expectReady(ended)
    expect(ended.stdout).toMatch(/images +here:1: 2 prompts, there\n/)
  })

  it("are asked for eight at a time, the thousand most wanted", async () => {
    const place = new Workplace()
    const many = Array.from({ length: 1005 }, (_, at) => ({ prompt: `p${at}`, image: `many${at}:1` }))
    place.dataset([...many, { prompt: "again", image: "many1004:1" }])
    const engine = await PaperEngine.start((image) => (image === "many1004:1" ? [404, "not found"] : "offered"), {
      delay: 5
    })
    const ended = await dry(place, await listing(["test-model"]), {}, engine.environment)
    expectProblems(ended, /no image many1004:1: .*\(2 prompts will fail\)$/)
    expect(ended.stdout).toMatch(
      / and 980 more images of 980 prompts\n +only the 1000 most wanted were asked for; 5 prompts name others\n/
    )
    expect(engine.asked.filter(({ path }) => path.startsWith("/distribution/")).length).toBe(1000)
    expect(engine.most()).toBe(8)
  })

  it("of a registry that says nothing are not waited for one by one", async () => {
    const place = new Workplace()
    place.dataset(Array.from({ length: 20 }, (_, at) => ({ prompt: `p${at}`, image: `mute.test/i${at}:1` })))
    const engine = await PaperEngine.start(() => [500, "toomanyrequests: rate limit"])
    const ended = await dry(place, await listing(["test-model"]), {}, engine.environment)
    expectReady(ended)
    expect(engine.asked.filter(({ path }) => path.startsWith("/distribution/")).length).toBeLessThanOrEqual(8)
  })

  it("are not asked of Podman, which cannot ask a registry", async () => {
    const place = new Workplace()
    place.dataset([{ prompt: "a", image: "docker.io/library/x:1" }])
    const engine = await PaperEngine.start(() => "offered", { podman: true })
    const ended = await dry(place, await listing(["test-model"]), {}, engine.environment)
    expectReady(ended)
    expect(ended.stdout).toMatch(/x:1: 1 prompt, not there, and this engine cannot ask its registry\n/)
  })

  it("cannot be had where there is no backend for them", async () => {
    const place = new Workplace()
    place.dataset(rows)
    const environment = { DOCKER_HOST: "unix:///nowhere.sock", BATCH_RUNNER_APPTAINER: "/nowhere/apptainer" }
    const server = await listing(["test-model"])
    const ended = await dry(place, server, {}, environment)
    expectProblems(ended, /: 5 prompts with an image will fail: there is no container engine: install /)
    const named = await dry(place, server, { sandbox: "docker", image: "x" }, environment)
    expectProblems(named, /No container engine answers at unix:\/\/\/nowhere\.sock/)
  })

  it("of Singularity are files and folders that are there, or converted at first use", async () => {
    const place = new Workplace()
    place.write("apptainer", "#!/bin/sh\necho apptainer version 1.3.0\n")
    await place.shell("chmod +x apptainer").ended
    place.write("some.sif", "")
    place.dataset([
      { prompt: "a", image: "./some.sif" },
      { prompt: "b", image: "./none.sif" },
      { prompt: "c", image: "docker://python:3" }
    ])
    const environment = { BATCH_RUNNER_APPTAINER: place.path("apptainer") }
    const ended = await dry(place, await listing(["test-model"]), { sandbox: "singularity" }, environment)
    expectProblems(ended, /The image \.\/none\.sif cannot be had: there is no .*\(1 prompt will fail\)$/)
    expect(ended.stdout).toMatch(/sandboxes +singularity: .*apptainer runs\n/)
    expect(ended.stdout).toMatch(/images +\.\/some\.sif: 1 prompt, there\n/)
    expect(ended.stdout).toMatch(/ docker:\/\/python:3: 1 prompt, converted at first use, not checked\n/)
  })

  it("are asked of nobody at Modal, where a token is needed", async () => {
    const place = new Workplace()
    place.dataset(["a"])
    const ended = await dry(place, await listing(["test-model"]), { sandbox: "modal", image: "python:3" })
    expectProblems(ended, /Modal needs a token, and there is none/)
  })
})
