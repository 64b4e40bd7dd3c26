/** Who listens to a run: a file of its happenings, and a collector of OpenTelemetry. */
import { dirname, resolve } from "node:path"
import { Effect } from "effect"
import * as Collector from "../events/Collector.ts"
import * as EventFile from "../events/EventFile.ts"
import { Events, type EventsService, together } from "../events/Events.ts"
import type { Settings } from "../RunConfig.ts"
import { makeFolder } from "../store/Disk.ts"
import { version } from "../version.ts"
import { isScripted } from "./Key.ts"
import { refuseEvents } from "./OwnFile.ts"
import { UsageError } from "./UsageError.ts"

/** Opens the file before anything else is done, with the folders that it lacks. */
const openFile = Effect.fn("Listeners.openFile")(function* (config: Settings) {
  const { events: path } = config
  const folder = resolve(config.output_dir, config.run_name)
  yield* refuseEvents(path, config.dataset_file, folder)
  yield* Effect.tryPromise({
    try: () => makeFolder(dirname(resolve(path))),
    catch: (cause) =>
      new UsageError({
        detail: `--events: ${path} cannot be written, as its folder cannot be made: ${cause instanceof Error ? cause.message.replace(/\s+/g, " ") : cause}`
      })
  })
  return yield* EventFile.open(path)
})

/** The collector that the environment names. Without one nothing of it is loaded. */
const openCollector = Effect.fn("Listeners.openCollector")(function* (config: Settings) {
  const collector = Collector.find(process.env)
  if (collector === undefined) return
  for (const remark of collector.remarks) yield* Effect.logWarning(remark)
  if (collector.traces === undefined && collector.metrics === undefined) return
  const { open } = yield* Effect.promise(() => import("../events/Telemetry.ts"))
  return yield* open(collector, version, { "gen_ai.request.model": config.model, ...addressOf(config) })
})

const addressOf = ({ base_url, model }: Settings) => {
  if (isScripted(model) || !URL.canParse(base_url)) return {}
  const { hostname, port, protocol } = new URL(base_url)
  return { "server.address": hostname, "server.port": Number(port || (protocol === "http:" ? 80 : 443)) }
}

/** A run with its listeners; without any, it costs next to nothing to be heard. */
export const hearing =
  (config: Settings) =>
  <A, E, R>(run: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const file = config.events === "" || config.dry_run ? [] : [yield* openFile(config)]
      const telemetry = yield* openCollector(config)
      const listeners: ReadonlyArray<EventsService> = telemetry === undefined ? file : [...file, telemetry.events]
      return yield* run.pipe(
        Effect.provideService(Events, together(listeners)),
        telemetry === undefined ? Effect.withTracerEnabled(false) : Effect.withTracer(telemetry.tracer)
      )
    })
