/** The tools browser_*: a real browser, one context for each session. */
import { Effect, Either, type Scope } from "effect"
import * as Cloud from "./browser/Cloud.ts"
import * as Local from "./browser/Local.ts"
import * as Program from "./browser/Program.ts"
import * as Remote from "./browser/Remote.ts"
import * as Sessions from "./browser/Sessions.ts"
import type { Source } from "./browser/Source.ts"
import * as Tools from "./browser/Tools.ts"
import * as Api from "./net/Api.ts"
import * as Guard from "./net/Guard.ts"
import type { Setting } from "./Setting.ts"
import { type Built, lacking } from "./Toolset.ts"
import { eyes } from "./vision/Eyes.ts"

/** All of them, in the order in which rows count them. */
export const names = [
  "browser_navigate",
  "browser_snapshot",
  "browser_click",
  "browser_type",
  "browser_scroll",
  "browser_back",
  "browser_press",
  "browser_get_images",
  "browser_vision",
  "browser_close"
] as const

/** Looks once at what there is of it here; a browser is started with the first call. */
export const make = (setting: Setting): Effect.Effect<Built, never, Scope.Scope> =>
  guarded(setting, Guard.make({ allowPrivate: setting.allowPrivateNetwork }))

/** The same with another guard. */
export const guarded = (setting: Setting, guard: Guard.Guard): Effect.Effect<Built, never, Scope.Scope> =>
  Effect.gen(function* () {
    const source = yield* sourceOf(setting, guard)
    if (Either.isLeft(source)) return lacking(source.left, ...names)
    const sessions = Sessions.make(source.right, setting.maxBrowsers)
    return Tools.make(sessions, guard, yield* eyes(setting))
  })

/** The first that is configured: a browser at an address, one of a service, one of this machine. */
const sourceOf = (
  setting: Setting,
  guard: Guard.Guard
): Effect.Effect<Either.Either<Source, string>, never, Scope.Scope> => {
  const { variables } = setting
  const rules = setting.allowPrivateNetwork ? undefined : guard
  const address = variables.plain("BROWSER_CDP_URL")
  const secret = variables.secret("BROWSER_CDP_URL")
  if (address !== undefined && secret !== undefined) {
    return URL.canParse(address) && /^(wss?|https?):$/.test(new URL(address).protocol)
      ? Effect.map(Remote.shared(secret, rules), Either.right)
      : Effect.succeed(Either.left("BROWSER_CDP_URL is no ws, wss, http or https address"))
  }
  return Effect.gen(function* () {
    const api = yield* Api.make()
    const rent = Cloud.browserbase(setting, api) ?? Cloud.browserUse(setting, api)
    if (rent !== undefined) return Either.right(Remote.rented(rent, rules))
    const program = Program.find(variables)
    return Either.isLeft(program) ? Either.left(program.left) : Either.right(yield* Local.make(program.right, guard))
  })
}
