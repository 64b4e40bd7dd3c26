/** A script that an instance runs at its start, laid over its image: a first look inside costs no program of its own. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import * as Proc from "../Proc.ts"
import { SandboxError } from "../Sandbox.ts"

/** Milliseconds for it to come to its end. */
const limit = 1000

/** Puts it into what the instance in `place` writes over its image. */
export const lay = (place: string, script: string): Effect.Effect<void, SandboxError> => {
  const upper = join(place, "overlay/upper")
  const folder = join(upper, ".singularity.d")
  return Effect.try({
    try: () => {
      mkdirSync(folder, { recursive: true })
      // It gives the root inside its mode.
      for (const one of [upper, folder]) chmodSync(one, 0o755)
      writeFileSync(join(folder, "startscript"), script)
      chmodSync(join(folder, "startscript"), 0o755)
    },
    catch: (cause) =>
      new SandboxError({
        reason: "StartFailed",
        detail: `The sandbox's folder ${folder} could not be written: ${cause instanceof Error ? cause.message : cause}`
      })
  })
}

const soFar = (config: string, name: string): string => {
  const logs = join(config, "instances/logs")
  const found = Either.try(() => {
    const file = readdirSync(logs, { recursive: true, encoding: "utf8" }).find((one) => one.endsWith(`${name}.out`))
    return file === undefined ? "" : readFileSync(join(logs, file), "utf8")
  })
  return Either.getOrElse(found, () => "")
}

/** What it printed, when `enough` held of that; empty where that did not come in time. */
export const printed = (config: string, name: string, enough: (text: string) => boolean): Effect.Effect<string> =>
  Effect.gen(function* () {
    const until = performance.now() + limit
    for (let wait = 1; performance.now() < until; wait = Math.min(20, wait * 2)) {
      const text = soFar(config, name)
      if (enough(text)) return text
      yield* Proc.pause(wait)
    }
    return ""
  })
