/** An exporter of OpenTelemetry whose refusals are heard, and which does not hold up the end of a run. */
import type { SpanExporter } from "@opentelemetry/sdk-trace-base"
import { Duration, Effect } from "effect"

type Done = Parameters<SpanExporter["export"]>[1]

/** What sends: it tries again what may be taken later, for as long as the time of an export allows. */
export interface Sending<Batch> {
  readonly export: (batch: Batch, done: Done) => void
  readonly forceFlush: () => Promise<void>
  readonly shutdown: () => Promise<void>
}

/** The time of an export at the end of a run: enough for a second try. */
export const lastLimit = Duration.seconds(2)

/** How long a run waits at its end for all that is to be sent, and for a collector that did not take what it was sent last. */
const patience = Duration.seconds(4)
const patienceWithBad = Duration.seconds(1)

const whyOf = (error: Error): string => {
  const code = "code" in error ? error.code : undefined
  if (typeof code === "number") return `HTTP ${code}`
  return (typeof code === "string" ? code : error.message).slice(0, 100)
}

export class Exporter<Batch> implements Sending<Batch> {
  private readonly usual: Sending<Batch>
  private readonly last: Sending<Batch>
  private readonly refused: (why: string) => void
  private ending = false
  private refusing = false

  /** `last` is the same as `usual` with the time of the end; `refused` hears of each export that was given up. */
  constructor(usual: Sending<Batch>, last: Sending<Batch>, refused: (why: string) => void) {
    this.usual = usual
    this.last = last
    this.refused = refused
  }

  readonly export = (batch: Batch, done: Done): void => {
    const sending = this.ending ? this.last : this.usual
    sending.export(batch, (result) => {
      this.refusing = result.error !== undefined
      if (result.error !== undefined) this.refused(whyOf(result.error))
      done(result)
    })
  }

  readonly forceFlush = async (): Promise<void> => {
    await Promise.all([this.usual.forceFlush(), this.last.forceFlush()])
  }

  readonly shutdown = async (): Promise<void> => {
    await Promise.all([this.usual.shutdown(), this.last.shutdown()])
  }

  /** Sends what is left, which `shutdown` of its provider does, for a bounded time. */
  end(shutdown: () => Promise<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.ending = true
      return Effect.ignore(Effect.tryPromise(shutdown)).pipe(
        Effect.interruptible,
        Effect.timeoutTo({
          duration: this.refusing ? patienceWithBad : patience,
          onSuccess: () => {},
          onTimeout: () => this.refused("no answer in time")
        })
      )
    })
  }
}
