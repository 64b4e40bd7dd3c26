/** One container: made and started for a prompt, looked into, its commands run by the engine's exec, and removed by force. */
import { posix } from "node:path"
import { buffer } from "node:stream/consumers"
import type Dockerode from "dockerode"
import { Deferred, Effect, FiberId, type Scope } from "effect"
import * as Proc from "../Proc.ts"
import type { Engine } from "../Remote.ts"
import { SandboxError } from "../Sandbox.ts"
import * as Survey from "../Survey.ts"
import * as Client from "./Client.ts"
import { Execs } from "./Exec.ts"
import * as Frames from "./Frames.ts"

/** How a container is made. */
export interface Plan {
  /** Unique on the engine. */
  readonly name: string
  readonly image: string
  readonly labels: Readonly<Record<string, string>>
  /** `cwd` of the spec. */
  readonly cwd: string
  /** Seconds after which it ends by itself. */
  readonly lifetime: number
  /** Limits and network. */
  readonly host: Dockerode.HostConfig
}

/** A container that runs. */
export interface Container {
  readonly found: Survey.Found
  readonly engine: Engine
}

/** What package managers need of root's powers; none of it reaches beyond the container. */
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID"]

/** Processes and threads inside at most. */
const processes = 1024

/** Seconds for an engine to make or start a container, and for its first process to say what it found. */
const startLimit = 60

/**
 * The first process: it says what it found, then takes in the dead that others left, until its time is over. It is no
 * init of the engine's, which would end when a command kills all that it may, and no plain `sleep`, which leaves the dead.
 * No signal from inside ends it; its words show nothing that a command would look for to end.
 */
const first = (lifetime: number) =>
  Survey.script(
    `exec /bin/sh -c 'trap "" HUP INT QUIT TERM USR1 USR2 ALRM; read -r up rest </proc/uptime; end=$((\${up%.*}+${Math.ceil(lifetime)}));` +
      ` while [ "\${up%.*}" -lt "$end" ]; do sleep 60 & wait $!; [ $? = 127 ] && exit; read -r up rest </proc/uptime; done'`
  )

const settings = ({ name, image, labels, cwd, lifetime, host }: Plan): Dockerode.ContainerCreateOptions => ({
  name,
  Image: image,
  Entrypoint: ["/bin/sh", "-c", first(lifetime), "sh", cwd],
  Cmd: [],
  Labels: { ...labels },
  Hostname: "sandbox",
  // A check of the image's own would run in the midst of the session.
  Healthcheck: { Test: ["NONE"] },
  HostConfig: {
    Init: false,
    CapDrop: ["ALL"],
    CapAdd: capabilities,
    SecurityOpt: ["no-new-privileges"],
    PidsLimit: processes,
    ...host
  }
})

const unfit = (image: string, why: string) =>
  new SandboxError({ reason: "ImageUnfit", detail: `No session can run in the image ${image}: ${why}` })

const shell = /\/bin\/sh.*(no such file|not found|executable file)|no such file.*\/bin\/sh/i
const broken = /\/bin\/sh.*permission denied/i
const userless = /unable to find (user|group)|no matching entries in (passwd|group)|unknown user/i
const format = /exec format error/i

const otherMachine = "it is made for another kind of processor than the engine's"
const shellless = "it has no /bin/sh, which commands and file tools need"

const startError = (plan: Plan) => (error: Client.EngineError) => {
  if (shell.test(error.message)) return unfit(plan.image, shellless)
  if (format.test(error.message)) return unfit(plan.image, otherMachine)
  if (broken.test(error.message)) return unfit(plan.image, "its /bin/sh cannot be run")
  if (userless.test(error.message)) return unfit(plan.image, "the USER that it names is not in it")
  return Client.toSandboxError(`A container of ${plan.image} could not be started`, "StartFailed")(error)
}

