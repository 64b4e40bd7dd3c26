/** Standard error as people see it: lines, and on a terminal one live line below them. */
import { Context, Effect, Layer, Logger, LogLevel } from "effect"

export interface ScreenService {
  /** Whether the status is one line that is drawn over and over. */
  readonly live: boolean
  readonly line: (text: string) => void
  readonly status: (text: string) => Effect.Effect<void>
  /** Takes the live line away: what follows is for standard output. */
  readonly end: Effect.Effect<void>
}

export class Screen extends Context.Tag("batch-runner/Screen")<Screen, ScreenService>() {}

interface Stream {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly write: (text: string) => unknown
}

/** A screen on a stream; the live line is gone when the layer closes. */
export const layer = (stream: Stream): Layer.Layer<Screen> =>
  Layer.scoped(
    Screen,
    Effect.gen(function* () {
      const live = stream.isTTY === true && process.env.TERM !== "dumb"
      let status = ""
      const clear = () => (status === "" ? "" : "\r\u001b[2K")
      let over = false
      const end = Effect.sync(() => {
        if (live) stream.write(clear())
        status = ""
        over = true
      })
      const service: ScreenService = {
        live,
        end,
        line: (text) => {
          stream.write(live ? `${clear()}${text}\n${status}` : `${text}\n`)
        },
        status: (text) =>
          Effect.sync(() => {
            if (over) return
            if (!live) return void stream.write(`${text}\n`)
            const before = clear()
            status = text.slice(0, Math.max(20, (stream.columns || 80) - 1))
            stream.write(`${before}${status}`)
          })
      }
      yield* Effect.addFinalizer(() => end)
      return service
    })
  )

const texts = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part) => (typeof part === "string" ? part : String(part)))
    .join(" ")

/** Log lines go to the screen, plain: a warning says so, a session's line begins with its place. */
export const logger = (verbose: boolean): Layer.Layer<never, never, Screen> =>
  Layer.unwrapEffect(
    Effect.map(Screen, (screen) =>
      Layer.merge(
        Logger.replace(
          Logger.defaultLogger,
          Logger.make(({ annotations, logLevel, message }) => {
            const at = [...annotations].find(([key]) => key === "at")?.[1]
            const where = at === undefined ? "" : `[${String(at)}] `
            const weight = LogLevel.greaterThanEqual(logLevel, LogLevel.Warning) ? "warning: " : ""
            screen.line(`${where}${weight}${texts(message)}`)
          })
        ),
        Logger.minimumLogLevel(verbose ? LogLevel.Debug : LogLevel.Info)
      )
    )
  )
