/** The tool text_to_speech: a text, spoken into a file. */
import { Effect, Ref, Schema, type Scope } from "effect"
import { isLoopback } from "../model/openai/Transport.ts"
import * as Arguments from "./Arguments.ts"
import * as Media from "./Media.ts"
import * as Access from "./net/Access.ts"
import * as Api from "./net/Api.ts"
import * as ToolGateway from "./net/ToolGateway.ts"
import * as Product from "./Product.ts"
import type { Setting } from "./Setting.ts"
import * as Shell from "./Shell.ts"
import * as Espeak from "./speech/Espeak.ts"
import * as Sound from "./speech/Sound.ts"
import type { Speaker } from "./speech/Speaker.ts"
import * as SpeechApi from "./speech/SpeechApi.ts"
import * as Tool from "./Tool.ts"
import { perSession } from "./ToolSession.ts"
import { type Built, lacking } from "./Toolset.ts"

/** Characters of a text at most: the speech API takes no more, and a recording stays of a few minutes. */
const longest = 4096

/** Looks once at what there is of it here. */
export const make = (setting: Setting): Effect.Effect<Built, never, Scope.Scope> =>
  Effect.gen(function* () {
    const speaker = yield* chosen(setting)
    return speaker === undefined
      ? lacking(
          setting.ttsModel === ""
            ? "no --tts_model, and espeak-ng is not installed"
            : "no endpoint for --tts_model, and espeak-ng is not installed",
          "text_to_speech"
        )
      : [tool(speaker, Media.make(setting.mediaFolder))]
  })

const chosen = (setting: Setting): Effect.Effect<Speaker | undefined, never, Scope.Scope> => {
  const { ttsModel, ttsVoice, variables } = setting
  const access = ttsModel === "" ? undefined : accessOf(setting)
  if (access !== undefined) {
    return Effect.map(Api.make(), (api) =>
      SpeechApi.make(Access.open(api, access, setting.timeout), ttsModel, ttsVoice)
    )
  }
  const path = Espeak.find(variables)
  // A voice that is named along with a model is one of that model's.
  return Effect.succeed(path === undefined ? undefined : Espeak.make(path, ttsModel === "" ? ttsVoice : ""))
}

/** Who is asked for `--tts_model`: the run's endpoint where there is a key for it, else the tool gateway. */
const accessOf = ({ endpoint, variables }: Setting): Access.Access | undefined => {
  const own = endpoint !== null && URL.canParse(endpoint.baseUrl) ? Access.ofEndpoint(endpoint) : undefined
  if (own !== undefined && (own.key !== undefined || isLoopback(new URL(own.base).hostname))) return own
  const gateway = ToolGateway.accessOf(variables, "openai-audio", "The tool gateway")
  if (gateway === undefined || !URL.canParse(gateway.base)) return undefined
  return /\/v1\/*$/.test(gateway.base) ? gateway : { ...gateway, base: Api.at(gateway.base, "/v1") }
}

const tool = ({ say }: Speaker, media: Media.Media): Tool.Tool => {
  /** Recordings of a session so far. */
  const count = perSession(Ref.make(0))
  return Tool.make({
    name: "text_to_speech",
    description:
      `Speak a text of at most ${longest} characters into a sound file. Gives {success, file_path}: file_path is the ` +
      "path of the new file, its extension that of what it holds; media, where it is there, is the name under which " +
      "the run's records keep it, not a path for you.",
    parameters: Schema.Struct({
      text: Arguments.text("What is said"),
      voice: Schema.optional(Arguments.text("Name of the voice; leave out for the usual one")),
      output_path: Schema.optional(
        Arguments.text(`Path of the file, with one of the extensions ${Sound.known.join(", ")}; chosen by default`)
      )
    }),
    run: Effect.fn("text_to_speech.run")(function* ({ text, voice = "", output_path: asked = "" }) {
      if (text.trim() === "") return yield* failed("text: expected a text, got an empty one")
      if (text.length > longest) {
        return yield* failed(`text: at most ${longest} characters, got ${text.length}; speak it in parts`)
      }
      const given = asked.trim() === "" ? "" : yield* Shell.path("output_path", asked)
      // These two are folders, and no names of files.
      const path = /(^|\/)\.\.?$/.test(given) ? `${given}/` : given
      const extension = Sound.extensionOf(path)
      const kind = Sound.kindOf(extension)
      if (extension !== "" && kind === undefined) {
        return yield* failed(`output_path: .${extension} is not made here, only ${Sound.known.join(", ")}`)
      }
      // A NUL would end the text early.
      const bytes = yield* say({
        text: text.toWellFormed().replaceAll("\0", " "),
        voice: voice.trim().toWellFormed(),
        kind
      })
      const found = Sound.detect(bytes)
      if (found === undefined) return yield* failed("what came is no sound that is known here; try again")
      const number = yield* Ref.updateAndGet(yield* count.get, (made) => made + 1)
      // The hash keeps apart what several sessions leave in one working directory.
      const own = `${number}-${Media.hashOf(bytes).slice(0, 8)}`
      const place = path === "" ? `speech/${own}` : path.endsWith("/") ? `${path}${own}` : path
      const file = Sound.named(place, found)
      const kept = yield* Product.leave(media, { path: file, bytes, extension: found })
      return { success: true, file_path: file, ...kept }
    })
  })
}

const failed = (error: string) => new Tool.ToolFailure({ error })