/** Starts the container and waits for what its first process found. */
const survey = (
  client: Client.Client,
  plan: Plan,
  container: Dockerode.Container
): Effect.Effect<Survey.Found, SandboxError> =>
  Effect.gen(function* () {
    const stream = yield* client
      .call(() => container.attach({ stream: true, stdout: true, stderr: true, hijack: true }))
      .pipe(Effect.mapError(startError(plan)))
    let said = ""
    const settled = Deferred.unsafeMake<Survey.Found | undefined>(FiberId.none)
    const take = Frames.reader((data) => {
      said = (said + Buffer.from(data).toString("utf8")).slice(0, 20_000)
      const found = Survey.read(said)
      if (found !== undefined) Deferred.unsafeDone(settled, Effect.succeed(found))
    })
    stream.on("data", take)
    Client.over(stream, () => Deferred.unsafeDone(settled, Effect.succeed(undefined)))
    // A removal that comes in the midst of a start may be refused, and the container stays.
    return yield* Effect.uninterruptible(client.call(() => container.start(), startLimit)).pipe(
      Effect.mapError(startError(plan)),
      Effect.zipRight(Proc.atMost(Deferred.await(settled), startLimit * 1000)),
      Effect.flatMap((found) => {
        if (found?.lacks === "") return Effect.succeed(found)
        if (found !== undefined) return unfit(plan.image, `there is no ${found.lacks} on its PATH`)
        if (format.test(said)) return unfit(plan.image, otherMachine)
        return new SandboxError({
          reason: "StartFailed",
          detail: `A container of ${plan.image} ended before it was ready: ${said.trim().slice(0, 500) || "it said nothing"}`
        })
      }),
      Effect.ensuring(Effect.sync(() => Client.drop(stream)))
    )
  })

/** The directories that are missing of `cwd`, as an archive of nothing else. */
const directories = async ({ cwd, above, uid, gid }: Survey.Found): Promise<Buffer> => {
  const { pack } = await import("tar-stream")
  const archive = pack()
  let at = ""
  for (const part of posix.relative(above, cwd).split("/")) {
    at = posix.join(at, part)
    archive.entry({ name: `${at}/`, type: "directory", mode: 0o755, uid, gid })
  }
  archive.finalize()
  return buffer(archive)
}

/** Makes the working directory that the user of the image may not make itself, as that user's. */
const provide = (
  client: Client.Client,
  plan: Plan,
  container: Dockerode.Container,
  found: Survey.Found
): Effect.Effect<Survey.Found, SandboxError> =>
  Effect.gen(function* () {
    if (found.directory !== "none") return found
    const blocked = (why: string) =>
      new SandboxError({ reason: "Unavailable", detail: Survey.blocked(plan.cwd, found.why || why) })
    if (found.uid === 0 || found.above === found.cwd) return yield* blocked("")
    yield* client
      .call(async () => container.putArchive(await directories(found), { path: found.above }))
      .pipe(Effect.mapError(({ message }) => blocked(message)))
    return { ...found, directory: "bare" }
  })

/** Times that a removal is asked for, and milliseconds between them: an engine may be at work on the container. */
const removals = 40
const removalPause = 250

/** Removes a container with all that is in it, running or not. */
export const remove = (
  client: Client.Client,
  container: Dockerode.Container,
  left = removals
): Effect.Effect<void, Client.EngineError> =>
  Effect.catchAll(Effect.asVoid(client.call(() => container.remove({ force: true, v: true }), 20)), (error) => {
    // Gone, or about to be: by itself, or by another's hand.
    if (error.status === 404 || /already in progress/.test(error.message)) return Effect.void
    const again = error.status >= 400 && left > 1
    return again ? Effect.zipRight(Proc.pause(removalPause), remove(client, container, left - 1)) : error
  })

/** Makes a container that does not run yet. */
export const create = (client: Client.Client, plan: Plan): Effect.Effect<Dockerode.Container, SandboxError> =>
  client.call((docker) => docker.createContainer(settings(plan)), startLimit).pipe(Effect.mapError(startError(plan)))

/** Starts it; from then on its commands run by the engine's exec. */
export const start = (
  client: Client.Client,
  plan: Plan,
  container: Dockerode.Container
): Effect.Effect<Container, SandboxError, Scope.Scope> =>
  Effect.gen(function* () {
    const execs = yield* Effect.acquireRelease(
      Effect.sync(() => new Execs(client, container)),
      (execs) => Effect.sync(() => execs.close())
    )
    const found = yield* Effect.flatMap(survey(client, plan, container), (found) =>
      provide(client, plan, container, found)
    )
    return { found, engine: { alive: execs.alive, exec: execs.exec, restart: execs.restart } }
  })
