/** The engine's exec, for the commands of one container. */
import type { Duplex } from "node:stream"
import type Dockerode from "dockerode"
import { Effect } from "effect"
import * as Proc from "../Proc.ts"
import type { Exchange, Request } from "../Remote.ts"
import { SandboxError } from "../Sandbox.ts"
import { type Client, drop, type EngineError, gone, over } from "./Client.ts"
import * as Frames from "./Frames.ts"

/** Exit code of what SIGKILL ended. */
const killed = 137

/** Seconds for one call of the engine. */
const limit = 30

/** Times that an exec is asked for. */
const tries = 3

const lost = (detail: string) => new SandboxError({ reason: "Lost", detail })

/** What runs in one container. */
export class Execs {
  private dead = false
  private restarts = 0
  private readonly open = new Set<Duplex>()

  constructor(
    private readonly client: Client,
    private readonly container: Dockerode.Container
  ) {}

  readonly alive = () => !this.dead

  /** Lets go of what still runs inside. */
  close(): void {
    this.dead = true
    for (const stream of this.open) drop(stream)
  }

  readonly exec = ({ argv, env, stdin, take, closed }: Request): Effect.Effect<Exchange, SandboxError> =>
    this.begin(argv, env, stdin !== undefined).pipe(
      Effect.map(({ exec, stream }) => {
        this.open.add(stream)
        const { restarts } = this
        const read = Frames.reader(take)
        stream.on("data", (chunk) => read(chunk))
        over(stream, () => {
          this.open.delete(stream)
          drop(stream)
          Effect.runFork(Effect.map(this.codeOf(exec, restarts), closed))
        })
        if (stdin instanceof Uint8Array) stream.end(stdin)
        return { write: (data) => written(stream, data) }
      })
    )

  readonly restart: Effect.Effect<void> = Effect.suspend(() => {
    this.restarts++
    return this.client
      .call(() => this.container.restart({ t: 0 }))
      .pipe(
        Effect.catchAll(() =>
          Effect.sync(() => {
            this.dead = true
          })
        )
      )
  })

  private begin(argv: ReadonlyArray<string>, env: Request["env"], stdin: boolean) {
    // Making an exec does nothing inside, so it may be tried again; starting it may not.
    const make = (left: number): Effect.Effect<Dockerode.Exec, EngineError> =>
      Effect.catchAll(
        this.client.call(
          () =>
            this.container.exec({
              Cmd: [...argv],
              Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
              // The image's own directory may be gone by now.
              WorkingDir: "/",
              AttachStdin: stdin,
              AttachStdout: true,
              AttachStderr: true
            }),
          limit
        ),
        (error) => (gone(error) || left <= 1 ? error : Effect.zipRight(Proc.pause(200), make(left - 1)))
      )
    return Effect.flatMap(make(tries), (exec) =>
      Effect.map(
        this.client.call(() => exec.start({ hijack: true, stdin }), limit),
        (stream) => ({ exec, stream })
      )
    ).pipe(
      Effect.mapError((error) => {
        if (gone(error)) this.dead = true
        return lost(
          gone(error)
            ? `The sandbox's container has ended: ${error.message}`
            : `A command could not be started in the sandbox's container: ${error.message}`
        )
      })
    )
  }

  /**
   * The exit code of what has closed its output; undefined where the engine cannot tell it, but for what a restart ended,
   * which an engine may no longer know.
   */
  private codeOf(exec: Dockerode.Exec, restarts: number): Effect.Effect<number | undefined> {
    const look = this.client.call(() => exec.inspect(), limit)
    const wait = (left: number): Effect.Effect<number | undefined, EngineError> =>
      Effect.flatMap(look, ({ Running, ExitCode }) =>
        Running && left > 0
          ? Effect.zipRight(Proc.pause(20), wait(left - 1))
          : Effect.succeed(!Running && typeof ExitCode === "number" ? ExitCode : undefined)
      )
    return Effect.map(
      Effect.orElseSucceed(wait(50), () => undefined),
      (code) => code ?? (restarts === this.restarts ? undefined : killed)
    )
  }
}

const written = (stream: Duplex, data: Uint8Array): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    if (stream.destroyed || !stream.writable) return resume(Effect.succeed(false))
    // A full pipe is no reason to wait: what is left goes out when the command reads.
    if (!stream.write(data)) return resume(Effect.succeed(true))
    setImmediate(() => resume(Effect.sync(() => !stream.destroyed)))
  })
