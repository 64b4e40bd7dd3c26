/** Whether images can be had, asked of the engine and through it of their registries: nothing is pulled. */
import { Effect, Either } from "effect"
import type { Image } from "../Inspection.ts"
import type { Client, EngineError } from "./Client.ts"
import * as Credentials from "./Credentials.ts"
import { noName, normalize, pullError } from "./Images.ts"

/** Seconds for a registry to answer, by way of the engine. */
const limit = 20

const unknown = (why: string): Image => ({ _tag: "Unknown", why })

/** What a failed inquiry means. What an engine cannot ask, or a registry does not answer, says nothing of the image. */
const failed = (name: string, error: EngineError): Image => {
  if (error.status === 0) return unknown(`not checked: its registry did not answer within ${limit} s`)
  const meant = pullError(name)(error)
  return meant.reason === "ImageMissing"
    ? { _tag: "Missing", why: meant.message }
    : unknown(`not checked: its registry does not answer (${error.message.slice(0, 200)})`)
}

/**
 * Asks for one image after the other. `registries`: whether the engine can ask them, which Podman cannot. A registry that
 * did not answer is not asked again: it may be busy, and each further image would take as long.
 */
export const make = (client: Client, registries: boolean): ((image: string) => Effect.Effect<Image>) => {
  const logins = new Map<string, Effect.Effect<Credentials.Login | undefined>>()
  const silent = new Map<string, Image>()

  const loginOf = (name: string, registry: string) =>
    Effect.suspend(() => {
      const known = logins.get(registry)
      if (known !== undefined) return known
      return Effect.flatMap(Effect.cached(Credentials.find(name, process.env)), (once) => {
        logins.set(registry, once)
        return once
      })
    })

  const askRegistry = (name: string) =>
    Effect.gen(function* () {
      const registry = Credentials.registryOf(name)
      const before = silent.get(registry)
      if (before !== undefined) return before
      const login = yield* loginOf(name, registry)
      const answer = yield* Effect.either(
        client.call(
          (docker) =>
            docker.getImage(name).distribution(login === undefined ? {} : { authconfig: Credentials.header(login) }),
          limit
        )
      )
      if (Either.isRight(answer)) return { _tag: "Offered" } as const
      const found = failed(name, answer.left)
      if (found._tag === "Unknown") silent.set(registry, found)
      return found
    })

  return (image) =>
    Effect.gen(function* () {
      const name = normalize(image)
      if (name === undefined) return { _tag: "Missing", why: noName(image).message } as const
      const here = yield* Effect.either(client.call((docker) => docker.getImage(name).inspect()))
      if (Either.isRight(here)) return { _tag: "Present" } as const
      if (here.left.status === 0) return unknown(`not checked: the engine does not answer (${here.left.message})`)
      if (here.left.status !== 404) return failed(name, here.left)
      return yield* registries
        ? askRegistry(name)
        : Effect.succeed(unknown("not there, and this engine cannot ask its registry"))
    })
}
