/** Which way pictures are made here: the endpoint's images API, a chat model of it, or FAL. */
import { Effect, type Scope } from "effect"
import * as Prices from "../../model/Prices.ts"
import * as Access from "../net/Access.ts"
import * as Api from "../net/Api.ts"
import * as ToolGateway from "../net/ToolGateway.ts"
import * as Paid from "../Paid.ts"
import type { EndpointSetting, Setting } from "../Setting.ts"
import type { Variables } from "../Variables.ts"
import * as ChatImages from "./ChatImages.ts"
import * as Fal from "./Fal.ts"
import * as ImagesApi from "./ImagesApi.ts"
import type { Painter } from "./Painter.ts"
import * as Picture from "./Picture.ts"

/** A painter, or what is lacking for one, as a clause. */
export type Chosen = Painter | string

/** Looks at keys and options only. */
export const make = (setting: Setting): Effect.Effect<Chosen, never, Scope.Scope> => {
  const { endpoint, imageBackend, imageModel, variables } = setting
  const own = ofFal(variables)
  const access = own ?? ToolGateway.accessOf(variables, "fal-queue", "FAL")
  const namesFal = imageModel.includes("fal-ai/")
  const isFal = imageBackend === "fal" || (imageBackend === null && (imageModel === "" || namesFal))
  if (!isFal || (namesFal && access === undefined && imageBackend === null)) {
    if (imageModel === "") return Effect.succeed("no --image_model")
    if (endpoint === null) return Effect.succeed("no endpoint")
    if (!URL.canParse(endpoint.baseUrl)) return Effect.succeed("no endpoint with a valid address")
    return ofEndpoint(setting, endpoint)
  }
  if (access === undefined)
    return Effect.succeed(imageBackend === "fal" ? "no FAL_KEY" : "no --image_model, and no FAL_KEY")
  if (!URL.canParse(access.base))
    return Effect.succeed("no valid address of FAL, as FAL_API_URL or FAL_QUEUE_GATEWAY_URL is none")
  // What is named along with FAL itself can only be a model of FAL's.
  const isIts = namesFal || (imageBackend === "fal" && /^[\w.-]+(\/[\w.-]+)+$/.test(imageModel))
  const model = isIts ? imageModel : Fal.defaultModel
  return Effect.gen(function* () {
    const service = Access.open(yield* Api.make(), access, setting.timeout)
    const read = yield* Picture.reader(setting.allowPrivateNetwork, new URL(access.base))
    const purchase = own === undefined ? { header: ToolGateway.onceHeader } : {}
    return Fal.make({ service, purchase, model, read, paid: Paid.make() })
  })
}

/** FAL itself, by the user's own key. */
const ofFal = (variables: Variables): Access.Access | undefined => {
  const secret = variables.secret("FAL_KEY")
  if (secret === undefined) return undefined
  const base = variables.plain("FAL_API_URL") ?? "https://queue.fal.run"
  return { service: "FAL", base, key: { header: "authorization", before: "Key ", secret, name: "FAL_KEY" } }
}

/** The first picture tells whether there is an images API; where there is none, the model is asked as one that chats. */
const ofEndpoint = (setting: Setting, endpoint: EndpointSetting): Effect.Effect<Painter, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { imageModel: model } = setting
    const access = Access.ofEndpoint(endpoint)
    const service = Access.open(yield* Api.make(), access, setting.timeout)
    const base = new URL(access.base)
    const read = yield* Picture.reader(setting.allowPrivateNetwork, base)
    const chat = ChatImages.make(model, read)
    const price = Prices.priceOf({ model, prices: setting.prices })
    const images = ImagesApi.make({ api: ImagesApi.apiOf(base), service, model, price, read, paid: Paid.make() })
    let byChat = false
    const painter: Painter = {
      draw: (wish) =>
        byChat
          ? chat.draw(wish)
          : Effect.catchTag(images(wish), "NoSuchApi", ({ detail }) => {
              if (endpoint.offline) return service.failure(detail)
              byChat = true
              return chat.draw(wish)
            })
    }
    return painter
  })
