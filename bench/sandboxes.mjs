/** What a sandbox costs, backend by backend, beside what the engine itself takes for the same in the same run. */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Dockerode from "dockerode"
import { Context, Effect, Exit, Layer, Logger, Scope } from "effect"
import { Docker, Local, Sandbox, Singularity } from "../dist/index.js"

const rounds = Number(process.env.BENCH_SANDBOXES ?? 15)
const calls = 4
const registry = process.env.TEST_REGISTRY
const image = process.env.BENCH_IMAGE ?? (registry === undefined ? "busybox:1" : `${registry}/batch-runner/busybox:1`)

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
const now = () => performance.now()

/** Milliseconds of `parts` (ready, call, release), each measured in turn: ours and the engine's, one after the other. */
const compare = async (name, layer, spec, bare) => {
  const times = { ours: { ready: [], call: [], release: [] }, bare: { ready: [], call: [], release: [] } }
  const timed = async (into, part, run) => {
    const begun = now()
    const result = await run()
    times[into][part].push(now() - begun)
    return result
  }
  const quiet = Logger.replace(Logger.defaultLogger, Logger.none)
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const { open } = Context.get(yield* Layer.build(layer), Sandbox.Sandboxes)
        const run = (effect) => Effect.runPromise(Effect.provide(effect, quiet))
        for (let round = -1; round < rounds; round++) {
          // The first round warms both up.
          if (round === 0)
            for (const one of Object.values(times)) for (const part of Object.values(one)) part.length = 0
          yield* Effect.promise(async () => {
            const place = await timed("bare", "ready", () => bare.ready(round))
            for (let at = 0; at < calls; at++) await timed("bare", "call", () => bare.call(place))
            await timed("bare", "release", () => bare.release(place))
            const scope = Effect.runSync(Scope.make())
            const box = await timed("ours", "ready", async () => {
              const opened = await run(Scope.extend(open({ id: `bench-${round + 1}`, cwd: "", ...spec }), scope))
              if (spec.image === "") await run(opened.exec("true", { timeout: 30 }))
              return opened
            })
            for (let at = 0; at < calls; at++) {
              await timed("ours", "call", () => run(box.exec("echo hello", { timeout: 30 })))
            }
            await timed("ours", "release", () => run(Scope.close(scope, Exit.void)))
          })
        }
      }).pipe(Effect.provide(quiet))
    )
  )
  for (const [part, what] of [
    ["ready", bare.names[0]],
    ["call", bare.names[1]],
    ["release", bare.names[2]]
  ]) {
    const [ours, theirs] = [median(times.ours[part]), median(times.bare[part])]
    const head = `${name}, ${part}, milliseconds (${what})`
    console.log(`${head.padEnd(52)} ${ours.toFixed(0)} (${theirs.toFixed(0)}), ratio ${(ours / theirs).toFixed(2)}`)
  }
}

const options = { run: "bench", network: true, cpus: undefined, memory: undefined, lifetime: 600 }

const docker = async () => {
  const engine = new Dockerode()
  await compare(
    "docker",
    Docker.layer(options),
    { image },
    {
      names: ["create and start", "exec", "forced remove"],
      ready: async () => {
        const container = await engine.createContainer({ Image: image, Entrypoint: ["/bin/sh", "-c", "sleep 600"] })
        await container.start()
        return container
      },
      call: async (container) => {
        const exec = await container.exec({ Cmd: ["sh", "-c", "echo hello"], AttachStdout: true, AttachStderr: true })
        const stream = await exec.start({ hijack: true, stdin: false })
        await new Promise((resolve) => stream.on("data", () => {}).on("close", resolve))
        await exec.inspect()
      },
      release: (container) => container.remove({ force: true })
    }
  )
}

const singularity = async (program) => {
  const run = (...args) => execFileSync(program, args, { stdio: "ignore" })
  const folder = mkdtempSync(join(tmpdir(), "batch-runner-bench-"))
  const file = join(folder, "image.sif")
  const insecure = image.startsWith("localhost:") ? ["--no-https"] : []
  run("pull", ...insecure, file, `docker://${image}`)
  await compare(
    "singularity",
    Singularity.layer(options),
    { image: file },
    {
      names: ["instance start", "exec", "instance stop"],
      ready: async (round) => {
        run("instance", "start", "--containall", "--no-home", "--writable-tmpfs", file, `bench${round + 1}`)
        return `bench${round + 1}`
      },
      call: async (name) => run("exec", `instance://${name}`, "sh", "-c", "echo hello"),
      release: async (name) => run("instance", "stop", "-F", name)
    }
  )
  rmSync(folder, { recursive: true, force: true })
}

const local = () => {
  const argv = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc"]
  const inside = [...argv, "--dev", "/dev", "--tmpfs", "/tmp"]
  const call = async () => spawnSync("bwrap", [...inside, "bash", "-c", "echo hello"])
  return compare(
    "local",
    Local.layer({ network: true, hide: [] }),
    { image: "" },
    {
      names: ["a bwrap that stays, and a call", "one bwrap", "its end"],
      ready: async () => {
        const holder = spawn("bwrap", [...inside, "sh", "-c", "echo; exec cat"], { stdio: ["pipe", "pipe", "ignore"] })
        await new Promise((resolve) => holder.stdout.once("data", resolve))
        await call()
        return holder
      },
      call,
      release: (holder) =>
        new Promise((resolve) => {
          holder.once("exit", resolve)
          holder.kill("SIGKILL")
        })
    }
  )
}

const works = (program, ...args) => spawnSync(program, args, { stdio: "ignore" }).status === 0

/** Every backend that is here, one after the other. */
export const sandboxes = async () => {
  if (works("bwrap", "--version")) await local()
  else console.log("local: no bubblewrap here")
  const answers = await new Dockerode().ping().then(
    () => true,
    () => false
  )
  if (answers) await docker()
  else console.log("docker: no engine answers here (DOCKER_HOST)")
  const program = process.env.BATCH_RUNNER_APPTAINER ?? "apptainer"
  if (works(program, "--version")) await singularity(program)
  else console.log("singularity: no apptainer here")
  console.log("modal: its cost is the service's, and is not measured here")
}
